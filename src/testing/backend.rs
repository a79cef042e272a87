//! The provider behind the wire: what it answers, in whose words, and what it has seen. Sockets and memory share it.

use super::answer::{Answer, Content};
use super::http1::Request;
use super::journal::Received;
use super::mishap::befall;
use super::protocol::{Body, Protocol, Rendered};
use super::script::{Next, Script};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// A dialect, a script and a journal.
#[derive(Debug)]
pub(super) struct Backend {
    protocol: Arc<dyn Protocol>,
    /// Begins every id, so that two servers do not give the same.
    place: u16,
    started: Instant,
    /// Counts requests, for ids.
    serial: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) script: Script,
    pub(super) journal: Vec<Received>,
}

/// What to do about a request.
pub(super) enum Action {
    Close,
    Hang,
    Refuse,
    Reset,
    Send(Rendered),
}

impl Backend {
    pub(super) fn new(protocol: Arc<dyn Protocol>, place: u16, script: Script) -> Self {
        let state = Mutex::new(State { script, journal: Vec::new() });
        Self { protocol, place, started: Instant::now(), serial: AtomicU64::new(1), state }
    }

    pub(super) fn protocol(&self) -> &dyn Protocol {
        &*self.protocol
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a request into the journal, and decides what is answered.
    pub(super) fn receive(&self, request: Request, connection: u64, reused: bool) -> (Arc<Answer>, Action) {
        let id = format!("{:04x}{:012x}", self.place, self.serial.fetch_add(1, Ordering::Relaxed));
        let asked = self.protocol.read(&request, &id);
        let Request { method, path, headers, body, keep_alive: _ } = request;
        let (at, answered) = (self.started.elapsed(), String::new());
        let mut received = Received { at, connection, reused, method, path, headers, body, answered };
        let mut state = self.state();
        let answer = match state.script.take(reused) {
            Next::Answer(answer) => answer,
            Next::Rule(rule) => {
                // It may look at the journal itself.
                drop(state);
                let answer = Arc::new(rule(&received));
                state = self.state();
                answer
            }
        };
        received.answered = match (&answer.content, &asked) {
            (Content::Reply(_), Err(refusal)) => format!("{} in place of {answer}", refusal.status),
            _ => answer.to_string(),
        };
        state.journal.push(received);
        drop(state);
        let action = match &answer.content {
            Content::CloseOnReuse => Action::Close,
            Content::ConnectionRefused => Action::Refuse,
            Content::Failure(failure) => {
                let model = asked.as_ref().ok().map(|asked| asked.model.as_str());
                Action::Send(self.protocol.failure(failure, model, &id))
            }
            Content::Hang => Action::Hang,
            Content::Raw(status) => {
                Action::Send(Rendered { status: *status, headers: Vec::new(), body: Body::Whole(Bytes::new()) })
            }
            Content::Reply(reply) => match asked {
                Ok(asked) => {
                    let mut rendered = self.protocol.reply(reply, &asked, &id);
                    if let (Body::Stream(events), mishaps @ [_, ..]) = (&mut rendered.body, &*answer.delivery.mishaps) {
                        let events = std::mem::take(events);
                        let (pieces, ending) = befall(events, mishaps, &*self.protocol, &id);
                        rendered.body = match ending {
                            Some(ending) => Body::Ended(pieces, ending),
                            None => Body::Stream(pieces),
                        };
                    }
                    Action::Send(rendered)
                }
                Err(refusal) => {
                    // The refusal has its own body, and none of the oddities of the answer it replaces.
                    return (Arc::new(Answer::raw(refusal.status)), Action::Send(refusal));
                }
            },
            Content::ResetBeforeHead => Action::Reset,
        };
        (answer, action)
    }
}
