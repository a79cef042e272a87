//! How long something small takes, on one thread and on two at once, and what it allocates.

use crate::mode::Mode;
use counting_alloc::count;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// Measurements of one case at one number of threads, of which the median is shown.
const SAMPLES: usize = 11;
/// How long one of them should take. Long enough for the clock, short enough to fit between two interruptions.
const SAMPLE: Duration = Duration::from_millis(10);
/// Calls over which allocations are averaged.
const COUNTED: u32 = 1000;

/// The bench, as it was asked to run.
pub(crate) struct Bench {
    mode: Mode,
    /// Cases, by a part of their names; all, if none is named.
    wanted: Vec<String>,
    /// Has the timers.
    runtime: Runtime,
}

impl Bench {
    pub(crate) fn new(args: &[String]) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Self {
            mode: Mode::from_args(args),
            wanted: args.iter().filter(|arg| !arg.starts_with("--")).cloned().collect(),
            runtime: runtime.worker_threads(1).enable_time().build().expect("a runtime with a clock"),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|part| name.contains(part.as_str()))
    }

    /// A line above the cases that follow.
    pub(crate) fn heading(&self, title: &str) {
        if self.mode == Mode::Measure {
            println!("\n{title:52} {:>8} {:>8} {:>7}", "ns", "ns at 2", "allocs");
        }
    }

    /// Measures what `on_thread` makes for each thread.
    pub(crate) fn case<F: FnMut()>(&self, name: &str, on_thread: impl Fn() -> F + Sync) {
        let _entered = self.runtime.enter();
        if self.mode == Mode::Smoke {
            on_thread()();
            println!("engine: {name}: ok");
            return;
        }
        if !self.wants(name) {
            return;
        }
        let mut run = on_thread();
        let mut calls = 256;
        while time(&mut run, calls) < SAMPLE {
            calls *= 2;
        }
        let allocated = count();
        (0..COUNTED).for_each(|_| run());
        let allocated = (count() - allocated).calls;
        drop(run);

        let alone = self.median(1, calls, &on_thread);
        let beside = self.median(2, calls, &on_thread);
        let whole = allocated / u64::from(COUNTED);
        let tenths = allocated % u64::from(COUNTED) * 10 / u64::from(COUNTED);
        println!("{name:52} {alone:8.1} {beside:8.1} {whole:5}.{tenths}");
    }

    /// Nanoseconds a call, on the slowest of `threads` that work at the same time.
    fn median<F: FnMut()>(&self, threads: usize, calls: u32, on_thread: &(impl Fn() -> F + Sync)) -> f64 {
        let start = Barrier::new(threads);
        let worker = || {
            let _entered = self.runtime.enter();
            let mut run = on_thread();
            let sample = |_| {
                start.wait();
                time(&mut run, calls).as_secs_f64() * 1e9 / f64::from(calls)
            };
            (0..SAMPLES).map(sample).collect::<Vec<f64>>()
        };
        let by_thread: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a case does not panic")).collect()
        });
        let slowest = |sample: usize| by_thread.iter().map(|thread| thread[sample]).fold(0.0, f64::max);
        let mut samples: Vec<f64> = (0..SAMPLES).map(slowest).collect();
        samples.sort_by(f64::total_cmp);
        samples[SAMPLES / 2]
    }
}

fn time(run: &mut impl FnMut(), calls: u32) -> Duration {
    let start = Instant::now();
    (0..calls).for_each(|_| run());
    start.elapsed()
}

/// Polls a future until it is ready, without a runtime's scheduler around it.
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
