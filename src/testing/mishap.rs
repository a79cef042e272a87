//! What goes wrong in the middle of a streamed answer.

use super::answer::Failure;
use super::delivery::{Ending, Piece};
use super::protocol::Protocol;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// What goes wrong in the middle of a streamed answer, for [`Answer::after_events`](super::Answer::after_events).
///
/// ```
/// use std::time::Duration;
/// use steadfast::testing::{Answer, Mishap};
///
/// let stalls = Answer::text("Hello there, dear reader.").after_events(3, Mishap::pause(Duration::from_secs(90)));
/// let dies = Answer::text("Hello there, dear reader.").after_events(3, Mishap::reset());
/// ```
#[derive(Clone, Debug)]
pub struct Mishap(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Bytes(Bytes),
    End(Ending),
    Error(Failure),
    Oversized(usize),
    Pause(Duration),
    Pings(usize, Duration),
}

impl Mishap {
    /// Nothing comes for so long, then the answer goes on.
    pub fn pause(duration: Duration) -> Self {
        Self(Kind::Pause(duration))
    }

    /// These bytes come in between: garbage, or a frame that the protocol does not have.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }

    /// So many keep-alives come, each after a pause, and then the answer goes on.
    pub fn pings(count: usize, every: Duration) -> Self {
        Self(Kind::Pings(count, every))
    }

    /// One event of at least so many bytes comes.
    pub fn oversized(bytes: usize) -> Self {
        Self(Kind::Oversized(bytes))
    }

    /// The provider says, in an event, that it is overloaded, and ends the body.
    pub fn overloaded() -> Self {
        Self(Kind::Error(Failure::Overloaded))
    }

    /// The provider says, in an event, what it would say with this status, and ends the body.
    pub fn error(status: u16) -> Self {
        Self(Kind::Error(Failure::Status(status)))
    }

    /// The body ends as if that were all.
    pub fn end() -> Self {
        Self(Kind::End(Ending::KeepAlive))
    }

    /// The connection is closed inside the body.
    pub fn close() -> Self {
        Self(Kind::End(Ending::CloseWithoutTerminator))
    }

    /// The connection is reset.
    pub fn reset() -> Self {
        Self(Kind::End(Ending::Reset))
    }

    /// Nothing more comes, and the connection stays open.
    pub fn hang() -> Self {
        Self(Kind::End(Ending::Hang))
    }
}

/// What the journal says of it.
impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Bytes(bytes) => write!(f, "{} stray bytes", bytes.len()),
            Kind::End(Ending::Reset) => f.write_str("reset"),
            Kind::End(Ending::Hang) => f.write_str("hang"),
            Kind::End(Ending::KeepAlive) => f.write_str("end"),
            Kind::End(Ending::Close | Ending::CloseWithoutTerminator) => f.write_str("close"),
            Kind::Error(failure) => write!(f, "{failure}"),
            Kind::Oversized(bytes) => write!(f, "an event of {bytes} bytes"),
            Kind::Pause(duration) => write!(f, "a pause of {duration:?}"),
            Kind::Pings(count, every) => write!(f, "{count} keep-alives every {every:?}"),
        }
    }
}

/// The events of an answer with its mishaps among them, and how it then ends, if not as planned.
pub(super) fn befall(
    events: Vec<Piece>,
    mishaps: &[(usize, Mishap)],
    protocol: &dyn Protocol,
    id: &str,
) -> (Vec<Piece>, Option<Ending>) {
    let mut out = Vec::with_capacity(events.len() + mishaps.len());
    let last = events.len();
    let mut events = events.into_iter();
    for place in 0..=last {
        for (_, Mishap(kind)) in mishaps.iter().filter(|(after, _)| (*after).min(last) == place) {
            match kind {
                Kind::Bytes(bytes) => out.push(Piece::Bytes(bytes.clone())),
                Kind::End(ending) => return (out, Some(*ending)),
                Kind::Error(failure) => {
                    out.push(protocol.failure_event(failure, id));
                    return (out, None);
                }
                Kind::Oversized(bytes) => out.push(protocol.event(&"x".repeat(*bytes))),
                Kind::Pause(duration) => out.push(Piece::Pause(*duration)),
                Kind::Pings(count, every) => {
                    for _ in 0..*count {
                        out.extend([Piece::Pause(*every), protocol.ping()]);
                    }
                }
            }
        }
        out.extend(events.next());
    }
    (out, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::protocol::Plain;

    #[test]
    fn mishaps_stand_where_they_were_put() {
        let events = || ["a", "b", "c"].map(Piece::from).into();
        let second = Duration::from_secs(1);
        let (pieces, ending) = befall(events(), &[(1, Mishap::pause(second)), (2, Mishap::reset())], &Plain, "1");
        assert_eq!(pieces, ["a".into(), Piece::pause(second), "b".into()]);
        assert_eq!(ending, Some(Ending::Reset));

        let (pieces, ending) = befall(events(), &[(0, Mishap::bytes("!")), (9, Mishap::end())], &Plain, "1");
        assert_eq!(pieces, ["!", "a", "b", "c"].map(Piece::from));
        assert_eq!(ending, Some(Ending::KeepAlive));

        let (pieces, ending) = befall(events(), &[(1, Mishap::overloaded())], &Plain, "1");
        assert_eq!((pieces.len(), ending), (2, None), "an error is the last event");
    }
}
