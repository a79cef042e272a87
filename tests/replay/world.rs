//! The servers of a case: one a target, and a second origin that only listens.

use super::case::{Case, Chunk, Content, Network, Response, Step, Then};
use super::placeholders::fill;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use steadfast::testing::{Answer, FakeProvider, Fault, Piece, RefusedProvider};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// A refusal leaves no trace that every system shows: after so long it is taken for granted.
const REFUSED_BY_NOW: Duration = Duration::from_millis(400);

/// One request, as a target saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) target: usize,
    pub(crate) at: Instant,
}

#[derive(Debug)]
pub(crate) struct World {
    origins: Vec<String>,
    /// Held, so that they listen.
    _up: Vec<FakeProvider>,
    down: Vec<(usize, RefusedProvider)>,
    /// Those that were down.
    opened: JoinSet<io::Result<FakeProvider>>,
    other: FakeProvider,
    script: Arc<Script>,
}

/// The answers of all targets.
#[derive(Debug)]
struct Script {
    other_origin: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    steps: Vec<Step>,
    seen: Vec<Seen>,
}

impl World {
    pub(crate) async fn start(case: &Case) -> io::Result<Self> {
        let other = FakeProvider::http().otherwise(Answer::raw(404).json(serde_json::json!({}))).start().await?;
        let state = Mutex::new(State { steps: case.all_steps(), seen: Vec::new() });
        let script = Arc::new(Script { other_origin: other.origin(), state });
        let (mut origins, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        for target in 0..case.config.targets {
            let answers = Arc::clone(&script);
            let server = FakeProvider::http()
                .otherwise_with(move |received| answers.next(target, received.reused, Instant::now()))
                .refused()?;
            origins.push(server.origin());
            if script.refuses(target).is_some() {
                down.push((target, server));
            } else {
                up.push(server.listen().await?);
            }
        }
        Ok(Self { origins, _up: up, down, opened: JoinSet::new(), other, script })
    }

    /// The origins of the targets, in order.
    pub(crate) fn origins(&self) -> &[String] {
        &self.origins
    }

    /// The calls begin: a target that refuses first and answers later listens once a connection was refused.
    pub(crate) fn begin(&mut self) {
        for (target, server) in std::mem::take(&mut self.down) {
            if self.script.refuses(target) == Some(Refusal::ForEver) {
                self.down.push((target, server));
                continue;
            }
            let script = Arc::clone(&self.script);
            self.opened.spawn(async move {
                let (start, before) = (Instant::now(), resets_sent());
                while start.elapsed() < REFUSED_BY_NOW && (before.is_none() || resets_sent() == before) {
                    sleep(Duration::from_millis(1)).await;
                }
                script.refused(target);
                server.listen().await
            });
        }
    }

    /// What the targets saw, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.state().seen.clone()
    }

    /// Everything that the second origin got.
    pub(crate) fn other_origin(&self) -> String {
        let texts = self.other.journal().into_iter().map(|received| {
            let headers = received.headers.iter().map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                format!("{name}: {value}\n")
            });
            let body = String::from_utf8_lossy(&received.body);
            format!("{} {}\n{}\n{body}\n", received.method, received.path, headers.collect::<String>())
        });
        texts.collect()
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Refusal {
    ForEver,
    Once,
}

impl Script {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next thing a target does is to refuse.
    fn refuses(&self, target: usize) -> Option<Refusal> {
        let state = self.state();
        let step = state.front(target).map(|at| &state.steps[at])?;
        (step.network == Some(Network::Refuse)).then_some(if step.repeat { Refusal::ForEver } else { Refusal::Once })
    }

    /// A connection was refused: that step is played.
    fn refused(&self, target: usize) {
        let mut state = self.state();
        if let Some(at) = state.front(target) {
            state.steps.remove(at);
        }
    }

    fn next(&self, target: usize, reused: bool, at: Instant) -> Answer {
        let mut state = self.state();
        state.seen.push(Seen { target, at });
        while let Some(at) = state.front(target) {
            let step = if state.steps[at].repeat { state.steps[at].clone() } else { state.steps.remove(at) };
            let skipped = step.network == Some(Network::CloseOnReuse) && !reused;
            if !skipped {
                return self.answer(&step);
            }
            if step.repeat {
                break;
            }
        }
        Answer::raw(500).json(serde_json::json!({"error": {"message": "no step is left in the script"}}))
    }

    fn answer(&self, step: &Step) -> Answer {
        let answer = match (&step.network, &step.response, &step.stream) {
            (Some(Network::CloseOnReuse), ..) => Fault::close_on_reuse(),
            (Some(Network::Hang), ..) => Fault::hang(),
            // A refusal behind an answered request cannot be played; a reset is the closest.
            (Some(Network::Refuse | Network::ResetAfterRequest), ..) => Fault::reset_before_head(),
            (None, Some(response), _) => self.http(response),
            (None, None, Some(stream)) => self.stream(stream),
            (None, None, None) => Answer::raw(500),
        };
        let before_head = step.response.as_ref().map_or(0, |response| response.delivery.before_head_ms);
        answer.delay(Duration::from_millis(step.delay_ms + before_head))
    }

    fn head(&self, response: &Response) -> Answer {
        response
            .headers
            .iter()
            .fold(Answer::raw(response.status), |answer, (name, value)| answer.header(name, self.fill(value)))
    }

    fn http(&self, response: &Response) -> Answer {
        let delivery = &response.delivery;
        let mut answer = self.head(response);
        if let Some(body) = &response.body {
            answer = answer.body(self.bytes(body));
        }
        if let Some(length) = delivery.content_length {
            answer = answer.announce_length(length);
        }
        if delivery.chunked {
            answer = answer.chunked();
        }
        if let Some(bytes) = delivery.bytes_per_tick {
            answer = answer.drip(bytes, Duration::from_millis(delivery.tick_ms));
        }
        match delivery.then {
            None => answer,
            Some(Then::Close) => answer.then_close(),
            Some(then) => ending(answer, then),
        }
    }

    /// A stream that closes ends its body; its connection stays usable.
    fn stream(&self, response: &Response) -> Answer {
        let pieces = response.chunks.iter().map(|chunk| match chunk {
            Chunk::Content(content) => Piece::bytes(self.bytes(content)),
            Chunk::Pause { delay_ms } => Piece::pause(Duration::from_millis(*delay_ms)),
        });
        let answer = self.head(response).pieces(pieces).chunked();
        match response.then {
            None | Some(Then::Close) => answer,
            Some(then) => ending(answer, then),
        }
    }

    fn bytes(&self, content: &Content) -> Vec<u8> {
        match content {
            Content::Text(text) => self.fill(text).into_bytes(),
            Content::Base64 { b64 } => base64(b64),
            Content::Repeat { repeat, times } => repeat.repeat(*times).into_bytes(),
        }
    }

    #[allow(clippy::disallowed_methods)] // what is served is dated by the wall clock, as the client's is
    fn fill(&self, text: &str) -> String {
        fill(text, &self.other_origin, SystemTime::now())
    }
}

fn ending(answer: Answer, then: Then) -> Answer {
    match then {
        Then::Close => answer.then_close(),
        Then::CloseWithoutTerminator => answer.close_without_terminator(),
        Then::Hang => answer.then_hang(),
        Then::Reset => answer.then_reset(),
    }
}

impl State {
    fn front(&self, target: usize) -> Option<usize> {
        self.steps.iter().position(|step| step.target.is_none_or(|of| of == target))
    }
}

/// Decodes the standard alphabet; what is not of it is passed over.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0);
    for digit in text.bytes().filter_map(|byte| ALPHABET.iter().position(|letter| *letter == byte)) {
        bits = bits << 6 | u32::try_from(digit).unwrap_or(0);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held).unwrap_or(0));
            bits &= (1 << held) - 1;
        }
    }
    bytes
}

/// How many resets this system has sent: the only trace of a refused connection, where there is one.
fn resets_sent() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp").ok()?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == "OutRsts")?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in
            [("", &b""[..]), ("TQ==", b"M"), ("TWE=", b"Ma"), ("TWFu", b"Man"), ("/+8AAQ==", &[255, 239, 0, 1])]
        {
            assert_eq!(base64(text), bytes);
        }
    }
}
