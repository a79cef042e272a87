//! Promises of streams.

use crate::beyond::Beyond;
use crate::suite::{Outcome, failure, pair};
use std::error::Error;
use steadfast::chat::{Chunk, FinishReason, Reply, ToolCall};
use steadfast::testing::{Answer, Fault, Mishap};
use steadfast::{Call, Client, ErrorCode, LlmError, ReplyStream};

/// What a stream yields: its chunks, and the error that ends it.
async fn drained(stream: &mut ReplyStream) -> (Vec<Chunk>, Option<LlmError>) {
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => return (chunks, Some(error)),
        }
    }
    (chunks, None)
}

fn texts(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(Chunk::text).filter(|text| !text.is_empty()).collect()
}

/// The reply that a stream comes to.
async fn streamed(client: &Client, call: Call) -> Result<Reply, LlmError> {
    client.stream(call).await?.into_reply().await
}

pub(crate) async fn a_stream_brings_the_pieces_that_were_sent<S: Beyond>() -> Outcome {
    let answer = Answer::text_chunks(["Hel", "lo ", "\"there\"\n", "ü🚀"]).usage(7, 2).model("m-reported");
    let (fake, client) = pair::<S>([answer], 0).await?;
    let mut stream = client.stream("Hello").await?;
    let (chunks, error) = drained(&mut stream).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(texts(&chunks), ["Hel", "lo ", "\"there\"\n", "ü🚀"]);
    let reply = stream.into_reply().await?;
    assert_eq!((reply.text(), reply.finish_reason()), ("Hello \"there\"\nü🚀", FinishReason::Stop));
    assert_eq!((reply.model(), fake.requests()), (S::MODEL_TOLD.then_some("m-reported"), 1));
    if S::STREAMED_USAGE {
        assert_eq!(reply.usage().map(|usage| (usage.input, usage.output, usage.total)), Some((7, 2, 9)));
        assert!(matches!(chunks.last(), Some(Chunk::Usage(usage)) if usage.total == 9), "{:?}", chunks.last());
    }
    Ok(())
}

pub(crate) async fn a_stream_comes_to_the_reply_that_a_call_gives<S: Beyond>() -> Outcome {
    let mut answers = vec![
        Answer::text("Hello there."),
        Answer::tool_call("get_weather", r#"{"city":"Oslo","days":[1,2]}"#)
            .and_tool_call("get_weather", r#"{"city":"Lima"}"#),
    ];
    if S::THINKER.is_some() {
        answers.push(Answer::text("Hello there.").reasoning("Greet them back."));
    }
    for answer in answers {
        let (_fake, client) = pair::<S>([answer.clone(), answer], 0).await?;
        let call = || {
            let model = S::THINKER.unwrap_or(S::CAPABLE);
            Call::user("Hello").model(model).tool(crate::suite_tools::weather())
        };
        let (called, streamed) = (client.call(call()).await?, streamed(&client, call()).await?);
        let told = |reply: &Reply| {
            let calls = reply.tool_calls().iter().map(|call: &ToolCall| (call.name.clone(), call.arguments.clone()));
            let words = (reply.text().to_owned(), reply.reasoning().map(str::to_owned));
            (words, calls.collect::<Vec<_>>(), reply.finish_reason(), reply.usage().map(|usage| usage.output))
        };
        if S::STREAMED_USAGE {
            assert_eq!(told(&streamed), told(&called));
        } else {
            assert_eq!((told(&streamed).0, told(&streamed).1), (told(&called).0, told(&called).1));
        }
    }
    Ok(())
}

pub(crate) async fn a_stream_that_is_cut_is_interrupted_and_keeps_what_came<S: Beyond>() -> Outcome {
    for mishap in [Mishap::end(), Mishap::close(), Mishap::reset()] {
        let answer = || Answer::text_chunks(["One", " two", " three", " four", " five"]);
        // Late enough that words came, early enough that the end did not.
        let events = events_until_words::<S>(answer()).await?;
        let (fake, client) = pair::<S>([answer().after_events(events, mishap)], 2).await?;
        let mut stream = client.stream("Hello").await?;
        let (chunks, error) = drained(&mut stream).await;
        let error = error.ok_or("it did not break")?;
        assert_eq!((error.code(), error.is_retryable()), (Some(ErrorCode::StreamInterrupted), false), "{error}");
        let partial = error.partial().ok_or("nothing is kept")?.text().to_owned();
        assert_eq!((texts(&chunks).concat(), fake.requests()), (partial.clone(), 1));
        assert!(partial.starts_with("One"), "{partial}");
    }
    Ok(())
}

pub(crate) async fn an_error_in_a_stream_means_what_it_means_elsewhere<S: Beyond>() -> Outcome {
    let answer = || Answer::text_chunks(["One", " two", " three", " four", " five"]);
    let events = events_until_words::<S>(answer()).await?;
    let (fake, client) = pair::<S>([answer().after_events(events, Mishap::overloaded())], 2).await?;
    let mut stream = client.stream("Hello").await?;
    let (chunks, error) = drained(&mut stream).await;
    let error = error.ok_or("it did not break")?;
    assert_eq!((error.code(), error.is_retryable()), (Some(ErrorCode::Overloaded), false), "{error}");
    assert!(texts(&chunks).concat().starts_with("One"), "{chunks:?}");
    assert_eq!(fake.requests(), 1);

    // Before the first word it is retried like a call.
    let (fake, client) = pair::<S>([answer().after_events(0, Mishap::overloaded()), Answer::text("Hi")], 1).await?;
    assert_eq!((streamed(&client, Call::user("Hello")).await?.text(), fake.requests()), ("Hi", 2));
    Ok(())
}

pub(crate) async fn a_stream_is_refused_like_a_call<S: Beyond>() -> Outcome {
    let (fake, client) = pair::<S>([Fault::unauthorized(), Fault::overloaded(), Answer::text("Hi")], 1).await?;
    let error = failure(streamed(&client, Call::user("Hello")).await)?;
    assert_eq!(error.code(), Some(S::BAD_KEY), "{error}");
    assert_eq!((streamed(&client, Call::user("Hello")).await?.text(), fake.requests()), ("Hi", 3));
    Ok(())
}

pub(crate) async fn a_dropped_stream_leaves_no_connection<S: Beyond>() -> Outcome {
    let answer = Answer::text_chunks(["One", " two"]).after_events(64, Mishap::hang());
    let (fake, client) = pair::<S>([answer.then_hang()], 0).await?;
    let mut stream = client.stream("Hello").await?;
    assert!(stream.next().await.is_some());
    drop(stream);
    drop(client);
    fake.wait_until_idle().await;
    assert_eq!(fake.connections_open(), 0);
    Ok(())
}

/// After how many events of this answer there have been words, but not all of them.
async fn events_until_words<S: Beyond>(answer: Answer) -> Result<usize, Box<dyn Error>> {
    for events in 1..32 {
        let (_fake, client) = pair::<S>([answer.clone().after_events(events, Mishap::end())], 0).await?;
        if let Ok(mut stream) = client.stream("Hello").await {
            let (chunks, _) = drained(&mut stream).await;
            if !texts(&chunks).is_empty() {
                return Ok(events);
            }
        }
    }
    Err("the answer has no words".into())
}

/// Whether a reply is put together or not, calls at once are told apart.
pub(crate) async fn calls_that_are_only_passed_on_are_told_apart<S: Beyond>() -> Outcome {
    let answer =
        Answer::tool_call("get_weather", r#"{"city":"Oslo"}"#).and_tool_call("get_weather", r#"{"city":"Lima"}"#);
    for accumulate in [true, false] {
        let (_fake, client) = pair::<S>([answer.clone()], 0).await?;
        let call = Call::user("Oslo and Lima?").model(S::CAPABLE).tool(crate::suite_tools::weather());
        let mut stream = client.stream(call.accumulate(accumulate)).await?;
        let (chunks, error) = drained(&mut stream).await;
        assert!(error.is_none(), "{error:?}");
        let mut arguments = [String::new(), String::new()];
        for chunk in &chunks {
            if let Chunk::ToolCall(part) = chunk {
                arguments.get_mut(part.index).ok_or("a third call")?.push_str(&part.arguments);
            }
        }
        let cities = arguments.iter().map(|json| serde_json::from_str::<serde_json::Value>(json));
        let cities = cities.collect::<Result<Vec<_>, _>>()?;
        assert_eq!((&cities[0]["city"], &cities[1]["city"]), (&"Oslo".into(), &"Lima".into()), "{accumulate}");
    }
    Ok(())
}
