//! Replays many cases, a few at a time, and tells what came of each.

use super::case::{Case, Line};
use super::play::{Verdict, play};
use super::subject::Subject;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// How many cases run side by side, those left out that the clock is part of.
    pub(crate) jobs: usize,
    /// How long a case may take.
    pub(crate) limit: Duration,
    /// Tell failures only.
    pub(crate) quiet: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { jobs: 4, limit: Duration::from_secs(30), quiet: false }
    }
}

/// What came of all cases.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    /// The names of those that failed.
    pub(crate) failed: Vec<String>,
    /// How many are left to do, by reason.
    pub(crate) todo: BTreeMap<String, usize>,
}

impl Summary {
    /// Whether something was tried and nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed.is_empty() && self.passed + self.todo.len() > 0
    }
}

/// Replays cases: one line each on `out`, then what is left to do by reason, then `N passed, N failed`.
pub(crate) fn replay<S: Subject + 'static>(
    lines: Vec<Line>,
    subject: &Arc<S>,
    options: Options,
    out: &mut impl Write,
) -> io::Result<Summary> {
    let (timed, others): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line.case.as_ref().is_ok_and(Case::is_timed));
    let mut summary = Summary::default();
    for (lines, jobs) in [(others, options.jobs.max(1)), (timed, 1)] {
        let queue = Mutex::new(VecDeque::from(lines));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        thread::scope(|scope| {
            let (sender, verdicts) = mpsc::channel();
            for _ in 0..jobs {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some(line) = next() {
                        let verdict = match line.case {
                            Ok(case) => on_a_thread(case, subject, options.limit),
                            Err(why) => Verdict::trouble("case", "one that can be read", why),
                        };
                        if sender.send((line.name, verdict)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            verdicts.into_iter().try_for_each(|(name, verdict)| summary.tell(name, verdict, options, out))
        })?;
    }
    if !summary.todo.is_empty() {
        writeln!(out, "\n{} todo", summary.todo.values().sum::<usize>())?;
        for (reason, count) in &summary.todo {
            writeln!(out, "{count:6}  {reason}")?;
        }
    }
    writeln!(out, "\n{} passed, {} failed", summary.passed, summary.failed.len())?;
    Ok(summary)
}

impl Summary {
    fn tell(&mut self, name: String, verdict: Verdict, options: Options, out: &mut impl Write) -> io::Result<()> {
        match verdict {
            Verdict::Passed => {
                if !options.quiet {
                    writeln!(out, "ok    {name}")?;
                }
                self.passed += 1;
            }
            Verdict::Failed(faults) => {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                writeln!(out, "FAIL  {name}: {}", faults.join("; "))?;
                self.failed.push(name);
            }
            Verdict::Todo(reason) => {
                if !options.quiet {
                    writeln!(out, "todo  {name}: {reason}")?;
                }
                *self.todo.entry(reason).or_default() += 1;
            }
        }
        Ok(())
    }
}

/// Plays a case on a thread and a runtime of its own: what it leaves behind ends with it, and one that never yields
/// is found out too.
fn on_a_thread<S: Subject + 'static>(case: Case, subject: &Arc<S>, limit: Duration) -> Verdict {
    let subject = Arc::clone(subject);
    let (sender, verdict) = mpsc::channel();
    let played = thread::Builder::new().name(case.id.clone()).spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(sender.send(Verdict::trouble("runtime", "one", error))),
        };
        let verdict = runtime.block_on(play(&case, &*subject, limit));
        runtime.shutdown_background();
        drop(sender.send(verdict));
    });
    match played {
        Err(error) => Verdict::trouble("thread", "one", error),
        Ok(_) => match verdict.recv_timeout(limit + Duration::from_secs(2)) {
            Ok(verdict) => verdict,
            Err(mpsc::RecvTimeoutError::Timeout) => Verdict::trouble("call", "that it yields", "a thread is stuck"),
            Err(mpsc::RecvTimeoutError::Disconnected) => Verdict::trouble("call", "an outcome", "a panic"),
        },
    }
}
