//! The one loop: admit, then for each attempt queue, send, classify, and wait or give up.

use super::answer::Answer;
use super::clock::later;
use super::failed::{Decision, Failed, Stop, Tried};
use super::lease::Lease;
use super::limiter::{Permit, Turn};
use super::race::{Cancel, Timer, poll_timer, race};
use super::{Advice, AttemptContext, Guards, Interrupt, Operation, Progress, Random, Retry, Signal, Verdict, backoff};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// What one run is given beside the operation. A setting here replaces the policy's, it never multiplies with it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Run<'a> {
    /// How often to try again, instead of the policy's.
    pub retry: Option<&'a Retry>,
    /// The longest attempt, instead of the policy's; `Some(None)` is no limit.
    pub timeout: Option<Option<Duration>>,
    /// The instant to end by.
    pub end: Option<End>,
    /// What cancels the run.
    pub cancel: Cancel<'a>,
    /// The estimate of tokens for the limiter.
    pub cost: u32,
    /// The model, for a circuit that is isolated by it.
    pub key: &'a str,
}

/// The instant that a run ends by, and what that means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum End {
    /// The deadline of all: an attempt that it cuts off was interrupted by [`Interrupt::Deadline`].
    Deadline(Instant),
    /// This run's share of the time, so that another has time left: it cuts off like a timeout.
    Reserve(Instant),
}

impl End {
    /// The instant.
    pub fn at(self) -> Instant {
        match self {
            Self::Deadline(at) | Self::Reserve(at) => at,
        }
    }
}

/// The settings of one run, its own or the policy's.
struct Effective<'a> {
    retry: &'a Retry,
    timeout: Option<Duration>,
    random: &'a Random,
    run: Run<'a>,
}

/// The loop. `guards` are the target's; everything that a call holds of them is in the lease. After a success `tried` holds
/// the failures before it; after a failure they are in [`Failed`].
pub(crate) async fn execute<O: Operation>(
    guards: &Arc<Guards>,
    retry: &Retry,
    timeout: Option<Duration>,
    random: &Random,
    run: Run<'_>,
    op: &mut O,
    tried: &mut Vec<Tried<O::Error>>,
) -> Result<(O::Output, Lease), Failed<O::Error>> {
    let settings =
        Effective { retry: run.retry.unwrap_or(retry), timeout: run.timeout.unwrap_or(timeout), random, run };
    let mut sent = false;
    match settings.attempts(guards, op, tried, &mut sent).await {
        Ok(done) => Ok(done),
        Err(stop) => Err(Failed { stop, tried: std::mem::take(tried), sent }),
    }
}

impl Effective<'_> {
    async fn attempts<O: Operation>(
        &self,
        guards: &Arc<Guards>,
        op: &mut O,
        tried: &mut Vec<Tried<O::Error>>,
        sent: &mut bool,
    ) -> Result<(O::Output, Lease), Stop> {
        let run = &self.run;
        let mut now = Instant::now();
        self.check_time(now, Duration::ZERO)?;
        let mut timer = pin!(None::<Sleep>);
        let mut lease = self.admit(guards, &mut now, timer.as_mut()).await?;
        let mut last = None;

        for index in 0..=u32::MAX {
            let asked = now;
            if index > 0 || guards.limiter.is_some() {
                now = match self.prepare(&mut lease, index, now, timer.as_mut(), op).await {
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
                Ok(Ok(output)) => return Ok((output, lease)),
                Ok(Err(error)) => (error, None),
                Err(by) => (op.interrupted(by), Some(by)),
            };

            let end = Instant::now();
            *sent |= lease.progress.is_sent();
            let verdict = op.classify(&error);
            op.observe(Signal::AttemptFailed { index, error: &error });
            if !matches!(by, Some(Interrupt::Cancelled | Interrupt::Deadline)) {
                // It was made: a retry that found no connection, refused or in time, stays in the books too. Else nothing
                // would hold the retries back when a target is down.
                lease.keep_mark();
            }
            self.settle_failed(&mut lease, op, &error, &verdict, end);
            let decided = self.decide(&verdict, by, index, trial, *sent, end);
            let next = match decided {
                Ok((after, advised)) => match &guards.budget {
                    None => Decision::Retry { after, advised },
                    // The wait counts from the failure, however long the answer takes.
                    Some(budget) => {
                        match self.asked(budget.try_retry_at(end), &mut end.clone(), timer.as_mut()).await {
                            Ok(Some(mark)) => {
                                lease.mark = Some(mark);
                                Decision::Retry { after, advised }
                            }
                            Ok(None) => {
                                op.observe(Signal::BudgetExhausted { error: &error });
                                Decision::Stop(Stop::Budget)
                            }
                            Err(stop) => Decision::Stop(stop),
                        }
                    }
                },
                Err(stop) => Decision::Stop(stop),
            };
            if let Decision::Retry { after: delay, advised } = next {
                let (retry, max_retries) = (index.saturating_add(1), self.retry.max_retries);
                op.observe(Signal::RetryScheduled { retry, max_retries, delay, advised, error: &error });
            }
            let started = asked;
            let (took, queued) = (end - lease.attempt_started, lease.attempt_started - asked);
            tried.push(Tried { index, error, started, took, queued, next });
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

    /// Whether there is still time for an attempt of at least `least`, and anyone who wants it.
    fn check_time(&self, now: Instant, least: Duration) -> Result<(), Stop> {
        if self.run.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        match self.run.end {
            Some(end) if end.at() <= now || end.at() - now < least => Err(Stop::Deadline),
            _ => Ok(()),
        }
    }

    /// Awaits an answer that a shared store may be slow to give, as long as there is time and anyone who wants it.
    async fn asked<T>(&self, answer: Answer<'_, T>, now: &mut Instant, timer: Timer<'_>) -> Result<T, Stop> {
        let asking = match answer {
            Answer::Now(answer) => return Ok(answer),
            Answer::Later(asking) => asking,
        };
        let end = self.run.end.map(|end| (end.at(), Interrupt::Deadline));
        let answer = race(pin!(asking), timer, end, self.run.cancel).await;
        *now = Instant::now();
        self.check_time(*now, Duration::ZERO)?;
        answer.map_err(|_| Stop::Deadline)
    }

    /// Asks the circuit, once for the run.
    async fn admit(&self, guards: &Arc<Guards>, now: &mut Instant, timer: Timer<'_>) -> Result<Lease, Stop> {
        let admission = match &guards.breaker {
            None => None,
            Some(breaker) => {
                let asked = self.asked(breaker.admit_at(self.run.key, *now), now, timer).await?;
                Some(asked.map_err(Stop::Circuit)?)
            }
        };
        let hang_evidence = (guards.breaker.as_ref().and_then(super::Breaker::hang_evidence)).unwrap_or_else(|| {
            let longest = Duration::from_secs(10);
            self.timeout.map_or(longest, |timeout| longest.min(timeout / 2))
        });
        Ok(Lease {
            guards: Arc::clone(guards),
            admission,
            permit: None,
            mark: None,
            progress: Progress::default(),
            attempt_started: *now,
            hang_evidence,
            max_advised: self.retry.max_retry_after,
        })
    }

    /// Everything before an attempt that may have to wait: the limiter's permit, the time that is left, the circuit again.
    async fn prepare<O: Operation>(
        &self,
        lease: &mut Lease,
        index: u32,
        now: Instant,
        mut timer: Timer<'_>,
        op: &mut O,
    ) -> Result<Instant, Stop> {
        let waited = self.acquire(lease, now, timer.as_mut(), op).await?;
        let mut now = if waited { Instant::now() } else { now };
        if waited || index > 0 {
            // Also after the wait for a retry: a thread that was held up may have overslept it.
            self.check_time(now, self.retry.min_attempt_time)?;
            self.recheck(lease, &mut now, timer).await?;
        }
        Ok(now)
    }

    /// A run that has waited asks the circuit again, where that is configured. The new admission replaces the old one.
    async fn recheck(&self, lease: &mut Lease, now: &mut Instant, timer: Timer<'_>) -> Result<(), Stop> {
        let guards = Arc::clone(&lease.guards);
        if let Some(breaker) = guards.breaker.as_ref().filter(|breaker| breaker.recheck())
            && !lease.is_trial()
        {
            let asked = self.asked(breaker.admit_at(self.run.key, *now), now, timer).await?;
            lease.admission = Some(asked.map_err(Stop::Circuit)?);
        }
        Ok(())
    }

    /// Takes the limiter's permit; whether it had to wait for it.
    async fn acquire<O: Operation>(
        &self,
        lease: &mut Lease,
        now: Instant,
        mut timer: Timer<'_>,
        op: &mut O,
    ) -> Result<bool, Stop> {
        let guards = Arc::clone(&lease.guards);
        let Some(limiter) = &guards.limiter else { return Ok(false) };
        if let Some(answer) = limiter.try_acquire_at(self.run.cost, now) {
            lease.permit = Some(answer.map_err(Stop::Limit)?);
            return Ok(false);
        }
        let mut ticket = limiter.ticket(self.run.cost, !lease.is_trial(), now);
        let end = self.run.end.map(End::at);
        // The call's own timer serves its place in the queue, the queue's bound and the deadline.
        let turn = poll_fn(|cx| {
            loop {
                let now = Instant::now();
                match ticket.poll_until(cx, now) {
                    Turn::Served(answer) => return Poll::Ready(answer.map_err(Stop::Limit)),
                    Turn::Wait(_) if end.is_some_and(|end| now >= end) => return Poll::Ready(Err(Stop::Deadline)),
                    Turn::Wait(again) => {
                        let Some(at) = [again, end].into_iter().flatten().min() else { return Poll::Pending };
                        ready!(poll_timer(timer.as_mut(), cx, at));
                    }
                }
            }
        });
        let served = race(pin!(turn), pin!(None), None, self.run.cancel).await;
        let permit: Permit = match served {
            Ok(answer) => answer?,
            Err(_) => return Err(Stop::Cancelled),
        };
        lease.permit = Some(permit);
        op.observe(Signal::RateLimited { waited: now.elapsed(), bucket: ticket.bucket() });
        Ok(true)
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

    /// Whether the attempt was cut off for want of time or interest rather than by its own timeout: that says something
    /// about the target only where it was silent for long.
    fn was_cut_short(&self, by: Option<Interrupt>, cut: Option<(Instant, Interrupt)>) -> bool {
        match by {
            None => false,
            Some(Interrupt::Cancelled | Interrupt::Deadline) => true,
            Some(Interrupt::Timeout(_)) => {
                matches!(self.run.end, Some(End::Reserve(at)) if cut.is_some_and(|cut| cut.0 == at))
            }
        }
    }

    /// Gives back what a failed attempt held, before any wait, and lets the limiter learn from it.
    fn settle_failed<O: Operation>(
        &self,
        lease: &mut Lease,
        op: &mut O,
        error: &O::Error,
        verdict: &Verdict,
        end: Instant,
    ) {
        lease.end_attempt(op.spent(error));
        let Some(limiter) = &lease.guards.limiter else { return };
        if verdict.throttled {
            limiter.throttled_at(end);
        }
        if limiter.follows() {
            if let Some(hint) = op.limits(error) {
                limiter.follow_at(&hint, end);
            }
            if let (true, Advice::After(wait)) = (verdict.throttled, verdict.retry)
                && wait <= self.retry.max_retry_after
            {
                limiter.hold_until(later(end, wait));
            }
        }
    }

    /// Whether to try again, and after which wait.
    fn decide(
        &self,
        verdict: &Verdict,
        by: Option<Interrupt>,
        index: u32,
        trial: bool,
        sent: bool,
        now: Instant,
    ) -> Result<(Duration, bool), Stop> {
        let retry = self.retry;
        if self.run.cancel.is_cancelled() || by == Some(Interrupt::Cancelled) {
            return Err(Stop::Cancelled);
        }
        if by == Some(Interrupt::Deadline) {
            return Err(Stop::Deadline);
        }
        if verdict.retry == Advice::Never || (sent && !retry.idempotent) {
            return Err(Stop::NotRetryable);
        }
        if trial || index >= retry.max_retries {
            return Err(Stop::UsedUp);
        }
        let (wait, advised) = match verdict.retry {
            Advice::After(wait) if retry.respect_retry_after => {
                if wait > retry.max_retry_after {
                    return Err(Stop::WaitTooLong);
                }
                // In seconds, and checked as a number: neither the longest wait nor a share that is none may panic.
                let most = wait.as_secs_f64() * retry.advised_jitter;
                let more = if most > 0.0 {
                    Duration::from_secs_f64(most.min(1.0) * self.random.unit())
                } else {
                    Duration::ZERO
                };
                (wait.saturating_add(more), !wait.is_zero())
            }
            _ => (backoff(index, retry, self.random), false),
        };
        match self.run.end {
            Some(end) if later(now, wait.saturating_add(retry.min_attempt_time)) > end.at() => Err(Stop::Deadline),
            _ => Ok((wait, advised)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
