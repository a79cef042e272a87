//! Ids for tool calls that came without one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// An id for a call in an answer of which this is known.
///
/// It has to be unique within a conversation, of which an adapter sees one answer at a time: a count tells the answers of one
/// process apart, be they the same to the letter, and what is known of the answer those of others, that went on with it.
pub(super) fn call_id(known: impl Hash) -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let mut hasher = DefaultHasher::new();
    (known, CALLS.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
    format!("call_{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_answer_twice_has_two_ids() {
        let ids = [call_id("a"), call_id("a"), call_id("b")];
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
        assert!(ids.iter().all(|id| id.len() == 21 && id.starts_with("call_")), "{ids:?}");
    }
}
