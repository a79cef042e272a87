//! The system's allocator, counting what each thread asks of it.
//!
//! A package of its own, because an allocator cannot be written without `unsafe`, which steadfast forbids in every
//! target. Counters are per thread: shared ones would be written by both threads of a bench, and what allocates would
//! be charged for the counting.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// What the current thread asked for since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Count {
    /// Allocations and reallocations.
    pub calls: u64,
    /// Bytes of the allocations, and bytes by which reallocations grew.
    pub bytes: u64,
}

impl Sub for Count {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { calls: self.calls - before.calls, bytes: self.bytes - before.bytes }
    }
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { calls: 0, bytes: 0 }) };
}

/// The counts of the current thread.
pub fn count() -> Count {
    COUNT.get()
}

fn add(bytes: usize) {
    COUNT.with(|cell| {
        let Count { calls, bytes: before } = cell.get();
        cell.set(Count { calls: calls + 1, bytes: before + bytes as u64 });
    });
}

/// The global allocator of a bench: `#[global_allocator] static ALLOCATOR: CountingAlloc = CountingAlloc;`
#[derive(Debug)]
pub struct CountingAlloc;

// SAFETY: every method hands its arguments to the system's allocator unchanged. The counter allocates nothing: it is
// constant until first written, and has no destructor.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
