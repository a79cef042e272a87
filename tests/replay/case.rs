//! The case format of `fixtures/cases/README.md`.

use super::expect::Expect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// One real failure, and what is to come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) theme: String,
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) api: String,
    pub(crate) preset: Option<String>,
    #[serde(default)]
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) why: String,
    #[serde(default)]
    pub(crate) contested: bool,
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) request: Shape,
    #[serde(default)]
    pub(crate) config: Config,
    pub(crate) response: Option<Response>,
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    #[serde(default)]
    pub(crate) script: Vec<ScriptStep>,
    pub(crate) scenario: Option<String>,
    pub(crate) expect: Value,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Http,
    Note,
    Sequence,
    Stream,
}

/// What kind of call is made.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Shape {
    pub(crate) stream: bool,
    pub(crate) tools: bool,
    pub(crate) json: bool,
}

/// Settings of the client under test. What a case does not name is off or generous.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) max_retries: u32,
    pub(crate) base_delay_ms: u64,
    pub(crate) max_delay_ms: u64,
    /// `none`, `full`, `equal`, ….
    pub(crate) jitter: String,
    pub(crate) timeout_ms: u64,
    pub(crate) connect_timeout_ms: u64,
    pub(crate) idle_timeout_ms: u64,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) max_retry_after_ms: u64,
    pub(crate) max_event_bytes: Option<usize>,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) limiter: Option<Limiter>,
    /// The client's default beside the target's own `max_retries`.
    pub(crate) default_max_retries: Option<u32>,
    /// The length of the chain.
    pub(crate) targets: usize,
    pub(crate) stream: bool,
    pub(crate) tools: bool,
    pub(crate) api_key: Option<String>,
    pub(crate) key_header: Option<String>,
    pub(crate) aws_session_token: Option<String>,
    pub(crate) base_url_userinfo: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_retries: 0,
            base_delay_ms: 20,
            max_delay_ms: 100,
            jitter: "none".to_owned(),
            timeout_ms: 10_000,
            connect_timeout_ms: 5_000,
            idle_timeout_ms: 10_000,
            deadline_ms: None,
            max_retry_after_ms: 60_000,
            max_event_bytes: None,
            breaker: None,
            limiter: None,
            default_max_retries: None,
            targets: 1,
            stream: false,
            tools: false,
            api_key: None,
            key_header: None,
            aws_session_token: None,
            base_url_userinfo: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Breaker {
    pub(crate) consecutive: u32,
    pub(crate) cooldown_ms: u64,
    pub(crate) half_open_probes: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limiter {
    pub(crate) max_concurrent: Option<usize>,
    pub(crate) tokens_per_minute: Option<u64>,
    pub(crate) max_queue_time_ms: Option<u64>,
}

/// What the server sends: `body` whole, or `chunks` as a stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Response {
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Content>,
    #[serde(default)]
    pub(crate) delivery: Delivery,
    #[serde(default)]
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) then: Option<Then>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Base64 { b64: String },
    Repeat { repeat: String, times: usize },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Chunk {
    Pause { delay_ms: u64 },
    Content(Content),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Delivery {
    pub(crate) content_length: Option<u64>,
    pub(crate) chunked: bool,
    pub(crate) then: Option<Then>,
    pub(crate) before_head_ms: u64,
    pub(crate) bytes_per_tick: Option<usize>,
    pub(crate) tick_ms: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Then {
    Close,
    CloseWithoutTerminator,
    Hang,
    Reset,
}

/// One answer of a sequence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) response: Option<Response>,
    pub(crate) stream: Option<Response>,
    pub(crate) network: Option<Network>,
    #[serde(default)]
    pub(crate) delay_ms: u64,
    #[serde(default)]
    pub(crate) repeat: bool,
    pub(crate) target: Option<usize>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Network {
    CloseOnReuse,
    Hang,
    Refuse,
    ResetAfterRequest,
}

/// One step of what the client is made to do.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScriptStep {
    pub(crate) call: usize,
    pub(crate) sleep_ms: Option<u64>,
    pub(crate) concurrent: bool,
    pub(crate) background: bool,
    pub(crate) cancel_after_ms: Option<u64>,
    pub(crate) drop_after_first_chunk: bool,
    pub(crate) estimated_tokens: Option<u64>,
}

impl Case {
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let case: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let complete = match case.kind {
            Kind::Http | Kind::Stream => case.response.is_some(),
            Kind::Note => return Ok(case),
            Kind::Sequence => case.steps.iter().all(|step| {
                let says = [step.response.is_some(), step.stream.is_some(), step.network.is_some()];
                says.into_iter().filter(|said| *said).count() == 1
            }),
        };
        if !complete {
            return Err("a response is missing, or one step has several".to_owned());
        }
        case.expectations()?;
        Ok(case)
    }

    pub(crate) fn expectations(&self) -> Result<Expect, String> {
        Expect::read(&self.expect)
    }

    pub(crate) fn streams(&self) -> bool {
        self.request.stream || self.config.stream
    }

    pub(crate) fn uses_tools(&self) -> bool {
        self.request.tools || self.config.tools
    }

    /// What the servers answer, in order, whatever the kind.
    pub(crate) fn all_steps(&self) -> Vec<Step> {
        let always = |response: Option<Response>, stream: Option<Response>| {
            vec![Step { response, stream, network: None, delay_ms: 0, repeat: true, target: None }]
        };
        match self.kind {
            Kind::Http => always(self.response.clone(), None),
            Kind::Note => Vec::new(),
            Kind::Sequence => self.steps.clone(),
            Kind::Stream => always(None, self.response.clone()),
        }
    }

    /// What the client is made to do, whatever the kind: by default, one call.
    pub(crate) fn whole_script(&self) -> Vec<ScriptStep> {
        if self.script.is_empty() { vec![ScriptStep { call: 1, ..ScriptStep::default() }] } else { self.script.clone() }
    }

    /// Whether the clock is part of the case, so that nothing else should run beside it.
    pub(crate) fn is_timed(&self) -> bool {
        let asks = |key: &str| self.expect.get(key).is_some();
        asks("waits")
            || asks("total_ms")
            || asks("complete_within_ms")
            || self.steps.iter().any(|step| step.network == Some(Network::Refuse))
            || self.script.iter().any(|step| {
                step.sleep_ms.is_some() || step.background || step.concurrent || step.cancel_after_ms.is_some()
            })
    }
}

/// A line that is to be replayed: a case, or why it is none.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) case: Result<Case, String>,
}

/// Reads a file of cases, or all such files in a folder.
pub(crate) fn load(path: &Path) -> io::Result<Vec<Line>> {
    if path.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        let mut files = entries.collect::<io::Result<Vec<_>>>()?;
        files.retain(|file| file.is_dir() || file.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort();
        let lines = files.iter().map(|file| load(file)).collect::<io::Result<Vec<_>>>()?;
        return Ok(lines.concat());
    }
    let text = fs::read_to_string(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        let case = Case::read(line);
        let name = case.as_ref().map_or_else(|_| format!("{}:{}", path.display(), number + 1), |case| case.id.clone());
        Line { name, case }
    });
    Ok(read.collect())
}
