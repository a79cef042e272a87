//! Calls, many at a time, and what they cost this process.

use crate::server;
use crate::subject::Subject;
use counting_alloc::count;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio::time::Instant;

/// How much work, and how much of it at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) calls: u32,
    pub(crate) at_a_time: u32,
}

impl Load {
    /// The first call of a new client, and no other.
    pub(crate) const FIRST: Self = Self { calls: 0, at_a_time: 0 };
}

/// What a call cost, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) wall: f64,
    /// Seconds on the processor, the kernel's work for this process included. Zero where the system does not say.
    pub(crate) cpu: f64,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

/// A line between two processes.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.wall, self.cpu, self.allocations, self.bytes)
    }
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[wall, cpu, allocations, bytes]) => Ok(Self { wall, cpu, allocations, bytes }),
            _ => Err(format!("not a sample: {line:?}")),
        }
    }
}

/// Opens the connections, then measures `load`; of [`Load::FIRST`] it measures nothing. The runtime has one thread: this one.
pub(crate) async fn drive(subject: impl Subject, load: Load) -> Sample {
    if load.at_a_time == 0 {
        subject.call().await;
        return Sample::default();
    }
    let subject = Arc::new(subject);
    run(&subject, Load { calls: 4 * load.at_a_time, ..load }).await;

    let (allocated, cpu, start) = (count(), cpu_seconds(), Instant::now());
    run(&subject, load).await;
    let (wall, cpu, allocated) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu, count() - allocated);

    let calls = f64::from(load.calls);
    Sample {
        wall: wall / calls,
        cpu: cpu / calls,
        allocations: float(allocated.calls) / calls,
        bytes: float(allocated.bytes) / calls,
    }
}

async fn run(subject: &Arc<impl Subject>, Load { calls, at_a_time }: Load) {
    let expected = server::text_len();
    let worker = |index: u32| {
        let subject = Arc::clone(subject);
        let share = calls / at_a_time + u32::from(index < calls % at_a_time);
        tokio::spawn(async move {
            for _ in 0..share {
                assert_eq!(subject.call().await, expected);
            }
        })
    };
    let workers: Vec<_> = (0..at_a_time).map(worker).collect();
    for worker in workers {
        worker.await.expect("every call is answered");
    }
}

/// The time this thread has spent on a processor, as Linux counts it.
fn cpu_seconds() -> f64 {
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    read.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

#[allow(clippy::cast_precision_loss)] // a bench counts far below 2^53
fn float(count: u64) -> f64 {
    count as f64
}
