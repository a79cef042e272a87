//! A body cut into pieces, and what comes out of it.

use bytes::Bytes;
use proptest::prelude::prop;
use steadfast::provider::{FrameFault, Framing};
use steadfast::transport::framing::Framer;

/// A frame that outlives its framer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Owned {
    pub(crate) event: String,
    pub(crate) data: Vec<u8>,
    pub(crate) exception: bool,
    pub(crate) torn: bool,
}

impl Owned {
    /// A frame without a name.
    pub(crate) fn of(data: &str) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    pub(crate) fn named(event: &str, data: &str) -> Self {
        Self { event: event.into(), ..Self::of(data) }
    }

    /// Given because the body ended.
    pub(crate) fn torn(self) -> Self {
        Self { torn: true, ..self }
    }
}

/// Everything that a body gave: frames, whether it broke off in one, and the fault, if it came to that.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) frames: Vec<Owned>,
    pub(crate) is_mid_frame: bool,
    pub(crate) fault: Option<FrameFault>,
}

impl Outcome {
    /// Frames, and a clean end.
    pub(crate) fn whole(frames: impl IntoIterator<Item = Owned>) -> Self {
        Self { frames: frames.into_iter().collect(), is_mid_frame: false, fault: None }
    }

    /// Frames, and bytes that are part of one more.
    pub(crate) fn broken_off(frames: impl IntoIterator<Item = Owned>) -> Self {
        Self { is_mid_frame: true, ..Self::whole(frames) }
    }

    /// Frames, and the fault after them.
    pub(crate) fn fault(frames: impl IntoIterator<Item = Owned>, fault: FrameFault) -> Self {
        Self { fault: Some(fault), ..Self::whole(frames) }
    }
}

/// Takes what is there.
fn drain(framer: &mut Framer, given: &mut Vec<Owned>) -> Result<(), FrameFault> {
    while let Some(frame) = framer.next_frame()? {
        given.push(Owned {
            event: frame.event.to_owned(),
            data: frame.data.to_vec(),
            exception: frame.exception,
            torn: frame.torn,
        });
    }
    Ok(())
}

/// Reads the pieces one by one, each as far as it goes.
pub(crate) fn read<'a>(mut framer: Framer, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut given = Vec::new();
    let read = || {
        for piece in pieces {
            framer.push(Bytes::copy_from_slice(piece));
            drain(&mut framer, &mut given)?;
        }
        framer.end();
        drain(&mut framer, &mut given)
    };
    let fault = read().err();
    Outcome { frames: given, is_mid_frame: fault.is_none() && framer.is_mid_frame(), fault }
}

/// Reads a body whole, byte by byte, in two pieces for every place to cut it, and with all pieces pushed before any is read.
/// All must come to the same, which is returned.
pub(crate) fn everywhere(framer: impl Fn() -> Framer, body: &[u8]) -> Outcome {
    let whole = read(framer(), [body]);
    assert_eq!(read(framer(), body.chunks(1)), whole, "byte by byte");
    assert_eq!(read(framer(), body.chunks(3)), whole, "three bytes at a time");
    for at in 0..=body.len() {
        let (one, two) = body.split_at(at);
        assert_eq!(read(framer(), [one, two]), whole, "cut at byte {at}");
    }
    assert_eq!(read_late(framer(), body.chunks(2)), whole, "all pushed at first");
    whole
}

/// Pushes everything, ends the body, and only then reads.
pub(crate) fn read_late<'a>(mut framer: Framer, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    for piece in pieces {
        framer.push(Bytes::copy_from_slice(piece));
    }
    framer.end();
    read(framer, [])
}

/// [`everywhere`], for a body of text.
pub(crate) fn frames(framing: Framing, body: &str) -> Outcome {
    everywhere(|| Framer::new(framing.clone()), body.as_bytes())
}

/// Cuts `body` at these places, given as fractions of it.
pub(crate) fn cut<'a>(body: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(body.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for to in places.into_iter().chain([body.len()]) {
        pieces.push(&body[from..to]);
        from = to;
    }
    pieces
}
