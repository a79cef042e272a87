//! One call of a chat model over a loopback socket: steadfast beside the same call written by hand.
//!
//! `README.md` in the folder above says how to run it and what the columns mean.

mod bare;
mod callgrind;
mod load;
#[path = "../support/mode.rs"]
mod mode;
mod process;
mod server;
mod subject;
mod table;

use load::{Load, Sample};
use mode::Mode;
use process::Server;
use std::error::Error;
use subject::SUBJECTS;
use table::Row;

#[global_allocator]
static ALLOCATOR: counting_alloc::CountingAlloc = counting_alloc::CountingAlloc;

/// Rounds of measurement. Each visits every subject, so that a busy moment of the machine meets all of them.
const ROUNDS: usize = 7;
const CALLGRIND_ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|role| role == process::SERVE) {
        return Ok(server::serve()?);
    }
    if let Some((subject, url, load)) = process::parse_client_args(&args) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        println!("{}", runtime.block_on(subject::measure(subject, url, load)));
        return Ok(());
    }
    match (Mode::from_args(&args), Options::from_args(&args)) {
        (Mode::Smoke, _) => smoke(),
        (Mode::Measure, Options { profile: Some(subject), calls, .. }) => profile(&subject, calls),
        (Mode::Measure, options) => measure(&options),
    }
}

struct Options {
    /// Calls of one measurement, at many calls at a time.
    calls: u32,
    callgrind: bool,
    /// The subject whose profile is wanted instead.
    profile: Option<String>,
    /// Subjects, by a part of their names; all, if none is named.
    subjects: Vec<String>,
}

impl Options {
    fn from_args(args: &[String]) -> Self {
        let mut options = Self { calls: 16_384, callgrind: true, profile: None, subjects: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--calls" => options.calls = args.next().and_then(|n| n.parse().ok()).unwrap_or(options.calls).max(64),
                "--no-callgrind" => options.callgrind = false,
                "--profile" => options.profile = args.next().cloned(),
                flag if flag.starts_with("--") => {} // Cargo's, or meant for another bench
                subject => options.subjects.push(subject.to_owned()),
            }
        }
        options
    }

    /// The first subject, which the others are divided by, and those that were asked for.
    fn wanted(&self) -> Vec<&'static str> {
        let named =
            |name: &&str| self.subjects.is_empty() || self.subjects.iter().any(|part| name.contains(part.as_str()));
        let rest = SUBJECTS[1..].iter().filter(|name| named(name));
        SUBJECTS[..1].iter().chain(rest).copied().collect()
    }
}

/// Sees that every subject still does the work.
fn smoke() -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    for subject in SUBJECTS {
        for at_a_time in [1, 64] {
            process::sample(subject, &server.url, Load { calls: 2 * at_a_time, at_a_time })?;
        }
        println!("loopback: {subject}: ok");
    }
    Ok(())
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let callgrind = options.callgrind && process::installed("valgrind");
    let server = Server::start()?;
    let pinned = if process::pins() { "client and server each pinned to a core" } else { "nothing pinned to a core" };
    println!("One chat completion of 1 KB over 127.0.0.1, one thread, {pinned}.");
    if !callgrind {
        let why = if options.callgrind { "valgrind is not installed" } else { "--no-callgrind" };
        println!("Instructions are not counted: {why}.");
    }
    let subjects = options.wanted();
    for at_a_time in [64, 1] {
        // One at a time is slower by the way to the server and back, so it gets less to do.
        let calls = if at_a_time == 1 { options.calls / 4 } else { options.calls };
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); subjects.len()];
        for _ in 0..ROUNDS {
            for (subject, samples) in subjects.iter().zip(&mut samples) {
                samples.push(process::sample(subject, &server.url, Load { calls, at_a_time })?);
            }
        }
        let mut instructions: Vec<Vec<f64>> = vec![Vec::new(); subjects.len()];
        if callgrind {
            let load = Load { calls: (options.calls / 8).next_multiple_of(at_a_time), at_a_time };
            // How many answers arrive together differs from run to run, where there are many.
            for _ in 0..if at_a_time == 1 { 1 } else { CALLGRIND_ROUNDS } {
                for (subject, instructions) in subjects.iter().zip(&mut instructions) {
                    instructions.push(callgrind::per_call(subject, &server.url, load)?);
                }
            }
        }
        let rows = subjects.iter().zip(instructions.iter().zip(&samples));
        let rows: Vec<Row<'_>> = rows.map(|(subject, (counts, samples))| Row::new(subject, counts, samples)).collect();
        println!("\n{at_a_time} at a time, a call\n{}", table::render(&rows));
    }
    if callgrind {
        let first =
            |subject: &&'static str| Ok(Row::new(subject, &[callgrind::first_call(subject, &server.url)?], &[]));
        let rows = subjects.iter().map(first).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        println!("\nA new client and its first call\n{}", table::render(&rows));
    }
    Ok(())
}

/// Leaves a profile of `subject` for `callgrind_annotate`.
fn profile(subject: &str, calls: u32) -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    let file = format!("{}/callgrind.{}.out", env!("CARGO_TARGET_TMPDIR"), subject.replace(' ', "-"));
    let instructions = callgrind::collect(subject, &server.url, Load { calls, at_a_time: 64 }, &file)?;
    println!("{subject}: {instructions} instructions for {calls} calls, start-up included. Read them by");
    println!("callgrind_annotate --inclusive=yes {file}");
    Ok(())
}
