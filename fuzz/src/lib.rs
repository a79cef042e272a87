//! What the targets share: a body cut in several ways, which must not matter.

use bytes::Bytes;
use steadfast::provider::{FrameFault, Framing};
use steadfast::transport::framing::Framer;

/// A frame that outlives its framer.
#[derive(Debug, Eq, PartialEq)]
pub struct Owned {
    /// Its name.
    pub event: String,
    /// What it carries.
    pub data: Vec<u8>,
    exception: bool,
    torn: bool,
}

/// All that a body gave.
#[derive(Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Its frames.
    pub frames: Vec<Owned>,
    fault: Option<FrameFault>,
    is_mid_frame: bool,
}

/// Reads a body whole and in pieces of many sorts, with the usual bound and with tight ones, and checks that the pieces do not
/// matter. Returns what came of it with the usual bound.
///
/// # Panics
///
/// If they do.
#[must_use]
pub fn read_everywhere(framing: &Framing, body: &[u8]) -> Outcome {
    for max in [body.len() / 8, body.len() / 2] {
        let framer = || Framer::new(framing.clone()).max_event_bytes(max);
        let whole = read(framer(), [body]);
        assert_eq!(read(framer(), body.chunks(1)), whole, "byte by byte, at most {max} bytes an event");
        assert_eq!(read(framer(), anyhow(body)), whole, "in pieces, at most {max} bytes an event");
    }
    let framer = || Framer::new(framing.clone());
    let whole = read(framer(), [body]);
    assert_eq!(read(framer(), body.chunks(1)), whole, "byte by byte");
    assert_eq!(read(framer(), anyhow(body)), whole, "in pieces");
    let (one, two) = body.split_at(body.len() / 2);
    assert_eq!(read(framer(), [one, two]), whole, "in halves");
    assert!(whole.frames.iter().map(|frame| frame.data.len()).sum::<usize>() <= body.len(), "nothing comes from nowhere");
    whole
}

fn read<'a>(mut framer: Framer, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut frames = Vec::new();
    let mut drain = |framer: &mut Framer| {
        while let Some(frame) = framer.next_frame()? {
            let (event, data) = (frame.event.to_owned(), frame.data.to_vec());
            frames.push(Owned { event, data, exception: frame.exception, torn: frame.torn });
        }
        Ok(())
    };
    let mut fault = Ok(());
    for piece in pieces {
        framer.push(Bytes::copy_from_slice(piece));
        fault = fault.and_then(|()| drain(&mut framer));
    }
    framer.end();
    let fault = fault.and_then(|()| drain(&mut framer)).err();
    Outcome { frames, is_mid_frame: fault.is_none() && framer.is_mid_frame(), fault }
}

/// Pieces of up to 16 bytes, some empty, that depend on the bytes alone: a failure can be played again.
fn anyhow(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body;
    let mut state = body.iter().fold(body.len() as u64, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte)) | 1;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = usize::from((state >> 56) as u8 % 17).min(rest.len());
        let (piece, after) = rest.split_at(length);
        rest = after;
        Some(piece)
    })
}
