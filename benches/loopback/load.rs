//! Work, much of it at a time, and what it costs this process.

use crate::server::{self, WORD};
use crate::subject::{Streaming, Subject};
use counting_alloc::count;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio::time::Instant;

/// What a client is measured at. The first part of the address says it to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Work {
    /// The first call, and no other.
    First,
    /// A call with a whole answer.
    Call,
    /// A streamed answer, read to its end.
    Stream { words: u32 },
    /// A streamed answer that stays open after its first word.
    Hold,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Call => f.write_str("call"),
            Self::Stream { words } => write!(f, "{words}"),
            Self::Hold => f.write_str("hold"),
        }
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "first" => Ok(Self::First),
            "call" => Ok(Self::Call),
            "hold" => Ok(Self::Hold),
            words => Ok(Self::Stream { words: words.parse().map_err(|_| format!("not a work: {word:?}"))? }),
        }
    }
}

impl Work {
    /// The work that a request asks for: `POST /100/v1/chat/completions HTTP/1.1`.
    pub(crate) fn of_request(request: &[u8]) -> Self {
        let part = request.split(|&byte| byte == b'/').nth(1).and_then(|part| str::from_utf8(part).ok());
        part.and_then(|part| part.parse().ok()).expect("the bench's own clients ask")
    }
}

/// How much work, and how much of it at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) work: Work,
    pub(crate) times: u32,
    pub(crate) at_a_time: u32,
}

impl Load {
    pub(crate) const FIRST: Self = Self { work: Work::First, times: 1, at_a_time: 1 };
}

/// What it cost to do the work once, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) wall: f64,
    /// Seconds on the processor, the kernel's work for this process included. Zero where the system does not say.
    pub(crate) cpu: f64,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
    /// Bytes that are still allocated.
    pub(crate) kept: f64,
}

impl Sample {
    /// What each of `parts` costs that this has and `other` does not.
    pub(crate) fn beyond(&self, other: &Self, parts: f64) -> Self {
        Self {
            wall: (self.wall - other.wall) / parts,
            cpu: (self.cpu - other.cpu) / parts,
            allocations: (self.allocations - other.allocations) / parts,
            bytes: (self.bytes - other.bytes) / parts,
            kept: (self.kept - other.kept) / parts,
        }
    }
}

/// A line between two processes.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {} {}", self.wall, self.cpu, self.allocations, self.bytes, self.kept)
    }
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[wall, cpu, allocations, bytes, kept]) => Ok(Self { wall, cpu, allocations, bytes, kept }),
            _ => Err(format!("not a sample: {line:?}")),
        }
    }
}

/// Calls, as `load` says.
pub(crate) async fn call(subject: impl Subject, load: Load) -> Sample {
    let (subject, text_len) = (Arc::new(subject), server::text_len());
    let once = move || {
        let subject = Arc::clone(&subject);
        async move { assert_eq!(subject.call().await, text_len) }
    };
    measure(once, load).await
}

/// Streams, as `load` says.
pub(crate) async fn stream(subject: impl Streaming, load: Load) -> Sample {
    let subject = Arc::new(subject);
    let open = move || {
        let subject = Arc::clone(&subject);
        async move { (subject.open().await, subject) }
    };
    let Work::Stream { words } = load.work else { return measure(open, load).await };
    let read = move || {
        let opened = open();
        async move {
            let (stream, subject) = opened.await;
            assert_eq!(subject.drain(stream).await, words as usize * WORD.len());
        }
    };
    measure(read, load).await
}

/// What it costs to do the work, once the connections are open where they are to be. The runtime has one thread: this one.
async fn measure<F>(once: impl Fn() -> F + Send + Sync + 'static, load: Load) -> Sample
where
    F: Future<Output: Send> + Send + 'static,
{
    let once = Arc::new(once);
    if !matches!(load.work, Work::First | Work::Hold) {
        run(&once, Load { times: 4 * load.at_a_time, ..load }).await;
    }
    let (counted, cpu, start) = (count(), cpu_seconds(), Instant::now());
    let held = run(&once, load).await;
    let (wall, cpu, counted) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu, count() - counted);
    drop(held);

    let times = f64::from(load.times);
    Sample {
        wall: wall / times,
        cpu: cpu / times,
        allocations: float(counted.calls) / times,
        bytes: float(counted.bytes) / times,
        kept: (float(counted.bytes) - float(counted.freed)) / times,
    }
}

/// Does the work as often as `load` says, and returns what it gave, so that what is to stay open does.
async fn run<F>(once: &Arc<impl Fn() -> F + Send + Sync + 'static>, load: Load) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (each, rest) = (load.times / load.at_a_time, load.times % load.at_a_time);
    let worker = |index: u32| {
        let once = Arc::clone(once);
        tokio::spawn(async move {
            let mut given = Vec::new();
            for _ in 0..each + u32::from(index < rest) {
                given.push(once().await);
            }
            given
        })
    };
    let workers: Vec<_> = (0..load.at_a_time).map(worker).collect();
    let mut given = Vec::new();
    for worker in workers {
        given.append(&mut worker.await.expect("every call is answered"));
    }
    given
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
