//! Promises of forms of the answer, pictures and reasoning.

use crate::beyond::Beyond;
use crate::suite::{Outcome, failure, pair};
use crate::suite_tools::weather;
use serde_json::{Value, json};
use steadfast::chat::{Effort, Part, Reasoning, ToolResult, Turn};
use steadfast::testing::Answer;
use steadfast::{Call, ErrorCode, ErrorKind};

fn place() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
        "required": ["city"],
    })
}

pub(crate) async fn an_answer_of_a_schema_is_read_and_held_to_it<S: Beyond>() -> Outcome {
    let answers = [r#"{"city":"Oslo"}"#, r#"{"city":4}"#].map(Answer::text);
    let (fake, client) = pair::<S>(answers, 0).await?;
    let call = || Call::user("We met in Oslo.").model(S::CAPABLE).schema("place", place());
    let reply = client.call(call()).await?;
    assert_eq!(reply.json::<Value>()?, json!({"city": "Oslo"}));
    let asked = S::asked_beyond(&fake.journal()[0]);
    let schema = asked.schema.ok_or("no schema was sent")?;
    assert_eq!(schema["properties"]["city"]["type"], "string", "{schema}");
    let error = failure(client.call(call()).await)?;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Validation, Some(ErrorCode::SchemaMismatch)), "{error}");
    Ok(())
}

pub(crate) async fn an_answer_of_a_schema_streams<S: Beyond>() -> Outcome {
    let (_fake, client) = pair::<S>([Answer::text(r#"{"city":"Oslo","country":"NO"}"#)], 0).await?;
    let call = Call::user("We met in Oslo.").model(S::CAPABLE).schema("place", place());
    let reply = client.stream(call).await?.into_reply().await?;
    assert_eq!(reply.json::<Value>()?, json!({"city": "Oslo", "country": "NO"}));
    Ok(())
}

pub(crate) async fn any_json_can_be_asked_for<S: Beyond>() -> Outcome {
    let (fake, client) = pair::<S>([Answer::text("[1, 2]"), Answer::text("One and two.")], 0).await?;
    let call = || Call::user("Two numbers, as JSON.").model(S::CAPABLE).json();
    assert_eq!(client.call(call()).await?.json::<Value>()?, json!([1, 2]));
    assert!(S::asked_beyond(&fake.journal()[0]).json);
    let error = failure(client.call(call()).await)?;
    assert_eq!(error.code(), Some(ErrorCode::JsonParseFailed), "{error}");
    Ok(())
}

pub(crate) async fn pictures_are_sent<S: Beyond>() -> Outcome {
    let (fake, client) = pair::<S>([], 0).await?;
    let call = Call::user([Part::text("What is this?"), Part::image_base64("image/png", "aGVsbG8=")]).model(S::CAPABLE);
    client.call(call).await?;
    assert_eq!(S::asked_beyond(&fake.journal()[0]).images, ["aGVsbG8="]);
    Ok(())
}

pub(crate) async fn how_much_to_think_is_sent_in_the_protocols_own_form<S: Beyond>() -> Outcome {
    let Some(model) = S::THINKER else { return Ok(()) };
    let (fake, client) = pair::<S>([], 0).await?;
    let call = |reasoning: Reasoning| Call::user("Hello").model(model).max_tokens(60_000).reasoning(reasoning);
    for reasoning in [Reasoning::Effort(Effort::Low), Reasoning::Effort(Effort::High), Reasoning::Budget(16_000)] {
        client.call(call(reasoning)).await?;
    }
    client.call(Call::user("Hello").model(model)).await?;
    let sent: Vec<_> = fake.journal().iter().map(|received| S::asked_beyond(received).reasoning).collect();
    assert!(sent[..3].iter().all(Option::is_some) && sent[0] != sent[1] && sent[3].is_none(), "{sent:?}");
    Ok(())
}

pub(crate) async fn reasoning_goes_back_with_the_turn_that_it_led_to<S: Beyond>() -> Outcome {
    let Some(model) = S::THINKER else { return Ok(()) };
    for stream in [false, true] {
        let calls = Answer::tool_call("get_weather", r#"{"city":"Oslo"}"#).reasoning("The weather first.");
        let (fake, client) = pair::<S>([calls, Answer::text("Rain.")], 0).await?;
        let call = Call::user("What is the weather in Oslo?").model(model).tool(weather());
        let next = call.clone();
        let reply = if stream { client.stream(call).await?.into_reply().await? } else { client.call(call).await? };
        assert_eq!(reply.reasoning(), Some("The weather first."));
        let result = Turn::tool_results([ToolResult::new(&*reply.tool_calls()[0].id, "4 degrees, rain")]);
        assert_eq!(client.call(next.then(reply.to_turn()).then(result)).await?.text(), "Rain.");
        let received = fake.journal().pop().ok_or("nothing was asked")?;
        assert_eq!(S::asked_beyond(&received).reasoned, S::REASONING_GOES_BACK);
    }
    Ok(())
}
