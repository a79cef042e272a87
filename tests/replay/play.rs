//! Plays one case: starts its servers, makes a client, follows the script, and keeps what came of it.

use super::case::{Case, Kind, ScriptStep};
use super::expect::{Fault, judge};
use super::subject::{Aws, CallSpec, Client, NotConfigured, Outcome, Setup, Subject, TargetSetup, ToolSpec};
use super::world::{Seen, World};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep, timeout};

/// What came of a case.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// For each call of the script, in order; a concurrent group is one entry.
    pub(crate) outcomes: Vec<Vec<Value>>,
    /// What the servers saw, in order.
    pub(crate) seen: Vec<Seen>,
    pub(crate) total_ms: u64,
    /// What the second origin got.
    pub(crate) other_origin: String,
}

impl Run {
    /// The times between consecutive requests.
    pub(crate) fn waits_ms(&self) -> Vec<u64> {
        self.seen.windows(2).map(|pair| millis(pair[1].at.saturating_duration_since(pair[0].at))).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Failed(Vec<Fault>),
    Passed,
    Todo(String),
}

impl Verdict {
    pub(crate) fn trouble(field: &str, expected: &str, got: impl std::fmt::Display) -> Self {
        Self::Failed(vec![Fault::new(field, expected, got)])
    }
}

/// Plays a case and judges it.
pub(crate) async fn play(case: &Case, subject: &impl Subject, limit: Duration) -> Verdict {
    if case.kind == Kind::Note {
        return Verdict::Todo("a note, for a test written by hand".to_owned());
    }
    let expect = match case.expectations() {
        Ok(expect) => expect,
        Err(why) => return Verdict::trouble("case", "one that can be read", why),
    };
    let world = match World::start(case).await {
        Ok(world) => world,
        Err(error) => return Verdict::trouble("servers", "that they start", error),
    };
    let setup = setup(case, &world);
    let client = match catch_unwind(AssertUnwindSafe(|| subject.configure(&setup))) {
        Ok(Ok(client)) => client,
        Ok(Err(NotConfigured::Unsupported(what))) => return Verdict::Todo(what),
        Ok(Err(NotConfigured::Failed(why))) => return Verdict::trouble("configure", "a client", why),
        Err(panic) => return Verdict::trouble("configure", "a client", panic_message(&*panic)),
    };
    match timeout(limit, run(case, world, client)).await {
        Ok(Ok(run)) => verdict(case, &expect, &run),
        Ok(Err(why)) => Verdict::trouble("call", "an outcome", why),
        Err(_) => Verdict::trouble("call", "an outcome", format!("none within {limit:?}")),
    }
}

fn verdict(case: &Case, expect: &super::expect::Expect, run: &Run) -> Verdict {
    let unsupported = run.outcomes.iter().flatten().find_map(|outcome| outcome["unsupported"].as_str());
    if let Some(what) = unsupported {
        return Verdict::Todo(what.to_owned());
    }
    match judge(case, expect, run) {
        faults if faults.is_empty() => Verdict::Passed,
        faults => Verdict::Failed(faults),
    }
}

fn setup(case: &Case, world: &World) -> Setup {
    let mut config = case.config.clone();
    let user_info = config.base_url_userinfo.take();
    let base_url = |origin: &String| match &user_info {
        Some(user_info) => origin.replacen("://", &format!("://{user_info}@"), 1),
        None => origin.clone(),
    };
    let targets =
        world.origins().iter().map(|origin| TargetSetup { base_url: base_url(origin), model: "m-1".to_owned() });
    let default_key = match case.api.as_str() {
        "anthropic_messages" => "sk-ant-replay-0000",
        "gemini_generate" => "gk-replay-0000",
        "azure_chat" => "az-replay-0000",
        _ => "sk-replay-0000",
    };
    let aws = (case.api == "bedrock_converse").then(|| Aws {
        access_key_id: "AKIDREPLAY".to_owned(),
        secret_access_key: "replay-secret-access-key".to_owned(),
        region: "us-east-1".to_owned(),
        session_token: config.aws_session_token.take(),
    });
    Setup {
        api: case.api.clone(),
        preset: case.preset.clone(),
        targets: targets.collect(),
        api_key: config.api_key.take().unwrap_or_else(|| default_key.to_owned()),
        config,
        aws,
        stream: case.streams(),
        tools: case.uses_tools(),
        json: case.request.json,
    }
}

fn call_spec(case: &Case, step: &ScriptStep) -> CallSpec {
    CallSpec {
        prompt: "Hello".to_owned(),
        stream: case.streams(),
        json: case.request.json,
        tools: if case.uses_tools() { ToolSpec::all() } else { Vec::new() },
        cancel_after: step.cancel_after_ms.map(Duration::from_millis),
        drop_after_first_chunk: step.drop_after_first_chunk,
        estimated_tokens: step.estimated_tokens,
    }
}

/// A call that ends when it is let go of.
struct Running(JoinHandle<Outcome>);

impl Running {
    fn start<C: Client>(client: &Arc<C>, call: CallSpec) -> Self {
        let client = Arc::clone(client);
        Self(tokio::spawn(async move { client.call(call).await }))
    }

    async fn outcome(mut self) -> Result<Value, String> {
        match (&mut self.0).await {
            Ok(outcome) => serde_json::to_value(outcome).map_err(|error| error.to_string()),
            Err(error) => Err(error.try_into_panic().map_or_else(|e| e.to_string(), |panic| panic_message(&*panic))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run<C: Client>(case: &Case, mut world: World, client: C) -> Result<Run, String> {
    let client = Arc::new(client);
    let start = Instant::now();
    world.begin();
    let mut slots: Vec<Vec<Slot>> = Vec::new();
    for step in case.whole_script() {
        if let Some(sleep_ms) = step.sleep_ms {
            sleep(Duration::from_millis(sleep_ms)).await;
        }
        let start_one = || Running::start(&client, call_spec(case, &step));
        if step.concurrent {
            let running: Vec<_> = (0..step.call).map(|_| start_one()).collect();
            let mut group = Vec::new();
            for call in running {
                group.push(Slot::Done(call.outcome().await?));
            }
            slots.push(group);
            continue;
        }
        for _ in 0..step.call {
            let call = start_one();
            if step.background {
                slots.push(vec![Slot::Running(call)]);
                // It is to be on its way before the next one starts.
                yield_now().await;
            } else {
                slots.push(vec![Slot::Done(call.outcome().await?)]);
            }
        }
    }
    let mut outcomes = Vec::new();
    for slot in slots {
        let mut group = Vec::new();
        for call in slot {
            group.push(match call {
                Slot::Done(outcome) => outcome,
                Slot::Running(call) => call.outcome().await?,
            });
        }
        outcomes.push(group);
    }
    let total_ms = millis(start.elapsed());
    drop(client);
    // What a client sends although its calls have ended is still seen.
    sleep(Duration::from_millis(2)).await;
    Ok(Run { outcomes, seen: world.seen(), total_ms, other_origin: world.other_origin() })
}

enum Slot {
    Done(Value),
    Running(Running),
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from((duration + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a panic: {}", text.unwrap_or("without words"))
}
