//! How long something small takes, on one thread and on two at once, and what it allocates.

use crate::line::Line;
use crate::mode::Mode;
use crate::valgrind;
use counting_alloc::count;
use std::error::Error;
use std::pin::pin;
use std::process::Command;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// Measurements of one case at one number of threads, of which the median is shown.
const SAMPLES: usize = 51;
/// How long one of them should take. Long enough for the clock, short enough that most fit between two interruptions even on
/// a busy machine.
const SAMPLE: Duration = Duration::from_millis(1);
/// How often each of two threads passes the line on beside each measurement.
const TURNS: u32 = 256;
/// Calls over which allocations are averaged.
const COUNTED: u32 = 1000;

/// The first argument of a process whose instructions are counted: the case, and how often to run it.
const COUNT: &str = "--as-counted";
const CALLGRIND_CALLS: u32 = 1000;

/// The bench, as it was asked to run.
pub(crate) struct Bench {
    asked: Asked,
    /// Has the timers.
    runtime: Runtime,
}

enum Asked {
    Smoke,
    /// Cases, by a part of their names; all, if none is named.
    Measure {
        wanted: Vec<String>,
        callgrind: bool,
    },
    /// Run one case, to be counted from outside.
    Run {
        case: String,
        calls: u32,
    },
}

impl Bench {
    pub(crate) fn new(args: &[String]) -> Self {
        let asked = match (args, Mode::from_args(args)) {
            ([role, case, calls], _) if role == COUNT => {
                Asked::Run { case: case.clone(), calls: calls.parse().expect("a number of calls") }
            }
            (_, Mode::Smoke) => Asked::Smoke,
            (_, Mode::Measure) => Asked::Measure {
                wanted: args.iter().filter(|arg| !arg.starts_with("--")).cloned().collect(),
                callgrind: !args.iter().any(|arg| arg == "--no-callgrind") && valgrind::is_installed("valgrind"),
            },
        };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Self { asked, runtime: runtime.worker_threads(1).enable_time().build().expect("a runtime with a clock") }
    }

    /// A line above the cases that follow.
    pub(crate) fn heading(&self, title: &str) {
        if matches!(self.asked, Asked::Measure { .. }) {
            println!("\n{title:52} {:>8} {:>8} {:>8} {:>8} {:>8}", "instr.", "ns", "ns at 2", "line", "allocs");
        }
    }

    /// Measures what `on_thread` makes for each thread.
    pub(crate) fn case<F: FnMut()>(&self, name: &str, on_thread: impl Fn() -> F + Sync) {
        let _entered = self.runtime.enter();
        match &self.asked {
            Asked::Smoke => {
                on_thread()();
                println!("engine: {name}: ok");
            }
            Asked::Run { case, calls } if case == name => {
                let mut run = on_thread();
                run(); // what is made once, at the first
                run_to_be_counted(&mut run, *calls);
            }
            Asked::Measure { wanted, callgrind } if wants(wanted, name) => {
                let instructions = callgrind.then(|| instructions(name).expect("callgrind counts"));
                let instructions = instructions.map_or_else(|| "-".to_owned(), |count| format!("{count:.0}"));
                let (alone, (beside, line), allocations) = self.measure(&on_thread);
                println!("{name:52} {instructions:>8} {alone:8.1} {beside:8.1} {line:8.1} {allocations:8.1}");
            }
            Asked::Measure { .. } | Asked::Run { .. } => {}
        }
    }

    /// Nanoseconds on one thread, on each of two with what their line took, and allocations.
    fn measure<F: FnMut()>(&self, on_thread: &(impl Fn() -> F + Sync)) -> (f64, (f64, f64), f64) {
        let mut run = on_thread();
        let calls = calls(&mut run);
        let before = count();
        (0..COUNTED).for_each(|_| run());
        let allocated = u32::try_from((count() - before).calls).unwrap_or(u32::MAX);
        drop(run);
        let allocations = f64::from(allocated) / f64::from(COUNTED);
        (self.median(1, calls, on_thread).0, self.median(2, calls, on_thread), allocations)
    }

    /// Nanoseconds a call, on the slowest of `threads` that work at the same time; and those of their line.
    fn median<F: FnMut()>(&self, threads: usize, calls: u32, on_thread: &(impl Fn() -> F + Sync)) -> (f64, f64) {
        self.middle(threads, || {
            let mut run = on_thread();
            move |start: &Barrier| {
                start.wait();
                nanos(time(&mut run, calls), calls)
            }
        })
    }

    /// Measures what `with` takes longer than `without`, by turns: the machine's moods are the same for both.
    pub(crate) fn difference<F: FnMut(), G: FnMut()>(
        &self,
        name: &str,
        without: impl Fn() -> F + Sync,
        with: impl Fn() -> G + Sync,
    ) {
        let _entered = self.runtime.enter();
        match &self.asked {
            Asked::Smoke => {
                without()();
                with()();
                println!("engine: {name}: ok");
            }
            Asked::Measure { wanted, .. } if wants(wanted, name) => {
                let calls = calls(&mut without());
                let median = |threads| {
                    self.middle(threads, || {
                        let (mut without, mut with) = (without(), with());
                        move |start: &Barrier| {
                            start.wait();
                            let base = time(&mut without, calls);
                            start.wait();
                            nanos(time(&mut with, calls), calls) - nanos(base, calls)
                        }
                    })
                };
                let (alone, (beside, line)) = (median(1).0, median(2));
                println!("{name:52} {:>8} {alone:8.1} {beside:8.1} {line:8.1} {:>8}", "-", "-");
            }
            Asked::Measure { .. } | Asked::Run { .. } => {}
        }
    }

    /// The median of what the slowest of `threads` measures at a time. They start each measurement together; two of them
    /// pass a line to and fro before it, of which the median is the second.
    fn middle<S: FnMut(&Barrier) -> f64>(&self, threads: usize, on_thread: impl Fn() -> S + Sync) -> (f64, f64) {
        let (start, line) = (Barrier::new(threads), Line::default());
        let worker = || {
            let _entered = self.runtime.enter();
            let (mut play, mut sample) = (line.player(), on_thread());
            let mut apart = || {
                start.wait();
                nanos(time(&mut || play(TURNS), 1), 2 * TURNS)
            };
            let once = |_| (if threads == 2 { apart() } else { 0.0 }, sample(&start));
            (0..SAMPLES).map(once).collect::<Vec<(f64, f64)>>()
        };
        let by_thread: Vec<Vec<(f64, f64)>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a case does not panic")).collect()
        });
        let slowest = |sample: usize| by_thread.iter().map(|thread| thread[sample].1).fold(f64::MIN, f64::max);
        (median((0..SAMPLES).map(slowest)), median(by_thread[0].iter().map(|sample| sample.0)))
    }

    /// Times something large, by each of `parts` that it has. `work` says what took how long; the fastest of five counts.
    pub(crate) fn large<const STEPS: usize>(
        &self,
        name: &str,
        parts: u32,
        work: impl Fn() -> [(&'static str, Duration); STEPS],
    ) {
        let _entered = self.runtime.enter();
        match &self.asked {
            Asked::Smoke => {
                work();
                println!("engine: {name}: ok");
            }
            Asked::Measure { wanted, .. } if wants(wanted, name) => {
                let mut fastest = work();
                for _ in 1..5 {
                    for (best, (_, took)) in fastest.iter_mut().zip(work()) {
                        best.1 = best.1.min(took);
                    }
                }
                for (step, took) in fastest {
                    println!("{:52} {:>8} {:8.1}", format!("{name}: {step}"), "-", nanos(took, parts));
                }
            }
            Asked::Measure { .. } | Asked::Run { .. } => {}
        }
    }
}

fn wants(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
}

/// Instructions of one run of the case, counted inside [`run_to_be_counted`] alone: what is made before a case may cost far
/// more than the case, and differ from process to process (a clock that calibrates itself).
fn instructions(case: &str) -> Result<f64, Box<dyn Error>> {
    let [valgrind, options @ ..] = valgrind::CALLGRIND;
    let mut command = Command::new(valgrind);
    command.args(options).arg("--toggle-collect=*run_to_be_counted*").arg(std::env::current_exe()?);
    let collected = valgrind::collect(command.args([COUNT, case, &CALLGRIND_CALLS.to_string()]))?;
    Ok(collected / f64::from(CALLGRIND_CALLS))
}

#[inline(never)] // callgrind finds it by its name
fn run_to_be_counted(run: &mut impl FnMut(), calls: u32) {
    (0..calls).for_each(|_| run());
}

/// How many calls make a sample.
fn calls(run: &mut impl FnMut()) -> u32 {
    let mut calls = 256;
    // Thrice, so that an interruption is not taken for work.
    while (0..3).any(|_| time(run, calls) < SAMPLE) {
        calls *= 2;
    }
    calls
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn nanos(took: Duration, calls: u32) -> f64 {
    took.as_secs_f64() * 1e9 / f64::from(calls)
}

fn time(run: &mut impl FnMut(), calls: u32) -> Duration {
    let start = Instant::now();
    (0..calls).for_each(|_| run());
    start.elapsed()
}

/// Polls a future until it is ready, without a runtime's scheduler around it.
#[inline] // or each future would be moved once more than by who awaits it
pub(crate) fn spin<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Is not ready at first, so that whoever waits for it must arm its timer.
pub(crate) async fn pending_once() {
    let mut polled = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}
