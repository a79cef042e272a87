//! Where blocks of reasoning stood, so that they go back in their places.

use super::PROTOCOL;
use crate::chat::Opaque;
use serde_json::Value;

/// Keeps the places of an answer's blocks of reasoning.
///
/// Those before the first word or call lead the turn that goes back; a later one stands before the call that came next,
/// and travels with it.
#[derive(Debug, Default)]
pub(super) struct Thoughts {
    /// Whether there was a word or a call.
    said: bool,
    held: Vec<Value>,
}

impl Thoughts {
    /// There was a word.
    pub(super) fn said(&mut self) {
        self.said = true;
    }

    /// A block, which is given back where it leads the turn.
    pub(super) fn block(&mut self, block: Value, model: Option<&str>) -> Option<Opaque> {
        if self.said {
            self.held.push(block);
            return None;
        }
        Some(opaque(block, model))
    }

    /// There is a call; what stood before it.
    pub(super) fn call(&mut self, model: Option<&str>) -> Option<Opaque> {
        self.said = true;
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| opaque(held.into(), model))
    }

    /// Blocks after which no call came.
    pub(super) fn rest(&mut self, model: Option<&str>) -> impl Iterator<Item = Opaque> {
        std::mem::take(&mut self.held).into_iter().map(move |block| opaque(block, model))
    }
}

fn opaque(data: Value, model: Option<&str>) -> Opaque {
    Opaque::new(PROTOCOL, data).of_model(model.map(str::to_owned))
}
