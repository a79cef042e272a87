//! Calls and streams of a chat model over a loopback socket: steadfast beside the same work written by hand.
//!
//! `README.md` in the folder above says how to run it and what the columns mean.

mod bare;
mod callgrind;
mod load;
#[path = "../support/mode.rs"]
mod mode;
mod process;
mod server;
mod steadfast;
mod subject;
mod table;
#[path = "../support/valgrind.rs"]
mod valgrind;

use load::{Load, Sample, Work};
use mode::Mode;
use process::Server;
use std::error::Error;
use subject::{STREAMING, SUBJECTS};
use table::{COSTS, Row};

#[global_allocator]
static ALLOCATOR: counting_alloc::CountingAlloc = counting_alloc::CountingAlloc;

/// Rounds of measurement. Each visits every subject, so that a busy moment of the machine meets all of them.
const ROUNDS: usize = 7;
const CALLGRIND_ROUNDS: usize = 3;
/// Words of a short and of a long stream: what the long one costs beyond the short one is the price of its words.
const WORDS: [u32; 2] = [100, 300];
/// Streams held open to see what one keeps.
const HELD: u32 = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|role| role == process::SERVE) {
        return Ok(server::serve()?);
    }
    if let Some((subject, base, load)) = process::parse_client_args(&args) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        println!("{}", runtime.block_on(subject::measure(subject, base, load)));
        return Ok(());
    }
    match (Mode::from_args(&args), Options::from_args(&args)) {
        (Mode::Smoke, _) => smoke(),
        (Mode::Measure, options) => match &options.profile {
            Some(subject) => profile(subject, &options),
            None => measure(&options),
        },
    }
}

struct Options {
    /// Calls of one measurement, at many calls at a time.
    calls: u32,
    callgrind: bool,
    /// The subject whose profile is wanted instead.
    profile: Option<String>,
    /// Whether the profile is one of streams, not of calls.
    stream: bool,
    /// Subjects, by a part of their names; all, if none is named.
    subjects: Vec<String>,
}

impl Options {
    fn from_args(args: &[String]) -> Self {
        let mut options = Self { calls: 16_384, callgrind: true, profile: None, stream: false, subjects: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--calls" => options.calls = args.next().and_then(|n| n.parse().ok()).unwrap_or(options.calls).max(64),
                "--no-callgrind" => options.callgrind = false,
                "--stream" => options.stream = true,
                "--profile" => options.profile = args.next().cloned(),
                flag if flag.starts_with("--") => {} // Cargo's, or meant for another bench
                subject => options.subjects.push(subject.to_owned()),
            }
        }
        options
    }

    /// Of `subjects` those that were asked for, and the first, which the others are divided by.
    fn wanted(&self, subjects: &[&'static str]) -> Vec<&'static str> {
        let named = |name: &str| self.subjects.is_empty() || self.subjects.iter().any(|part| name.contains(&**part));
        subjects.iter().copied().enumerate().filter(|&(place, name)| place == 0 || named(name)).map(|of| of.1).collect()
    }
}

/// Sees that every subject still does the work.
fn smoke() -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    for subject in SUBJECTS {
        let works = [Work::First, Work::Call, Work::Stream { words: 3 }, Work::Hold];
        for work in works.into_iter().take(if STREAMING.contains(&subject) { 4 } else { 2 }) {
            process::sample(subject, &server.url, Load { work, times: 8, at_a_time: 4 })?;
        }
        println!("loopback: {subject}: ok");
    }
    Ok(())
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let callgrind = options.callgrind && valgrind::is_installed("valgrind");
    let pinned = if process::pins() { "client and server each pinned to a core" } else { "nothing pinned to a core" };
    println!("Chat completions over 127.0.0.1; one thread, {pinned}.");
    if !callgrind {
        let why = if options.callgrind { "valgrind is not installed" } else { "--no-callgrind" };
        println!("Instructions are not counted: {why}.");
    }
    let server = Server::start()?;
    let bench = |subjects| Measuring { server: &server, subjects, calls: options.calls, callgrind };
    let calling = bench(options.wanted(&SUBJECTS));
    calling.calls(64)?;
    calling.calls(1)?;
    calling.first()?;
    let streaming = bench(options.wanted(&STREAMING));
    streaming.words()?;
    streaming.held()
}

struct Measuring<'a> {
    server: &'a Server,
    subjects: Vec<&'static str>,
    calls: u32,
    callgrind: bool,
}

impl Measuring<'_> {
    /// A call of 1 KB.
    fn calls(&self, at_a_time: u32) -> Result<(), Box<dyn Error>> {
        // One at a time is slower by the way to the server and back, so it gets less to do. What arrives together differs
        // from run to run only where there are many.
        let (times, rounds) = if at_a_time == 1 { (self.calls / 4, 1) } else { (self.calls, CALLGRIND_ROUNDS) };
        let load = Load { work: Work::Call, times, at_a_time };
        let samples = self.rounds(ROUNDS, |subject| process::sample(subject, &self.server.url, load))?;
        let load = Load { times: (self.calls / 8).next_multiple_of(at_a_time), ..load };
        let instructions = self.count(rounds, |subject| callgrind::per_call(subject, &self.server.url, load))?;
        self.report(&format!("a call, {at_a_time} at a time"), &instructions, &samples);
        Ok(())
    }

    /// A chunk of a stream: a word each, 64 streams at a time.
    fn words(&self) -> Result<(), Box<dyn Error>> {
        let streams = |times: u32, words: u32| Load { work: Work::Stream { words }, times, at_a_time: 64 };
        let times = (self.calls / 16).next_multiple_of(64);
        let samples = self.rounds(ROUNDS, |subject| {
            let [short, long] = WORDS.map(|words| process::sample(subject, &self.server.url, streams(times, words)));
            Ok(long?.beyond(&short?, f64::from(WORDS[1] - WORDS[0])))
        })?;
        let load = streams((self.calls / 128).next_multiple_of(64), 0);
        let instructions = self.count(1, |subject| callgrind::per_word(subject, &self.server.url, load, WORDS))?;
        self.report("a streamed chunk, 64 streams", &instructions, &samples);
        Ok(())
    }

    /// What an open stream keeps.
    fn held(&self) -> Result<(), Box<dyn Error>> {
        let load = Load { work: Work::Hold, times: HELD, at_a_time: HELD };
        let kept = self.rounds(1, |subject| Ok(process::sample(subject, &self.server.url, load)?.kept))?;
        let rows: Vec<_> = self.subjects.iter().zip(&kept).map(|(subject, kept)| Row::one(subject, kept[0])).collect();
        println!("{}", table::render("an open stream", &["bytes kept"], &rows));
        Ok(())
    }

    /// A new client and its first call.
    fn first(&self) -> Result<(), Box<dyn Error>> {
        let counts = self.count(1, |subject| callgrind::first_call(subject, &self.server.url))?;
        let rows = self.subjects.iter().zip(&counts).filter_map(|(subject, of)| Some(Row::one(subject, *of.first()?)));
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            println!("{}", table::render("new client and first call", &["instructions"], &rows));
        }
        Ok(())
    }

    /// The figures of each subject.
    fn rounds<T: Clone>(
        &self,
        rounds: usize,
        measure: impl Fn(&str) -> Result<T, Box<dyn Error>>,
    ) -> Result<Vec<Vec<T>>, Box<dyn Error>> {
        let mut figures = vec![Vec::new(); self.subjects.len()];
        for _ in 0..rounds {
            for (subject, figures) in self.subjects.iter().zip(&mut figures) {
                figures.push(measure(subject)?);
            }
        }
        Ok(figures)
    }

    /// The same, with none where instructions are not counted.
    fn count(
        &self,
        rounds: usize,
        measure: impl Fn(&str) -> Result<f64, Box<dyn Error>>,
    ) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
        self.rounds(if self.callgrind { rounds } else { 0 }, measure)
    }

    fn report(&self, title: &str, instructions: &[Vec<f64>], samples: &[Vec<Sample>]) {
        let rows = self.subjects.iter().zip(instructions).zip(samples);
        let rows: Vec<_> = rows.map(|((subject, counts), samples)| Row::costs(subject, counts, samples)).collect();
        println!("{}", table::render(title, &COSTS, &rows));
    }
}

/// Leaves a profile of `subject` for `callgrind_annotate`: of calls, or of streams.
fn profile(subject: &str, options: &Options) -> Result<(), Box<dyn Error>> {
    let server = Server::start()?;
    let file = format!("{}/callgrind.{}.out", env!("CARGO_TARGET_TMPDIR"), subject.replace(' ', "-"));
    let load = if options.stream {
        Load { work: Work::Stream { words: WORDS[1] }, times: options.calls / 64, at_a_time: 64 }
    } else {
        Load { work: Work::Call, times: options.calls, at_a_time: 64 }
    };
    let instructions = callgrind::profile(subject, &server.url, load, &file)?;
    println!("{subject}: {instructions} instructions for {load:?}, start-up included. Read them by");
    println!("callgrind_annotate --inclusive=yes {file}");
    Ok(())
}
