//! Cutting a body into events, beside two other ways to do it.
//!
//! `README.md` in the folder above says how to run it and what the columns mean.

mod bodies;
#[path = "../support/mode.rs"]
mod mode;
mod readers;
#[path = "../support/valgrind.rs"]
mod valgrind;

use bodies::Bodies;
use counting_alloc::count;
use mode::Mode;
use readers::{READERS, Read, Reader};
use std::error::Error;
use std::hint::black_box;
use std::mem::discriminant;
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: counting_alloc::CountingAlloc = counting_alloc::CountingAlloc;

/// How often everything is read for a time; the median is shown.
const SAMPLES: usize = 101;
/// How often it is read to count its instructions.
const CALLGRIND_PASSES: u32 = 4;
/// The first argument of a process whose instructions are counted: bodies, and a reader.
const COUNT: &str = "--as-counted";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let all = bodies::all();
    if let [role, bodies, reader] = &args[..]
        && role == COUNT
    {
        let bodies = all.iter().find(|known| known.name == *bodies).ok_or("unknown bodies")?;
        let reader = READERS.iter().find(|known| known.name == *reader).ok_or("an unknown reader")?;
        run_to_be_counted(reader, bodies, CALLGRIND_PASSES);
        return Ok(());
    }
    let measure = Mode::from_args(&args) == Mode::Measure;
    let callgrind = measure && !args.iter().any(|arg| arg == "--no-callgrind") && valgrind::is_installed("valgrind");
    for bodies in &all {
        if measure {
            println!("\n{:44} {:>8} {:>8} {:>8} {:>8} {:>8}", bodies.name, "instr.", "ns", "MB/s", "allocs", "events");
        }
        for reader in READERS.iter().filter(|reader| discriminant(&bodies.framing) == discriminant(&reader.framing)) {
            let read = pass(reader, bodies);
            if reader.is_whole {
                assert_eq!(read, bodies.expected(), "{} of {}", reader.name, bodies.name);
            }
            if measure {
                show(reader, bodies, read, callgrind)?;
            } else {
                println!("framing: {}: {}: ok", bodies.name, reader.name);
            }
        }
    }
    Ok(())
}

/// One line: a reader's costs by event.
fn show(reader: &Reader, bodies: &Bodies, read: Read, callgrind: bool) -> Result<(), Box<dyn Error>> {
    let events = f64::from(u32::try_from(bodies.expected().events)?);
    let instructions =
        if callgrind { format!("{:.0}", instructions(reader, bodies)? / events) } else { "-".to_owned() };
    let before = count();
    pass(reader, bodies);
    let allocations = f64::from(u32::try_from((count() - before).calls)?) / events;
    let took = median(reader, bodies).as_secs_f64();
    let megabytes = f64::from(u32::try_from(bodies.bytes())?) / 1e6;
    println!(
        "{:44} {instructions:>8} {:8.1} {:8.0} {allocations:8.2} {:8}",
        reader.name,
        took * 1e9 / events,
        megabytes / took,
        read.events
    );
    Ok(())
}

/// Reads all bodies once.
fn pass(reader: &Reader, bodies: &Bodies) -> Read {
    bodies.each.iter().map(|pieces| (reader.read)(black_box(pieces))).sum()
}

fn median(reader: &Reader, bodies: &Bodies) -> Duration {
    let sample = |_| {
        let start = Instant::now();
        black_box(pass(reader, bodies));
        start.elapsed()
    };
    let mut samples: Vec<Duration> = (0..SAMPLES).map(sample).collect();
    samples.sort_unstable();
    samples[SAMPLES / 2]
}

/// Instructions to read all bodies once, counted inside [`run_to_be_counted`] alone.
fn instructions(reader: &Reader, bodies: &Bodies) -> Result<f64, Box<dyn Error>> {
    let [valgrind, options @ ..] = valgrind::CALLGRIND;
    let mut command = Command::new(valgrind);
    command.args(options).arg("--toggle-collect=*run_to_be_counted*").arg(std::env::current_exe()?);
    let collected = valgrind::collect(command.args([COUNT, bodies.name, reader.name]))?;
    Ok(collected / f64::from(CALLGRIND_PASSES))
}

#[inline(never)] // callgrind finds it by its name
fn run_to_be_counted(reader: &Reader, bodies: &Bodies, passes: u32) {
    for _ in 0..passes {
        black_box(pass(reader, bodies));
    }
}
