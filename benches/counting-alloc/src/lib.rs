//! The system's allocator, counting what each thread asks of it and gives back.
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
    /// Bytes given back, and bytes by which reallocations shrank.
    pub freed: u64,
}

impl Sub for Count {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { calls: self.calls - before.calls, bytes: self.bytes - before.bytes, freed: self.freed - before.freed }
    }
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { calls: 0, bytes: 0, freed: 0 }) };
}

/// The counts of the current thread.
pub fn count() -> Count {
    COUNT.get()
}

fn allocated(size: usize) {
    COUNT.with(|cell| {
        let count = cell.get();
        cell.set(Count { calls: count.calls + 1, bytes: count.bytes + size as u64, ..count });
    });
}

fn freed(size: usize) {
    COUNT.with(|cell| {
        let count = cell.get();
        cell.set(Count { freed: count.freed + size as u64, ..count });
    });
}

/// The global allocator of a bench: `#[global_allocator] static ALLOCATOR: CountingAlloc = CountingAlloc;`
#[derive(Debug)]
pub struct CountingAlloc;

// SAFETY: every method hands its arguments to the system's allocator unchanged. The counter allocates nothing: it is
// constant until first written, and has no destructor.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promises are the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        allocated(size.saturating_sub(layout.size()));
        freed(layout.size().saturating_sub(size));
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
