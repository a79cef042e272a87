//! Rounds of tools against the fakes that check every turn: what a model said goes back as it was, whole or streamed.

use crate::suite::Outcome;
use serde_json::json;
use std::error::Error;
use steadfast::chat::{Effort, FinishReason, Part, Reasoning, Reply, Tool, ToolResult, Turn};
use steadfast::provider::{Anthropic, Ollama, Provider};
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Received};
use steadfast::{Call, Client, LlmError, Target};

const SONNET: &str = "claude-sonnet-4-6";

fn weather() -> Tool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::new("get_weather", "Current weather").parameters(schema)
}

fn asking(turns: Vec<Turn>) -> Call {
    let call = Call::user("Oslo or Lima?").tool(weather()).reasoning(Reasoning::Effort(Effort::Low));
    turns.into_iter().fold(call, Call::then)
}

/// Two calls with thoughts before them, then an answer.
fn scripted(fake: FakeProviderBuilder) -> FakeProviderBuilder {
    let calls =
        Answer::tool_call("get_weather", r#"{"city":"Oslo"}"#).and_tool_call("get_weather", r#"{"city":"Lima"}"#);
    fake.then(calls.reasoning("Look up both.")).then(Answer::text("Lima is warmer.").reasoning("Easy."))
}

fn client(adapter: impl Provider, model: &str) -> Result<Client, Box<dyn Error>> {
    Ok(Client::builder(Target::new(adapter, model)).build()?)
}

async fn ask(client: &Client, call: Call, streamed: bool) -> Result<Reply, LlmError> {
    if streamed { client.stream(call).await?.into_reply().await } else { client.call(call).await }
}

fn results(reply: &Reply) -> Turn {
    let [first, second] = reply.tool_calls() else { panic!("{reply:?}") };
    Turn::tool_results([ToolResult::json(&first.id, json!({"temp_c": 4})), ToolResult::error(&second.id, "offline")])
}

/// Goes two rounds, and gives the second request as it arrived.
async fn round(fake: &FakeProvider, client: &Client, streamed: bool) -> Result<Received, Box<dyn Error>> {
    let first = ask(client, asking(Vec::new()), streamed).await?;
    assert_eq!((first.finish_reason(), first.reasoning()), (FinishReason::ToolCalls, Some("Look up both.")));
    assert_eq!(first.tool_calls()[1].arguments, json!({"city": "Lima"}));
    let second = ask(client, asking(vec![first.to_turn(), results(&first)]), streamed).await?;
    assert_eq!((second.text(), second.finish_reason()), ("Lima is warmer.", FinishReason::Stop));
    Ok(fake.journal().pop().ok_or("nothing arrived")?)
}

#[tokio::test]
async fn anthropic_takes_its_thoughts_calls_and_results_back() -> Outcome {
    for (model, streamed) in [(SONNET, false), (SONNET, true), ("claude-haiku-4-5", false), ("claude-opus-5-5", true)] {
        let fake = scripted(FakeProvider::anthropic()).start().await?;
        let client = client(Anthropic::new("k").base_url(&fake.base_url()), model)?;
        let body = round(&fake, &client, streamed).await?.json()?;
        let (said, answered) = (&body["messages"][1]["content"], &body["messages"][2]["content"]);
        assert_eq!((&said[0]["type"], &said[0]["thinking"]), (&json!("thinking"), &json!("Look up both.")), "{model}");
        assert_eq!((&said[1]["type"], &said[2]["type"]), (&json!("tool_use"), &json!("tool_use")));
        assert_eq!((&answered[0]["tool_use_id"], &answered[1]["is_error"]), (&said[1]["id"], &json!(true)));
    }
    Ok(())
}

#[tokio::test]
async fn ollama_takes_its_thoughts_calls_and_results_back() -> Outcome {
    for streamed in [false, true] {
        let fake = scripted(FakeProvider::ollama()).start().await?;
        let client = client(Ollama::new().base_url(&fake.base_url()), "example:8b")?;
        let body = round(&fake, &client, streamed).await?.json()?;
        let (said, answered) = (&body["messages"][1], &body["messages"][2]);
        assert_eq!(said["thinking"], "Look up both.");
        assert_eq!((&answered["role"], &answered["tool_name"]), (&json!("tool"), &json!("get_weather")));
        assert_eq!(answered["tool_call_id"], said["tool_calls"][0]["id"]);
        assert_eq!(body["messages"][3]["content"], "Error: offline");
    }
    Ok(())
}

#[tokio::test]
async fn a_thought_that_was_changed_is_refused_by_anthropic() -> Outcome {
    let fake = scripted(FakeProvider::anthropic()).start().await?;
    let client = client(Anthropic::new("k").base_url(&fake.base_url()), SONNET)?;
    let first = client.call(asking(Vec::new())).await?;
    let mut turn = first.to_turn();
    let Turn::Assistant { content: Some(content), .. } = &mut turn else { return Err("no thoughts".into()) };
    let mut parts = content.parts().to_vec();
    let Some(Part::Reasoning(block)) = parts.first_mut() else { return Err("no thoughts".into()) };
    block.data["thinking"] = "Look up one.".into();
    *content = parts.into();
    let error = client.call(asking(vec![turn, results(&first)])).await.err().ok_or("it was taken")?;
    assert!(error.provider_message().is_some_and(|said| said.contains("signature")), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_conversation_goes_on_at_another_provider() -> Outcome {
    let anthropic = scripted(FakeProvider::anthropic()).start().await?;
    let ollama = FakeProvider::ollama().otherwise(Answer::text("Lima.")).start().await?;
    let first = client(Anthropic::new("k").base_url(&anthropic.base_url()), SONNET)?;
    let second = client(Ollama::new().base_url(&ollama.base_url()), "example:8b")?;
    let called = first.call(asking(Vec::new())).await?;
    let reply = second.call(asking(vec![called.to_turn(), results(&called)])).await?;
    assert_eq!(reply.text(), "Lima.");
    let body = ollama.journal()[0].json()?;
    assert_eq!(body["messages"][1].get("thinking"), None, "another protocol's thoughts stay where they are");

    // And back: calls that nobody had thought about.
    let back = scripted(FakeProvider::ollama()).start().await?;
    let called = client(Ollama::new().base_url(&back.base_url()), "example:8b")?.call(asking(Vec::new())).await?;
    let haiku = FakeProvider::anthropic().otherwise(Answer::text("Lima.")).start().await?;
    let third = client(Anthropic::new("k").base_url(&haiku.base_url()), "claude-haiku-4-5")?;
    let reply = third.call(asking(vec![called.to_turn(), results(&called)])).await?;
    assert_eq!(reply.text(), "Lima.");
    Ok(())
}
