//! What the frames of a stream have in common: nearly all of them but their words.
//!
//! A server writes a thousand frames that differ in one text, and perhaps in a counter. A frame that was read once is
//! kept with holes where those are; a frame that fits it says the same but for what is in the holes, so that it need not be
//! parsed. That is no guess: the solid parts are those of valid JSON, what may fill a hole is checked to be a value of the
//! same kind, and whatever does not fit exactly is parsed.

use std::ops::Range;

/// Longer frames are not kept.
const MAX_LEN: usize = 2_048;
/// The most holes of a frame.
const MAX_HOLES: usize = 4;
/// How many frames at most pass before another one is kept, when those that were kept did not fit.
const MAX_PATIENCE: u32 = 63;

/// Members that differ from frame to frame and mean nothing to any decoder: a time, a counter, padding. The values are
/// numbers, or texts where the name ends in a quote.
const VOLATILE: [&[u8]; 3] = [b"\"created\":", b"\"sequence_number\":", b"\"obfuscation\":\""];

/// The last usual frame of a stream, with holes; `T` says what its words are.
#[derive(Debug, Default)]
pub(in crate::provider) struct Stencil<T> {
    frame: Vec<u8>,
    holes: Vec<Hole>,
    words_are: T,
    /// How many more frames are let pass before one is kept.
    wait: u32,
    patience: u32,
}

/// A part of a frame that differs from the next one's.
#[derive(Debug)]
struct Hole {
    at: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Digits.
    Number,
    /// A text of no interest, without its quotes.
    Padding,
    /// The words, without their quotes.
    Words,
}

impl<T: Copy + Default> Stencil<T> {
    /// The words of a frame that fits, and what they are.
    pub(in crate::provider) fn read(&mut self, data: &[u8]) -> Option<(T, String)> {
        let words = self.fit(data)?;
        (self.wait, self.patience) = (0, 0);
        Some((self.words_are, words))
    }

    /// One that fits no frame.
    #[cfg(test)]
    pub(in crate::provider) fn never() -> Self {
        Self { wait: u32::MAX, ..Self::default() }
    }

    /// Keeps a frame that said nothing but `words`, which are borrowed from it.
    pub(in crate::provider) fn keep(&mut self, data: &[u8], words: &str, words_are: T) {
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        self.patience = (self.patience * 2 + 1).min(MAX_PATIENCE);
        self.wait = self.patience / 2;
        self.frame.clear();
        self.holes.clear();
        let Some(at) = within(data, words).filter(|_| data.len() <= MAX_LEN) else { return };
        self.frame.extend_from_slice(data);
        self.words_are = words_are;
        self.holes.push(Hole { at, kind: Kind::Words });
        for name in VOLATILE {
            self.holes.extend(volatile(data, name));
        }
        self.holes.truncate(MAX_HOLES);
        self.holes.sort_by_key(|hole| hole.at.start);
    }

    fn fit(&self, data: &[u8]) -> Option<String> {
        let (mut rest, mut solid, mut words) = (data, 0, None);
        for hole in &self.holes {
            rest = rest.strip_prefix(&self.frame[solid..hole.at.start])?;
            let len = hole.kind.measure(rest)?;
            if hole.kind == Kind::Words {
                words = Some(data.len() - rest.len()..data.len() - rest.len() + len);
            }
            rest = &rest[len..];
            solid = hole.at.end;
        }
        let words = words?;
        (rest == &self.frame[solid..]).then(|| unescaped(data, words))?
    }
}

impl Kind {
    /// How many bytes from here can fill a hole of this kind.
    fn measure(self, rest: &[u8]) -> Option<usize> {
        match self {
            Self::Number => digits(rest),
            Self::Padding => {
                let len = rest.iter().position(|byte| *byte == b'"')?;
                rest[..len].iter().all(|byte| is_plain(*byte)).then_some(len)
            }
            Self::Words => {
                let mut at = 0;
                loop {
                    match rest.get(at)? {
                        b'"' => return Some(at),
                        b'\\' => at += 2,
                        0..0x20 => return None,
                        _ => at += 1,
                    }
                }
            }
        }
    }
}

/// The number of digits here, of a number as JSON writes it and that fits every reader.
fn digits(rest: &[u8]) -> Option<usize> {
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (matches!(len, 1..=18) && (len == 1 || rest[0] != b'0')).then_some(len)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// Where in the frame these words are, which are a text of it that is borrowed from it.
fn within(data: &[u8], words: &str) -> Option<Range<usize>> {
    let start = (words.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
    let end = start.checked_add(words.len())?;
    let quoted = data.get(start.checked_sub(1)?..=end)?;
    (quoted.first() == Some(&b'"') && quoted.last() == Some(&b'"')).then_some(start..end)
}

/// The value of the first member of this name, where there is one that can be a hole.
///
/// An object or a comma before the name's quote says that it is one: within a text, a quote has a backslash before it, and
/// behind the end of a text comes no name.
fn volatile(data: &[u8], name: &[u8]) -> Option<Hole> {
    let found = data
        .windows(name.len() + 1)
        .position(|window| window[1] == name[0] && matches!(window[0], b'{' | b',') && &window[1..] == name)?;
    let start = found + 1 + name.len();
    let kind = if name.ends_with(b"\"") { Kind::Padding } else { Kind::Number };
    let len = kind.measure(&data[start..])?;
    Some(Hole { at: start..start + len, kind })
}

/// The text that is written here, or none where it is no valid one.
fn unescaped(data: &[u8], words: Range<usize>) -> Option<String> {
    let written = &data[words.clone()];
    if written.contains(&b'\\') {
        return serde_json::from_slice(&data[words.start - 1..=words.end]).ok();
    }
    std::str::from_utf8(written).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame that is kept, and what comes of another one.
    fn after(kept: &str, words: &str, next: &str) -> Option<String> {
        let at = kept.find(&format!("\"{words}\"")).unwrap() + 1;
        let mut stencil = Stencil::<()>::default();
        stencil.keep(kept.as_bytes(), &kept[at..at + words.len()], ());
        stencil.read(next.as_bytes()).map(|((), words)| words)
    }

    #[test]
    fn a_frame_that_differs_in_its_words_alone_is_read() {
        let frame = |words: &str| format!(r#"{{"created":7,"delta":{{"content":"{words}"}},"n":1}}"#);
        for (words, read) in [
            ("there", Some("there")),
            ("", Some("")),
            ("日本", Some("日本")),
            (r#"a \"b\" \\ \u00fc\n"#, Some("a \"b\" \\ ü\n")),
            (r"\ud83d\ude80", Some("🚀")),
            (r"\ud83d", None),
            (r"\x", None),
            ("a\nb", None),
            (r#"a","content":"b"#, None),
        ] {
            assert_eq!(after(&frame("Hello"), "Hello", &frame(words)).as_deref(), read, "{words}");
        }
        for other in [
            frame("Hi").replace("\"n\":1", "\"n\":2"),
            format!("{} ", frame("Hi")),
            frame("Hi")[..20].to_owned(),
            String::new(),
        ] {
            assert_eq!(after(&frame("Hello"), "Hello", &other), None, "{other}");
        }
    }

    #[test]
    fn counters_and_padding_may_differ_too() {
        let frame = |number: &str, words: &str, padding: &str| {
            format!(r#"{{"sequence_number":{number},"delta":"{words}","obfuscation":"{padding}"}}"#)
        };
        for (number, padding, fits) in [
            ("10", "abc", true),
            ("0", "", true),
            ("01", "abc", false),
            ("1e5", "abc", false),
            ("-1", "abc", false),
            ("\"1\"", "abc", false),
            ("1", r"a\u0062", false),
            ("1", "ü", false),
            ("1", r#"a","delta":"b"#, false),
        ] {
            let read = after(&frame("9", "Hello", "x9"), "Hello", &frame(number, "Hi", padding));
            assert_eq!(read.is_some(), fits, "{number} {padding}");
        }
        // A name within a text is no member.
        let frame = |said: &str| format!(r#"{{"said":"{said}","delta":"Hello"}}"#);
        assert_eq!(after(&frame(r#",\"created\":1"#), "Hello", &frame(r#",\"created\":2"#)), None);
    }

    #[test]
    fn a_stream_whose_frames_do_not_repeat_is_not_learned_again_and_again() {
        let mut stencil = Stencil::<()>::default();
        let mut kept = 0;
        for n in 0..200 {
            let frame = format!(r#"{{"n":{n},"delta":"Hello"}}"#);
            assert_eq!(stencil.read(frame.as_bytes()), None);
            stencil.keep(frame.as_bytes(), &frame[frame.len() - 7..frame.len() - 2], ());
            kept += u32::from(stencil.frame == frame.as_bytes());
        }
        assert!(kept < 12, "{kept}");
    }
}
