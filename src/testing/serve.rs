//! The server: accepts connections, reads requests, plays answers.

use super::answer::Answer;
use super::backend::{Action, Backend};
use super::delivery::{Ending, Piece};
use super::http1::{self, Request};
use super::outgoing::{Outgoing, Pace};
use super::wire::{NoRequest, Wire};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Pieces are so far apart that a client does not read two at once,
const BETWEEN_PIECES: Duration = Duration::from_millis(1);
/// unless there are more of them than this.
const FEW_PIECES: usize = 300;

/// What the server and its handle have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) backend: Backend,
    pub(super) counts: watch::Sender<Counts>,
}

/// What can be waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) listening: bool,
    pub(super) requests: usize,
    pub(super) open: usize,
    pub(super) busy: usize,
}

impl Shared {
    pub(super) fn new(backend: Backend) -> Self {
        Self { backend, counts: watch::Sender::new(Counts { listening: true, ..Counts::default() }) }
    }

    /// Waits until the counts are as wanted.
    pub(super) async fn wait_for(&self, wanted: impl FnMut(&Counts) -> bool + Send) {
        // It fails when the sender is gone, and that is `self`.
        let _ = self.counts.subscribe().wait_for(wanted).await;
    }

    fn receive(&self, request: Request, connection: u64, reused: bool) -> (Arc<Answer>, Action) {
        let decided = self.backend.receive(request, connection, reused);
        self.counts.send_modify(|counts| counts.requests += 1);
        decided
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
        match play(wire, &answer, action).await {
            Some(kept) if keep_alive => wire = kept,
            Some(kept) => return kept.close().await,
            None => return,
        }
        presence.set_busy(false);
    }
}

/// Plays one answer, and gives the connection back when it lives on.
async fn play(mut wire: Wire, answer: &Answer, action: Action) -> Option<Wire> {
    wire.pause(answer.delivery.delay).await.ok()?;
    let rendered = match action {
        Action::Close => {
            wire.close().await;
            return None;
        }
        Action::Hang => {
            wire.gone().await;
            return None;
        }
        // The connection stands already: a reset is as near to a refusal as it gets.
        Action::Refuse | Action::Reset => {
            wire.reset();
            return None;
        }
        Action::Send(rendered) => rendered,
    };
    let outgoing = Outgoing::of(answer, rendered);
    let ending = outgoing.ending;
    send(&mut wire, outgoing).await.ok()?;
    match ending {
        Ending::Close | Ending::CloseWithoutTerminator => wire.close().await,
        Ending::Hang => wire.gone().await,
        Ending::KeepAlive => return Some(wire),
        Ending::Reset => wire.reset_behind().await,
    }
    None
}

async fn send(wire: &mut Wire, outgoing: Outgoing) -> io::Result<()> {
    let Outgoing { status, headers, chunked, pieces, pace, terminated, ending: _ } = outgoing;
    let head = http1::write_head(status, headers.iter().map(|(name, value)| (name.as_str(), &value[..])));
    let frame = |bytes: &[u8]| if chunked { http1::write_chunk(bytes) } else { bytes.to_vec() };
    let last: &[u8] = if terminated { http1::LAST_CHUNK } else { b"" };

    if pace == Pace::AtOnce {
        let mut whole = head;
        for piece in pieces {
            if let Piece::Bytes(bytes) = piece {
                whole.extend(frame(&bytes));
            }
        }
        whole.extend_from_slice(last);
        return wire.write(&whole).await;
    }

    wire.write(&head).await?;
    let gap = if pace == Pace::Own || pieces.len() > FEW_PIECES { Duration::ZERO } else { BETWEEN_PIECES };
    for piece in pieces {
        match piece {
            Piece::Pause(duration) => wire.pause(duration).await?,
            Piece::Bytes(bytes) => {
                wire.write(&frame(&bytes)).await?;
                wire.pause(gap).await?;
            }
        }
    }
    wire.write(last).await
}
