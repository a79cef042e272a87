//! The one loop: admit, then for each attempt queue, send, classify, and wait or give up.

mod decide;
mod leave;

use super::answer::Answer;
use super::clock::later;
use super::failed::{Course, Decision, Stop, Tried};
use super::lease::Lease;
use super::race::race;
use super::{AttemptContext, End, Guards, Interrupt, Operation, Progress, Random, Retry, Run, Signal};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The settings of one run, its own or the policy's.
struct Effective<'a> {
    retry: &'a Retry,
    timeout: Option<Duration>,
    random: &'a Random,
    run: Run<'a>,
}

/// The loop. `guards` are the target's; everything that a call holds of them is in the lease. What the run goes through on
/// its way to either end is told in `course`.
pub(crate) fn execute<'a, O: Operation>(
    guards: &'a Arc<Guards>,
    retry: &'a Retry,
    timeout: Option<Duration>,
    random: &'a Random,
    run: Run<'a>,
    op: &'a mut O,
    course: &'a mut Course<O::Error>,
) -> impl Future<Output = Result<(O::Output, Lease), Stop>> + Send {
    let (retry, timeout) = (run.retry.unwrap_or(retry), run.timeout.unwrap_or(timeout));
    Effective { retry, timeout, random, run }.attempts(guards, op, course)
}

impl<'a> Effective<'a> {
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and there is one in each call")]
    fn attempts<O: Operation>(
        self,
        guards: &'a Arc<Guards>,
        op: &'a mut O,
        course: &'a mut Course<O::Error>,
    ) -> impl Future<Output = Result<(O::Output, Lease), Stop>> + Send {
        async move {
            let run = &self.run;
            let mut now = Instant::now();
            self.check_time(now, Duration::ZERO)?;
            let mut timer = pin!(None::<Sleep>);
            // What can be had at once, here and below, is had without a future of its own.
            let admission = match guards.breaker.as_ref().map(|breaker| breaker.admit_at(run.key, now)) {
                None => None,
                Some(Answer::Now(answer)) => Some(answer.map_err(Stop::Circuit)?),
                Some(asking) => Some(self.asked(asking, &mut now, timer.as_mut()).await?.map_err(Stop::Circuit)?),
            };
            let mut lease = self.lease(guards, admission, now);
            let mut last = None;

            for index in 0..=u32::MAX {
                let asked = now;
                let ready = index == 0 && self.take(guards, &mut lease, now)?;
                if !ready {
                    now = match self.prepare(guards, &mut lease, now, timer.as_mut(), op).await {
                        Ok(now) => now,
                        Err(stop) => {
                            // A refusal must not blind the circuit to the failure that came before it.
                            if let Some(verdict) = last.filter(|_| stop != Stop::Cancelled) {
                                lease.record_verdict(&verdict, now);
                            }
                            return Err(stop);
                        }
                    };
                }
                if index == 0
                    && let Some(budget) = &guards.budget
                {
                    budget.record_first_at(now);
                }
                // Asked here: a recheck may have made a trial of the call.
                let trial = lease.is_trial();
                op.observe(Signal::AttemptStarted { index });
                let cut = self.cut(now);
                lease.progress = Progress::default();
                lease.attempt_started = now;
                let raced = {
                    let attempt =
                        pin!(op.attempt(AttemptContext { index, trial, started: now, progress: &lease.progress }));
                    race(attempt, timer.as_mut(), cut, run.cancel).await
                };
                let (error, by) = match raced {
                    Ok(Ok(output)) => return Ok((output, lease.answered())),
                    Ok(Err(error)) => (error, None),
                    Err(by) => (op.interrupted(by), Some(by)),
                };

                let end = Instant::now();
                course.sent |= lease.progress.is_sent();
                let verdict = op.classify(&error);
                op.observe(Signal::AttemptFailed { index, error: &error });
                if !matches!(by, Some(Interrupt::Cancelled | Interrupt::Deadline)) {
                    // It was made: a retry that found no connection, refused or in time, stays in the books too. Else nothing
                    // would hold the retries back when a target is down.
                    lease.keep_mark();
                }
                self.settle_failed(&mut lease, op, &error, &verdict, end);
                let next = match self.decide(&verdict, by, index, trial, course.sent, end) {
                    Ok((after, advised)) => match self.mark(guards, end, timer.as_mut()).await {
                        Ok(mark) => {
                            lease.mark = mark;
                            Decision::Retry { after, advised }
                        }
                        Err(stop) => Decision::Stop(stop),
                    },
                    Err(stop) => Decision::Stop(stop),
                };
                match next {
                    Decision::Retry { after: delay, advised } => {
                        let (retry, max_retries) = (index.saturating_add(1), self.retry.max_retries);
                        op.observe(Signal::RetryScheduled { retry, max_retries, delay, advised, error: &error });
                    }
                    Decision::Stop(Stop::Budget) => op.observe(Signal::BudgetExhausted { error: &error }),
                    Decision::Stop(_) => {}
                }
                let started = asked;
                let (took, queued) = (end - lease.attempt_started, lease.attempt_started - asked);
                course.tried.push(Tried { index, error, started, took, queued, next });
                match next {
                    Decision::Stop(stop) => {
                        if self.was_cut_short(by, cut) {
                            lease.record_cut(end);
                        } else {
                            lease.record_verdict(&verdict, end);
                        }
                        return Err(stop);
                    }
                    Decision::Retry { after, .. } => {
                        let wait = Some((later(end, after), Interrupt::Deadline));
                        // Cancelled here, the lease gives the mark back: the retry was not sent.
                        lease.progress = Progress::default();
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
