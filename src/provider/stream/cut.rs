//! A framing of the caller's own.

use super::FrameFault;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Makes a [`CutFrames`] for each stream.
#[derive(Clone)]
pub struct CustomFraming(Arc<dyn Fn() -> Box<dyn CutFrames> + Send + Sync>);

impl CustomFraming {
    /// A framing that starts each stream with what `start` makes.
    pub fn new<C: CutFrames + 'static>(start: impl Fn() -> C + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::new(start())))
    }

    /// The cutter of one stream.
    pub fn start(&self) -> Box<dyn CutFrames> {
        (self.0)()
    }
}

impl fmt::Debug for CustomFraming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomFraming")
    }
}

/// A framing of your own, for [`Framing::Custom`](super::Framing::Custom). It sees bytes, and says where the first frame lies.
///
/// ```
/// use bytes::Bytes;
/// use steadfast::provider::{Cut, CutFrames, FrameFault};
/// use steadfast::transport::framing::Framer;
///
/// /// Each record after its length, in one byte.
/// struct Counted;
///
/// impl CutFrames for Counted {
///     fn cut(&mut self, unread: &[u8], _ended: bool) -> Result<Cut, FrameFault> {
///         let Some((length, rest)) = unread.split_first() else { return Ok(Cut::More) };
///         let end = 1 + usize::from(*length);
///         Ok(if rest.len() + 1 < end { Cut::More } else { Cut::Frame { event: 0..0, data: 1..end, consumed: end } })
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut framer = Framer::custom(Box::new(Counted));
/// framer.push(Bytes::from_static(b"\x05hel"));
/// assert_eq!(framer.next_frame()?, None);
/// framer.push(Bytes::from_static(b"lo\x00\x05wo"));
/// assert_eq!(framer.next_frame()?.ok_or("five bytes")?.data, b"hello");
/// assert_eq!(framer.next_frame()?.ok_or("none")?.data, b"");
/// framer.end();
/// assert_eq!(framer.next_frame()?, None);
/// assert!(framer.is_mid_frame(), "the body broke off");
/// # Ok(()) }
/// ```
pub trait CutFrames: Send {
    /// Looks at what is unread, from the end of the last frame on. It is never empty. After [`Cut::More`] it is asked again
    /// with the same bytes and more, or with the same bytes and `ended`, when no more will come.
    ///
    /// # Errors
    ///
    /// What is unread is not of this framing. The fault must quote nothing of it.
    fn cut(&mut self, unread: &[u8], ended: bool) -> Result<Cut, FrameFault>;
}

/// What [`CutFrames`] finds. Positions count from the start of what is unread; one that lies outside makes the body invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Cut {
    /// A frame, and how many bytes to read on from it, at least one.
    Frame {
        /// Where its name is; an empty range if it has none. Must be UTF-8.
        event: Range<usize>,
        /// Where its data is.
        data: Range<usize>,
        /// The bytes that are done with.
        consumed: usize,
    },
    /// The first frame has not come whole.
    More,
    /// So many bytes, at least one, are in no frame.
    Skip(usize),
}
