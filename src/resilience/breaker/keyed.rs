//! A circuit for each model, as long as it has something to say.

use super::{CircuitState, Hand, changes::Changes, circuit::Circuit, settings::Rules};
use crate::resilience::sync::{RwLock, read, write};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;

/// Idle circuits are looked for when there are this many, and then whenever the circuits have doubled.
const FIRST_SWEEP: usize = 64;

pub(super) struct Keyed {
    rules: Arc<Rules>,
    changes: Arc<Changes>,
    circuits: RwLock<Circuits>,
}

struct Circuits {
    by_key: HashMap<Arc<str>, Arc<Circuit>>,
    sweep_at: usize,
    standing: Standing,
}

/// What was done by hand to all circuits, and holds for new ones, too.
#[derive(Clone, Copy, Debug)]
enum Standing {
    Nothing,
    /// Opened at this instant, for one cooldown.
    Opened(Instant),
    Held,
}

impl Keyed {
    pub(super) fn new(rules: Arc<Rules>, changes: Arc<Changes>) -> Self {
        let circuits = Circuits { by_key: HashMap::new(), sweep_at: FIRST_SWEEP, standing: Standing::Nothing };
        Self { rules, changes, circuits: RwLock::new(circuits) }
    }

    /// The circuit of `key`, a new one if there is none.
    pub(super) fn circuit(&self, key: &str, now: Instant) -> Arc<Circuit> {
        if let Some(circuit) = self.find(key) {
            return circuit;
        }
        let mut circuits = write(&self.circuits);
        if let Some(circuit) = circuits.by_key.get(key) {
            return Arc::clone(circuit); // another thread was faster
        }
        if circuits.by_key.len() >= circuits.sweep_at {
            self.sweep(&mut circuits, now);
        }
        let key: Arc<str> = key.into();
        let (rules, changes) = (Arc::clone(&self.rules), Arc::clone(&self.changes));
        let circuit = Arc::new(Circuit::new(rules, changes, Some(Arc::clone(&key)), now));
        circuits.by_key.insert(key, Arc::clone(&circuit));
        let standing = self.standing(&circuits, now);
        if let Some((hand, at)) = standing {
            circuit.by_hand_quietly(hand, at);
        }
        drop(circuits);
        if standing.is_some() {
            self.changes.tell();
        }
        circuit
    }

    /// The circuit of `key`, if there is one.
    pub(super) fn find(&self, key: &str) -> Option<Arc<Circuit>> {
        read(&self.circuits).by_key.get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Circuit>> {
        read(&self.circuits).by_key.values().cloned().collect()
    }

    pub(super) fn state_of(&self, key: &str, now: Instant) -> CircuitState {
        let circuits = read(&self.circuits);
        circuits.by_key.get(key).map_or_else(|| self.state_of_new(&circuits, now), |circuit| circuit.state())
    }

    pub(super) fn worst_state(&self, now: Instant) -> CircuitState {
        let circuits = read(&self.circuits);
        let new = self.state_of_new(&circuits, now);
        circuits.by_key.values().map(|circuit| circuit.state()).fold(new, CircuitState::max)
    }

    pub(super) fn all_by_hand(&self, hand: Hand, now: Instant) {
        let mut circuits = write(&self.circuits);
        circuits.standing = match (hand, circuits.standing) {
            (Hand::Open, Standing::Held) | (Hand::Hold, _) => Standing::Held,
            (Hand::Open, _) => Standing::Opened(now),
            (Hand::Close, _) => Standing::Nothing,
        };
        // Under the map's lock, so that two operators agree on all circuits.
        for circuit in circuits.by_key.values() {
            circuit.by_hand_quietly(hand, now);
        }
        drop(circuits);
        self.changes.tell();
    }

    pub(super) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// What a new circuit starts with, and when that was done.
    fn standing(&self, circuits: &Circuits, now: Instant) -> Option<(Hand, Instant)> {
        match circuits.standing {
            Standing::Nothing => None,
            Standing::Opened(at) => {
                let over = now.saturating_duration_since(at) >= self.rules.cooldown.base;
                (!over).then_some((Hand::Open, at))
            }
            Standing::Held => Some((Hand::Hold, now)),
        }
    }

    fn state_of_new(&self, circuits: &Circuits, now: Instant) -> CircuitState {
        if self.standing(circuits, now).is_some() { CircuitState::Open } else { CircuitState::Closed }
    }

    /// Forgets the circuits that are idle and that no call holds. A call comes to hold one
    /// only with the map's lock, which is taken for writing here.
    fn sweep(&self, circuits: &mut Circuits, now: Instant) {
        if self.standing(circuits, now).is_some() {
            return; // what was closed since is not as good as new
        }
        circuits.by_key.retain(|key, circuit| {
            let forget = Arc::strong_count(circuit) == 1 && circuit.is_idle(now);
            if forget {
                self.rules.tripping.forget(key);
            }
            !forget
        });
        circuits.sweep_at = FIRST_SWEEP.max(2 * circuits.by_key.len());
        let room = circuits.sweep_at;
        circuits.by_key.shrink_to(room);
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(read(&self.circuits).by_key.iter().map(|(key, circuit)| (key, circuit.state()))).finish()
    }
}
