//! Speaks the line protocol of an outside referee: it configures a client, makes calls, and prints what came back.
//!
//! One JSON object a line on standard input (`configure`, `call`, `end`), one a line on standard output. It knows no
//! case and no expectation, and repairs nothing: what this crate returns is what is printed.

#[path = "../tests/replay/mod.rs"]
mod replay;

use replay::case::Config;
use replay::subject::{Aws, CallSpec, Client, NotConfigured, Setup, Subject, TargetSetup, ToolSpec};
use replay::under_test::{Steadfast, SteadfastClient};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

#[derive(Deserialize)]
struct Message {
    id: u64,
    op: String,
    #[serde(flatten)]
    rest: Value,
}

#[derive(Deserialize)]
struct Configure {
    api: String,
    preset: Option<String>,
    targets: Vec<Place>,
    config: Value,
    api_key: String,
    aws: Option<AwsKeys>,
}

#[derive(Deserialize)]
struct Place {
    base_url: String,
    model: String,
}

#[derive(Deserialize)]
struct AwsKeys {
    access_key_id: String,
    secret_access_key: String,
    region: String,
    session_token: Option<String>,
}

#[derive(Deserialize)]
struct MakeCall {
    prompt: String,
    stream: bool,
    json: bool,
    #[serde(default)]
    tools: Vec<Tool>,
    cancel_after_ms: Option<u64>,
    #[serde(default)]
    drop_after_first_chunk: bool,
    estimated_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: String,
    parameters: Value,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut client: Option<Arc<SteadfastClient>> = None;
    let mut calls = JoinSet::new();
    while let Some(line) = lines.next_line().await? {
        let Ok(Message { id, op, rest }) = serde_json::from_str(&line) else { continue };
        match op.as_str() {
            "configure" => {
                calls.abort_all();
                client = None;
                match configure(rest) {
                    Ok(made) => {
                        client = Some(Arc::new(made));
                        say(id, json!({"configured": true, "not_exposed": []}));
                    }
                    Err(NotConfigured::Unsupported(what)) => say(id, json!({"unsupported": what})),
                    Err(NotConfigured::Failed(why)) => say(id, json!({"error": why})),
                }
            }
            "call" => match (&client, serde_json::from_value(rest)) {
                (Some(client), Ok(call)) => {
                    let client = Arc::clone(client);
                    calls.spawn(async move { say(id, answer(&client, call).await) });
                }
                (None, _) => say(id, json!({"error": "not configured"})),
                (_, Err(error)) => say(id, json!({"error": error.to_string()})),
            },
            "end" => {
                calls.abort_all();
                client = None;
                say(id, json!({"ended": true}));
            }
            other => say(id, json!({"error": format!("unknown op {other}")})),
        }
    }
    Ok(())
}

fn configure(message: Value) -> Result<SteadfastClient, NotConfigured> {
    let failed = |error: serde_json::Error| NotConfigured::Failed(error.to_string());
    let Configure { api, preset, targets, mut config, api_key, aws } =
        serde_json::from_value(message).map_err(failed)?;
    if let Some(settings) = config.as_object_mut() {
        settings.retain(|_, value| !value.is_null()); // what is not set has the default
    }
    let config: Config = serde_json::from_value(config).map_err(failed)?;
    let setup = Setup {
        api,
        preset,
        targets: (targets.into_iter()).map(|Place { base_url, model }| TargetSetup { base_url, model }).collect(),
        config,
        api_key,
        aws: aws.map(|keys| Aws {
            access_key_id: keys.access_key_id,
            secret_access_key: keys.secret_access_key,
            region: keys.region,
            session_token: keys.session_token,
        }),
        stream: false,
        tools: false,
        json: false,
    };
    Steadfast.configure(&setup)
}

async fn answer(client: &SteadfastClient, call: MakeCall) -> Value {
    let tools = call.tools.into_iter();
    let spec = CallSpec {
        prompt: call.prompt,
        stream: call.stream,
        json: call.json,
        tools: tools.map(|Tool { name, description, parameters }| ToolSpec { name, description, parameters }).collect(),
        cancel_after: call.cancel_after_ms.map(Duration::from_millis),
        drop_after_first_chunk: call.drop_after_first_chunk,
        estimated_tokens: call.estimated_tokens,
    };
    serde_json::to_value(client.call(spec).await).unwrap_or_else(|error| json!({"error": error.to_string()}))
}

/// One line on standard output.
fn say(id: u64, mut answer: Value) {
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("id".to_owned(), id.into());
    }
    println!("{answer}");
}
