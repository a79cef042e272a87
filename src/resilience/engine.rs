//! The one loop: admit, then for each attempt queue, send, classify, and wait or give up.

mod decide;
mod leave;

use super::answer::Answer;
use super::clock::later;
use super::failed::{Course, Decision, Stop, Tried};
use super::holding::Holding;
use super::race::race;
use super::{AttemptContext, End, Guards, Interrupt, Operation, Progress, Random, Retry, Run, Signal};
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The settings of one run, its own or the policy's.
pub(crate) struct Engine<'a> {
    retry: &'a Retry,
    timeout: Option<Duration>,
    random: &'a Random,
    run: Run<'a>,
}

impl<'a> Engine<'a> {
    /// What `run` does not set is as given beside it.
    #[inline]
    pub(crate) fn new(retry: &'a Retry, timeout: Option<Duration>, random: &'a Random, run: Run<'a>) -> Self {
        Self { retry: run.retry.unwrap_or(retry), timeout: run.timeout.unwrap_or(timeout), random, run }
    }

    /// The loop. It starts when `holding` says, and everything that a call holds of its target is in there; what the run goes
    /// through on its way to either end is told in `course`.
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and there is one in each call")]
    pub(crate) fn execute<O: Operation, G: Deref<Target = Guards> + Send + Sync>(
        &'a self,
        holding: &'a mut Holding<G>,
        op: &'a mut O,
        course: &'a mut Course<O::Error>,
    ) -> impl Future<Output = Result<O::Output, Stop>> + Send {
        async move {
            let run = &self.run;
            let mut now = holding.attempt_started;
            self.check_time(now, Duration::ZERO)?;
            (holding.timeout, holding.max_advised) = (self.timeout, self.retry.max_retry_after);
            let mut timer = pin!(None::<Sleep>);
            // What can be had at once, here and below, is had without a future of its own.
            if let Some(breaker) = &holding.guards.breaker {
                if let Some(admission) = breaker.admit_freely() {
                    holding.admission = Some(admission);
                } else {
                    let answer = match breaker.ask(run.key, now) {
                        Answer::Now(answer) => answer,
                        asking @ Answer::Later(_) => self.asked(asking, &mut now, timer.as_mut()).await?,
                    };
                    holding.admission = Some(answer.map_err(Stop::Circuit)?);
                }
            }
            let mut last = None;

            for index in 0..=u32::MAX {
                let asked = now;
                let ready = index == 0 && self.take(holding, now)?;
                if !ready {
                    now = match self.prepare(holding, now, timer.as_mut(), op).await {
                        Ok(now) => now,
                        Err(stop) => {
                            // A refusal must not blind the circuit to the failure that came before it.
                            if let Some(verdict) = last.filter(|_| stop != Stop::Cancelled) {
                                holding.record_verdict(&verdict, now);
                            }
                            return Err(stop);
                        }
                    };
                }
                if index == 0
                    && let Some(budget) = &holding.guards.budget
                {
                    budget.record_first_at(now);
                }
                // Asked here: a recheck may have made a trial of the call.
                let trial = holding.is_trial();
                op.observe(Signal::AttemptStarted { index });
                let cut = self.cut(now);
                holding.progress = Progress::default();
                holding.attempt_started = now;
                let raced = {
                    let attempt =
                        pin!(op.attempt(AttemptContext { index, trial, started: now, progress: &holding.progress }));
                    race(attempt, timer.as_mut(), cut, run.cancel).await
                };
                let (error, by) = match raced {
                    Ok(Ok(output)) => {
                        holding.progress.answered();
                        return Ok(output);
                    }
                    Ok(Err(error)) => (error, None),
                    Err(by) => (op.interrupted(by), Some(by)),
                };

                let end = Instant::now();
                course.sent |= holding.progress.is_sent();
                let verdict = op.classify(&error);
                op.observe(Signal::AttemptFailed { index, error: &error });
                if !matches!(by, Some(Interrupt::Cancelled | Interrupt::Deadline)) {
                    // It was made: a retry that found no connection, refused or in time, stays in the books too. Else nothing
                    // would hold the retries back when a target is down.
                    holding.keep_mark();
                }
                self.settle_failed(holding, op, &error, &verdict, end);
                let next = match self.decide(&verdict, by, index, trial, course.sent, end) {
                    Ok((after, advised)) => match self.mark(&holding.guards, end, timer.as_mut()).await {
                        Ok(mark) => {
                            holding.mark = mark;
                            Decision::Retry { after, advised }
                        }
                        Err(stop) => Decision::Stop(stop),
                    },
                    Err(stop) => Decision::Stop(stop),
                };
                self.tell(op, index, &error, next);
                let (took, queued) = (end - holding.attempt_started, holding.attempt_started - asked);
                course.tried.push(Tried { index, error, started: asked, took, queued, next });
                match next {
                    Decision::Stop(stop) => {
                        if self.was_cut_short(by, cut) {
                            holding.record_cut(end);
                        } else {
                            holding.record_verdict(&verdict, end);
                        }
                        return Err(stop);
                    }
                    Decision::Retry { after, .. } => {
                        let wait = Some((later(end, after), Interrupt::Deadline));
                        // Cancelled here, its holder gives the mark back: the retry was not sent.
                        holding.progress = Progress::default();
                        if race(pin!(std::future::pending::<()>()), timer.as_mut(), wait, run.cancel).await
                            == Err(Interrupt::Cancelled)
                        {
                            return Err(Stop::Cancelled);
                        }
                        now = Instant::now();
                        last = Some(verdict);
                    }
                }
            }
            Err(Stop::UsedUp) // after four billion attempts
        }
    }

    /// When, and by what, an attempt that starts now is cut off.
    fn cut(&self, now: Instant) -> Option<(Instant, Interrupt)> {
        let timeout = self.timeout.map(|timeout| (later(now, timeout), Interrupt::Timeout(timeout)));
        match (timeout, self.run.end) {
            (Some(cut), Some(end)) if cut.0 < end.at() => Some(cut),
            (_, Some(End::Deadline(at))) => Some((at, Interrupt::Deadline)),
            (_, Some(End::Reserve(at))) => Some((at, Interrupt::Timeout(at.saturating_duration_since(now)))),
            (cut, None) => cut,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
