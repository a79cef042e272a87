//! A conversation with tools and reasoning that is carried on by whichever provider is left.

use super::support::*;
use serde_json::json;
use std::io;
use steadfast::chat::{Effort, Reasoning, Reply, Tool, ToolResult, Turn};
use steadfast::provider::{Anthropic, Gemini, OpenAi, OpenAiResponses};
use steadfast::testing::{Answer, FakeProvider, Fault};
use steadfast::{Call, Client, Target};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Provider {
    Anthropic,
    Gemini,
    OpenAi,
    Responses,
}

const PROVIDERS: [Provider; 4] = [Provider::Anthropic, Provider::Gemini, Provider::OpenAi, Provider::Responses];

impl Provider {
    async fn start(self) -> io::Result<(FakeProvider, Target)> {
        let fake = match self {
            Self::Anthropic => FakeProvider::anthropic(),
            Self::Gemini => FakeProvider::gemini(),
            Self::OpenAi => FakeProvider::openai(),
            Self::Responses => FakeProvider::responses(),
        };
        let fake = fake.start().await?;
        let url = fake.base_url();
        let target = match self {
            Self::Anthropic => Target::new(Anthropic::new("key-1").base_url(&url), "claude-sonnet-4-6"),
            Self::Gemini => Target::new(Gemini::new("key-2").base_url(&url), "gemini-4-argon"),
            Self::OpenAi => Target::new(OpenAi::new("key-3").base_url(&url), "gpt-6-luna"),
            Self::Responses => Target::new(OpenAiResponses::new("key-4").base_url(&url), "gpt-6-luna"),
        };
        Ok((fake, target.retry(retries(0))))
    }

    /// What its own requests alone may hold.
    fn own(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("\"signature\":"),
            Self::Gemini => Some("\"thoughtSignature\":"),
            Self::OpenAi => None,
            Self::Responses => Some("\"encrypted_content\":"),
        }
    }
}

fn call() -> Call {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Call::user("What is the weather in Oslo, Lima and Rome?")
        .system("Look it up.")
        .tool(Tool::new("get_weather", "The weather of a city").parameters(parameters))
        .reasoning(Reasoning::Effort(Effort::Low))
        .max_tokens(8_000)
}

fn calls(city: &str) -> Answer {
    Answer::tool_call("get_weather", json!({"city": city})).reasoning(format!("{city} is next."))
}

async fn ask(client: &Client, call: &Call, stream: bool) -> Reply {
    if !stream {
        return reply(client, call.clone()).await;
    }
    let stream = client.stream(call.clone()).await.expect("the stream opens");
    stream.into_reply().await.expect("the stream comes to its end")
}

/// What came of every call of a turn: rain.
fn rain(reply: &Reply) -> Turn {
    Turn::tool_results(reply.tool_calls().iter().map(|call| ToolResult::new(&*call.id, "rain")))
}

/// Starts with the first provider, falls over to the second between a call and the answer to it, and comes back; twice.
async fn fall_over_and_back(first: Provider, second: Provider, stream: bool) -> io::Result<()> {
    let which = format!("{first:?} and {second:?}, stream: {stream}");
    let (primary, target) = first.start().await?;
    let (fallback, other) = second.start().await?;
    let client = built(Client::builder(target).fallback(other));

    let mut call = call();
    let mut replies = Vec::new();
    for (city, by) in [("Oslo", 0), ("Lima", 1), ("Rome", 0)] {
        if by == 1 {
            primary.push(Fault::overloaded());
        }
        [&primary, &fallback][by].push(calls(city));
        let reply = ask(&client, &call, stream).await;
        assert_eq!((reply.target().index, reply.attempts().len()), (by, by), "{which}, {city}");
        let [called] = reply.tool_calls() else { panic!("{which}, {city}: {reply:?}") };
        assert_eq!(called.arguments, json!({"city": city}), "{which}");
        let results = rain(&reply);
        call = call.then(reply.to_turn()).then(results);
        replies.push(reply);
    }

    // The words that end the turn, from the fallback; then the user goes on, with the primary.
    primary.push(Fault::overloaded());
    fallback.push(Answer::text("It rains everywhere.").reasoning("Three times rain."));
    let words = ask(&client, &call, stream).await;
    assert_eq!((words.text(), words.target().index), ("It rains everywhere.", 1), "{which}");
    call = call.then(words.to_turn()).then(Turn::user("Really?"));
    primary.push(Answer::text("Really."));
    assert_eq!(ask(&client, &call, stream).await.text(), "Really.", "{which}");

    let ids = replies.iter().flat_map(Reply::tool_calls).map(|call| &*call.id);
    assert_eq!(repeated(ids), [""; 0], "{which}");
    // Nothing was refused: each script was played to its end.
    let answered = |fake: &FakeProvider| fake.journal().iter().map(|seen| seen.answered.clone()).collect::<Vec<_>>();
    assert_eq!((answered(&primary).len(), answered(&fallback).len()), (5, 2), "{which}");
    for (fake, provider) in [(&primary, first), (&fallback, second)] {
        for seen in fake.journal() {
            assert!(!seen.answered.starts_with("400"), "{which}: {}", seen.answered);
            let body = String::from_utf8_lossy(&seen.body);
            let strange = PROVIDERS.iter().filter(|other| **other != provider).filter_map(|other| other.own());
            for mark in strange {
                assert!(!body.contains(mark), "{which}: {mark} in {body}");
            }
        }
    }
    // What the primary gave goes back to it, though another model spoke in between.
    if let (Some(own), Provider::Anthropic | Provider::Gemini) = (first.own(), first) {
        let journal = primary.journal();
        let last = journal.last().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).unwrap_or_default();
        assert!(last.contains(own), "{which}: {last}");
    }
    Ok(())
}

#[tokio::test]
async fn a_conversation_falls_over_from_anthropic_to_openai_and_back() -> io::Result<()> {
    for stream in [false, true] {
        fall_over_and_back(Provider::Anthropic, Provider::OpenAi, stream).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_conversation_falls_over_between_any_two_protocols() -> io::Result<()> {
    for (place, first) in PROVIDERS.into_iter().enumerate() {
        for (other, second) in PROVIDERS.into_iter().enumerate().filter(|(other, _)| *other != place) {
            // Whole one way round, as streams the other.
            fall_over_and_back(first, second, place < other).await?;
        }
    }
    Ok(())
}
