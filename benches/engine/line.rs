//! How far apart two threads are: the time that a cache line takes from one to the other.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A cache line that two threads write by turns.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Line {
    turn: AtomicU32,
    players: AtomicU32,
}

impl Line {
    /// One of the two threads. It waits for the line, writes it, and does so as often as asked; the other one must do so too.
    pub(crate) fn player(&self) -> impl FnMut(u32) {
        let mut turn = self.players.fetch_add(1, Relaxed);
        move |times| {
            for _ in 0..times {
                self.wait(turn);
                self.turn.store(turn + 1, Release);
                turn += 2;
            }
        }
    }

    fn wait(&self, turn: u32) {
        for spin in 1_u32.. {
            if self.turn.load(Acquire) == turn {
                return;
            }
            if spin.is_multiple_of(1 << 16) {
                std::thread::yield_now(); // where both are on one core, the other one has to be let in
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
