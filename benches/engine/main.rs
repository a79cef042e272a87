//! The resilience engine around an operation that does nothing, and its parts beside those of other crates.
//!
//! `README.md` in the folder above says how to run it and what the columns mean.

mod bench;
mod line;
#[path = "../support/mode.rs"]
mod mode;
mod peers;
mod steadfast;
#[path = "../support/valgrind.rs"]
mod valgrind;

use bench::Bench;

#[global_allocator]
static ALLOCATOR: counting_alloc::CountingAlloc = counting_alloc::CountingAlloc;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let bench = Bench::new(&args);
    peers::yardsticks(&bench);
    peers::crates(&bench);
    steadfast::parts(&bench);
    steadfast::policies(&bench);
    steadfast::refusals(&bench);
    steadfast::queue(&bench);
}
