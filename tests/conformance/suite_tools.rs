//! Promises of tools.

use crate::beyond::{AskedBeyond, Beyond};
use crate::suite::{Outcome, failure, pair};
use serde_json::json;
use std::error::Error;
use steadfast::chat::{FinishReason, Reply, Tool, ToolChoice, ToolResult, Turn};
use steadfast::record::Issues;
use steadfast::testing::{Answer, FakeProvider};
use steadfast::{Call, Client, ErrorCode, ErrorKind, LlmError};

pub(crate) fn weather() -> Tool {
    Tool::new("get_weather", "The weather at a place").parameters(json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }))
}

fn call<S: Beyond>() -> Call {
    Call::user("What is the weather in Oslo?").model(S::CAPABLE).tool(weather())
}

/// What the last request asked.
fn last<S: Beyond>(fake: &FakeProvider) -> Result<AskedBeyond, Box<dyn Error>> {
    Ok(S::asked_beyond(fake.journal().last().ok_or("nothing was asked")?))
}

/// The reply to a call, or to the same as a stream.
async fn answered(client: &Client, call: Call, stream: bool) -> Result<Reply, LlmError> {
    if stream { client.stream(call).await?.into_reply().await } else { client.call(call).await }
}

pub(crate) async fn a_tool_is_called_and_its_result_goes_back<S: Beyond>() -> Outcome {
    for stream in [false, true] {
        let calls =
            Answer::tool_call("get_weather", r#"{"city":"Oslo"}"#).and_tool_call("get_weather", r#"{"city":"Lima"}"#);
        let (fake, client) = pair::<S>([calls, Answer::text("Rain, and sun.")], 0).await?;
        let reply = answered(&client, call::<S>(), stream).await?;
        assert_eq!(reply.finish_reason(), FinishReason::ToolCalls);
        let [oslo, lima] = reply.tool_calls() else { return Err(format!("{:?}", reply.tool_calls()).into()) };
        assert_eq!((&oslo.arguments, &lima.arguments), (&json!({"city": "Oslo"}), &json!({"city": "Lima"})));
        assert!(!oslo.id.is_empty() && oslo.id != lima.id, "{} {}", oslo.id, lima.id);
        let asked = last::<S>(&fake)?;
        assert_eq!(asked.tools.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["get_weather"]);
        assert_eq!(asked.tools[0].1["properties"]["city"]["type"], "string");
        assert_eq!((asked.choice, asked.parallel), (None, None));

        let results = [ToolResult::new(&*oslo.id, "4 degrees, rain"), ToolResult::error(&*lima.id, "no such station")];
        let next = call::<S>().then(reply.to_turn()).then(Turn::tool_results(results));
        let reply = answered(&client, next, stream).await?;
        assert_eq!((reply.text(), reply.finish_reason()), ("Rain, and sun.", FinishReason::Stop));
        let asked = last::<S>(&fake)?;
        let [told, failed] = &asked.results[..] else { return Err(format!("{:?}", asked.results).into()) };
        let ids: Vec<_> = asked.calls.iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, [&told.0, &failed.0]);
        assert_eq!(asked.calls[0].1, "get_weather");
        assert_eq!(
            asked.calls.iter().map(|(.., arguments)| arguments).collect::<Vec<_>>(),
            [&json!({"city": "Oslo"}), &json!({"city": "Lima"})]
        );
        assert!(told.1.contains("4 degrees, rain") && failed.1.contains("no such station"), "{:?}", asked.results);
    }
    Ok(())
}

pub(crate) async fn text_may_come_beside_a_tool_call<S: Beyond>() -> Outcome {
    for stream in [false, true] {
        let answer = Answer::text("One moment.").and_tool_call("get_weather", r#"{"city":"Oslo"}"#);
        let (_fake, client) = pair::<S>([answer, Answer::text("Rain.")], 0).await?;
        let reply = answered(&client, call::<S>(), stream).await?;
        assert_eq!((reply.text(), reply.tool_calls().len()), ("One moment.", 1));
        let results = [ToolResult::json(&*reply.tool_calls()[0].id, json!({"degrees": 4}))];
        let next = call::<S>().then(reply.to_turn()).then(Turn::tool_results(results));
        assert_eq!(answered(&client, next, stream).await?.text(), "Rain.");
    }
    Ok(())
}

pub(crate) async fn the_choice_of_tools_is_sent<S: Beyond>() -> Outcome {
    let (fake, client) = pair::<S>([], 0).await?;
    let named = ToolChoice::Named("get_weather".to_owned());
    for choice in [ToolChoice::None, ToolChoice::Required, named].into_iter().filter(|_| S::CHOICE) {
        // The fake answers in words, which is no breach of the contract: the provider promised, not the model.
        let _ = client.call(call::<S>().tool_choice(choice.clone())).await;
        assert_eq!(last::<S>(&fake)?.choice, Some(choice));
    }
    if S::PARALLEL {
        client.call(call::<S>().parallel_tool_calls(false)).await?;
        assert_eq!(last::<S>(&fake)?.parallel, Some(false));
    }
    Ok(())
}

pub(crate) async fn a_tool_without_arguments_can_be_called<S: Beyond>() -> Outcome {
    for stream in [false, true] {
        let (_fake, client) = pair::<S>([Answer::tool_call("now", "{}")], 0).await?;
        let call = Call::user("What time is it?").model(S::CAPABLE).tool(Tool::new("now", "The time"));
        let reply = answered(&client, call, stream).await?;
        assert_eq!(reply.tool_calls()[0].arguments, json!({}));
    }
    Ok(())
}

pub(crate) async fn malformed_arguments_are_an_error_with_their_text<S: Beyond>() -> Outcome {
    if !S::ARGUMENTS_ARE_TEXT {
        return Ok(());
    }
    for stream in [false, true] {
        let (fake, client) = pair::<S>([Answer::tool_call("get_weather", r#"{"city": "Os"#)], 2).await?;
        let error = failure(answered(&client, call::<S>(), stream).await)?;
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Parse, Some(ErrorCode::ToolArgumentsParseFailed)),
            "{error}"
        );
        let Some(Issues::Tools { problems }) = error.issues() else {
            return Err(format!("{:?}", error.issues()).into());
        };
        assert_eq!((&*problems[0].tool, problems[0].detail.as_deref()), ("get_weather", Some(r#"{"city": "Os"#)));
        assert_eq!((error.is_retryable(), fake.requests()), (false, 1));
    }
    Ok(())
}

pub(crate) async fn a_tool_that_was_not_given_is_a_breach<S: Beyond>() -> Outcome {
    let (_fake, client) = pair::<S>([Answer::tool_call("launch", "{}")], 0).await?;
    let error = failure(client.call(call::<S>()).await)?;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Validation, Some(ErrorCode::UnknownTool)), "{error}");
    Ok(())
}

pub(crate) async fn a_name_that_is_no_name_is_refused_before_anything_is_sent<S: Beyond>() -> Outcome {
    let Some(name) = S::BAD_TOOL_NAME else { return Ok(()) };
    let (fake, client) = pair::<S>([], 0).await?;
    let error = failure(client.call(Call::user("Hello").model(S::CAPABLE).tool(Tool::new(name, "Odd"))).await)?;
    assert_eq!(error.kind(), ErrorKind::InvalidParams, "{error}");
    assert!(error.to_string().contains(name), "{error}");
    assert_eq!(fake.requests(), 0);
    Ok(())
}
