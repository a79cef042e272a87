//! An answer on its way out: its head, and its body cut into what is written at a time.

use super::answer::Answer;
use super::delivery::{Ending, Extent, Piece};
use super::protocol::{Body, Rendered};
use bytes::Bytes;
use std::time::Duration;

/// An answer in its final shape, whatever carries it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) status: u16,
    /// What the answer's author wrote comes first, and replaces what would be there by itself.
    pub(super) headers: Vec<(String, Bytes)>,
    pub(super) chunked: bool,
    /// What is sent of the body, in order. Pauses of a drip are among them.
    pub(super) pieces: Vec<Piece>,
    pub(super) pace: Pace,
    /// Whether a chunked body gets the chunk that ends it.
    pub(super) terminated: bool,
    pub(super) ending: Ending,
}

/// How fast the pieces go out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pace {
    /// Together with the head.
    AtOnce,
    /// One by one, so far apart that none is read with another.
    Apart,
    /// As their own pauses say.
    Own,
}

impl Outgoing {
    pub(super) fn of(answer: &Answer, rendered: Rendered) -> Self {
        let delivery = &answer.delivery;
        let Rendered { status, headers, body } = rendered;
        let mut ending = delivery.ending;
        let (mut pieces, streamed) = match (&delivery.pieces, &answer.body, body) {
            (Some(pieces), ..) => (pieces.clone(), true),
            (None, Some(body), _) => (vec![Piece::Bytes(body.clone())], false),
            (None, None, Body::Whole(body)) => (vec![Piece::Bytes(body)], false),
            (None, None, Body::Stream(pieces)) => (pieces, true),
            (None, None, Body::Ended(pieces, own)) => {
                ending = own;
                (pieces, true)
            }
        };
        if let Some(step) = delivery.split {
            pieces = split(pieces, step);
        }
        let chunked = delivery.chunked || (streamed && delivery.pieces.is_none());
        let total = pieces.iter().map(Piece::len).sum::<usize>();
        let left = match delivery.extent {
            Extent::First(bytes) => bytes,
            Extent::Half => total / 2,
            Extent::Whole => usize::MAX,
        };
        Self {
            status,
            headers: written_headers(answer, status, headers, chunked, total),
            chunked,
            pieces: cut(pieces, left, delivery.drip),
            pace: match (&delivery.drip, streamed) {
                (Some(_), _) => Pace::Own,
                (None, true) => Pace::Apart,
                (None, false) => Pace::AtOnce,
            },
            terminated: chunked && ending.terminates() && left == usize::MAX,
            ending,
        }
    }
}

/// The same bytes, so many at a time. Pauses stay between the bytes that they stood between.
fn split(pieces: Vec<Piece>, step: usize) -> Vec<Piece> {
    let (mut out, mut run) = (Vec::new(), Vec::new());
    let flush = |run: &mut Vec<u8>, out: &mut Vec<Piece>| {
        out.extend(run.chunks(step).map(|bytes| Piece::Bytes(Bytes::copy_from_slice(bytes))));
        run.clear();
    };
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => run.extend_from_slice(&bytes),
            Piece::Pause(_) => {
                flush(&mut run, &mut out);
                out.push(piece);
            }
        }
    }
    flush(&mut run, &mut out);
    out
}

/// The first `left` bytes of the pieces, so many bytes at a time where they drip.
fn cut(pieces: Vec<Piece>, mut left: usize, drip: Option<(usize, Duration)>) -> Vec<Piece> {
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let Piece::Bytes(mut bytes) = piece else {
            out.push(piece);
            continue;
        };
        bytes.truncate(left);
        left -= bytes.len();
        match drip {
            None if bytes.is_empty() => {}
            None => out.push(Piece::Bytes(bytes)),
            Some((step, tick)) => {
                while !bytes.is_empty() {
                    out.push(Piece::Bytes(bytes.split_to(step.min(bytes.len()))));
                    out.push(Piece::Pause(tick));
                }
            }
        }
    }
    out
}

fn written_headers(
    answer: &Answer,
    status: u16,
    own: Vec<(&'static str, String)>,
    chunked: bool,
    total: usize,
) -> Vec<(String, Bytes)> {
    let written = |name: &str| answer.headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name));
    let mut headers = answer.headers.clone();
    headers.extend(own.into_iter().filter(|(name, _)| !written(name)).map(|(name, value)| (name.into(), value.into())));
    let announced = answer.delivery.announced;
    let bodiless = matches!(status, 100..200 | 204 | 304) && total == 0 && announced.is_none();
    if chunked && !written("transfer-encoding") {
        headers.push(("transfer-encoding".into(), "chunked".into()));
    } else if !chunked && !bodiless && !written("content-length") && !written("transfer-encoding") {
        let length = announced.map_or_else(|| total.to_string(), |length| length.to_string());
        headers.push(("content-length".into(), length.into()));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(answer: &Answer) -> Outgoing {
        Outgoing::of(answer, Rendered { status: 200, headers: Vec::new(), body: Body::Whole("0123456789".into()) })
    }

    #[test]
    fn a_drip_pauses_after_each_part() {
        let tick = Duration::from_millis(1);
        let out = outgoing(&Answer::raw(200).drip(4, tick).cut_after(6));
        let pause = Piece::pause(tick);
        assert_eq!(out.pieces, [Piece::from("0123"), pause.clone(), Piece::from("45"), pause]);
        assert_eq!((out.pace, out.terminated), (Pace::Own, false));
        assert_eq!(out.headers, [("content-length".to_owned(), Bytes::from("10"))]);
    }

    #[test]
    fn a_whole_chunked_body_is_ended_unless_its_connection_breaks() {
        assert!(outgoing(&Answer::raw(200).chunked()).terminated);
        assert!(outgoing(&Answer::raw(200).chunked().then_close()).terminated);
        assert!(!outgoing(&Answer::raw(200).chunked().cut_after(3)).terminated);
        assert!(!outgoing(&Answer::raw(200).chunked().then_reset()).terminated);
        assert!(!outgoing(&Answer::raw(200)).terminated);
    }
}
