//! The server: accepts connections, reads requests, plays answers.

use super::answer::{Answer, Content};
use super::delivery::{Delivery, Ending, Extent, Piece};
use super::http1::{self, Request};
use super::journal::Received;
use super::protocol::{Body, Protocol, Rendered};
use super::script::{Next, Script};
use super::wire::{NoRequest, Wire};
use bytes::Bytes;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Pieces are so far apart that a client does not read two at once,
const BETWEEN_PIECES: Duration = Duration::from_millis(1);
/// unless there are more of them than this.
const FEW_PIECES: usize = 300;

/// What the server and its handle have in common.
#[derive(Debug)]
pub(super) struct Shared {
    protocol: Arc<dyn Protocol>,
    port: u16,
    started: Instant,
    /// Counts requests, for ids: with the port they differ between servers too.
    serial: AtomicU64,
    state: Mutex<State>,
    pub(super) counts: watch::Sender<Counts>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) script: Script,
    pub(super) journal: Vec<Received>,
}

/// What can be waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) listening: bool,
    pub(super) requests: usize,
    pub(super) open: usize,
    pub(super) busy: usize,
}

/// What to do about a request.
enum Action {
    Close,
    Hang,
    Reset,
    Send(Rendered),
}

impl Shared {
    pub(super) fn new(protocol: Arc<dyn Protocol>, port: u16, script: Script) -> Self {
        let state = Mutex::new(State { script, journal: Vec::new() });
        let counts = watch::Sender::new(Counts { listening: true, ..Counts::default() });
        Self { protocol, port, started: Instant::now(), serial: AtomicU64::new(1), state, counts }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the counts are as wanted.
    pub(super) async fn wait_for(&self, wanted: impl FnMut(&Counts) -> bool + Send) {
        // It fails when the sender is gone, and that is `self`.
        let _ = self.counts.subscribe().wait_for(wanted).await;
    }

    /// Writes a request into the journal, and decides what is answered.
    fn receive(&self, request: Request, connection: u64, reused: bool) -> (Arc<Answer>, Action) {
        let id = format!("{:04x}{:012x}", self.port, self.serial.fetch_add(1, Ordering::Relaxed));
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
        self.counts.send_modify(|counts| counts.requests += 1);
        let action = match &answer.content {
            Content::CloseOnReuse => Action::Close,
            Content::Failure(failure) => {
                let model = asked.as_ref().ok().map(|asked| asked.model.as_str());
                Action::Send(self.protocol.failure(failure, model, &id))
            }
            Content::Hang => Action::Hang,
            Content::Raw(status) => {
                Action::Send(Rendered { status: *status, headers: Vec::new(), body: Body::Whole(Bytes::new()) })
            }
            Content::Reply(reply) => match asked {
                Ok(asked) => Action::Send(self.protocol.reply(reply, &asked, &id)),
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

/// Accepts until it is dropped; its connections end with it.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let _listening = Listening(Arc::clone(&shared));
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                number += 1;
                connections.spawn(converse(Arc::clone(&shared), stream, number));
            }
            // Out of descriptors, or the peer has gone already.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

struct Listening(Arc<Shared>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.listening = false);
    }
}

/// Counts a connection for as long as it is open.
struct Presence {
    shared: Arc<Shared>,
    busy: bool,
}

impl Presence {
    fn new(shared: Arc<Shared>) -> Self {
        shared.counts.send_modify(|counts| counts.open += 1);
        Self { shared, busy: false }
    }

    fn set_busy(&mut self, busy: bool) {
        if self.busy != busy {
            self.busy = busy;
            self.shared.counts.send_modify(|counts| if busy { counts.busy += 1 } else { counts.busy -= 1 });
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.shared.counts.send_modify(|counts| {
            counts.open -= 1;
            counts.busy -= usize::from(self.busy);
        });
    }
}

/// One connection, from its first byte to its last.
async fn converse(shared: Arc<Shared>, stream: TcpStream, number: u64) {
    // Declared before the wire, so dropped after it: what is counted as gone is closed.
    let mut presence = Presence::new(Arc::clone(&shared));
    let mut wire = Wire::new(stream);
    let mut reused = false;
    while wire.first_byte().await.is_ok() {
        presence.set_busy(true);
        let request = match wire.request().await {
            Ok(request) => request,
            Err(NoRequest::Gone) => return,
            Err(NoRequest::Unreadable(unreadable)) => {
                let headers = [("connection", "close"), ("content-type", "text/plain")];
                let headers = headers.map(|(name, value)| (name, value.as_bytes()));
                let mut refusal = http1::write_head(unreadable.status, headers);
                refusal.extend_from_slice(unreadable.why.as_bytes());
                let _ = wire.write(&refusal).await;
                return wire.close_unread().await;
            }
        };
        let keep_alive = request.keep_alive;
        let (answer, action) = shared.receive(request, number, reused);
        reused = true;
        match play(wire, &answer.delivery, &answer, action).await {
            Some(kept) if keep_alive => wire = kept,
            Some(kept) => return kept.close().await,
            None => return,
        }
        presence.set_busy(false);
    }
}

/// Plays one answer, and gives the connection back when it lives on.
async fn play(mut wire: Wire, delivery: &Delivery, answer: &Answer, action: Action) -> Option<Wire> {
    wire.pause(delivery.delay).await.ok()?;
    let rendered = match action {
        Action::Close => {
            wire.close().await;
            return None;
        }
        Action::Hang => {
            wire.gone().await;
            return None;
        }
        Action::Reset => {
            wire.reset();
            return None;
        }
        Action::Send(rendered) => rendered,
    };
    send(&mut wire, answer, rendered).await.ok()?;
    match delivery.ending {
        Ending::Close | Ending::CloseWithoutTerminator => wire.close().await,
        Ending::Hang => wire.gone().await,
        Ending::KeepAlive => return Some(wire),
        Ending::Reset => wire.reset_behind().await,
    }
    None
}

async fn send(wire: &mut Wire, answer: &Answer, rendered: Rendered) -> io::Result<()> {
    let delivery = &answer.delivery;
    let Rendered { status, headers, body } = rendered;
    let (pieces, streamed) = match (&delivery.pieces, &answer.body, body) {
        (Some(pieces), ..) => (pieces.clone(), true),
        (None, Some(body), _) => (vec![Piece::Bytes(body.clone())], false),
        (None, None, Body::Whole(body)) => (vec![Piece::Bytes(body)], false),
        (None, None, Body::Stream(pieces)) => (pieces, true),
    };
    let chunked = delivery.chunked || (streamed && delivery.pieces.is_none());
    let total = pieces.iter().map(length).sum::<usize>();
    let head = write_head(answer, status, &headers, chunked, total);

    let mut left = match delivery.extent {
        Extent::First(bytes) => bytes,
        Extent::Half => total / 2,
        Extent::Whole => usize::MAX,
    };
    let frame = |bytes: &[u8]| if chunked { http1::write_chunk(bytes) } else { bytes.to_vec() };
    let last: &[u8] =
        if chunked && delivery.ending.terminates() && left == usize::MAX { http1::LAST_CHUNK } else { b"" };

    if !streamed && delivery.drip.is_none() {
        let mut whole = head;
        for piece in pieces {
            if let Piece::Bytes(bytes) = piece {
                whole.extend(frame(&bytes[..bytes.len().min(left)]));
            }
        }
        whole.extend_from_slice(last);
        return wire.write(&whole).await;
    }

    wire.write(&head).await?;
    let gap = if pieces.len() <= FEW_PIECES { BETWEEN_PIECES } else { Duration::ZERO };
    let (step, gap) = delivery.drip.unwrap_or((usize::MAX, gap));
    for piece in pieces {
        match piece {
            Piece::Pause(duration) => wire.pause(duration).await?,
            Piece::Bytes(mut bytes) => {
                bytes.truncate(left);
                left -= bytes.len();
                while !bytes.is_empty() {
                    let part = bytes.split_to(step.min(bytes.len()));
                    wire.write(&frame(&part)).await?;
                    wire.pause(gap).await?;
                }
            }
        }
    }
    wire.write(last).await
}

fn length(piece: &Piece) -> usize {
    match piece {
        Piece::Bytes(bytes) => bytes.len(),
        Piece::Pause(_) => 0,
    }
}

/// The head: what the answer's author wrote comes first, and replaces what would be there by itself.
fn write_head(answer: &Answer, status: u16, own: &[(&str, String)], chunked: bool, total: usize) -> Vec<u8> {
    let written = |name: &str| answer.headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name));
    let mut headers: Vec<(&str, &[u8])> =
        answer.headers.iter().map(|(name, value)| (name.as_str(), &value[..])).collect();
    headers.extend(own.iter().filter(|(name, _)| !written(name)).map(|(name, value)| (*name, value.as_bytes())));
    let length = match answer.delivery.announced {
        Some(length) => length.to_string(),
        None => total.to_string(),
    };
    let bodiless = matches!(status, 100..200 | 204 | 304) && total == 0 && answer.delivery.announced.is_none();
    if chunked && !written("transfer-encoding") {
        headers.push(("transfer-encoding", b"chunked"));
    } else if !chunked && !bodiless && !written("content-length") && !written("transfer-encoding") {
        headers.push(("content-length", length.as_bytes()));
    }
    http1::write_head(status, headers)
}
