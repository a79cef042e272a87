//! Leave for an attempt: from the circuit, the limiter's queue and the clock. All of it may wait, and by the run's one timer.

use super::Engine;
use crate::resilience::answer::Answer;
use crate::resilience::holding::Holding;
use crate::resilience::limiter::{Permit, Taken, Turn};
use crate::resilience::race::{Timer, poll_timer, race};
use crate::resilience::{BudgetMark, End, Guards, Interrupt, Operation, Signal, Stop};
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

impl Engine<'_> {
    /// Whether there is still time for an attempt of at least `least`, and anyone who wants it.
    pub(super) fn check_time(&self, now: Instant, least: Duration) -> Result<(), Stop> {
        if self.run.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        match self.run.end {
            Some(end) if end.at() <= now || end.at() - now < least => Err(Stop::Deadline),
            _ => Ok(()),
        }
    }

    /// Awaits an answer that a shared store may be slow to give, as long as there is time and anyone who wants it.
    pub(super) async fn asked<T>(&self, answer: Answer<'_, T>, now: &mut Instant, timer: Timer<'_>) -> Result<T, Stop> {
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

    /// Takes the limiter's permit if it can be had at once; whether there is nothing to wait for.
    pub(super) fn take<G: Deref<Target = Guards>>(&self, holding: &mut Holding<G>, now: Instant) -> Result<bool, Stop> {
        let Some(limiter) = &holding.guards.limiter else { return Ok(true) };
        let Some(answer) = limiter.take_at(self.run.cost, now) else { return Ok(false) };
        holding.permit = Some(answer.map_err(Stop::Limit)?);
        Ok(true)
    }

    /// Everything before an attempt that has waited, or has to: the limiter's permit, the time that is left, the circuit again.
    pub(super) async fn prepare<O: Operation, G: Deref<Target = Guards>>(
        &self,
        holding: &mut Holding<G>,
        now: Instant,
        mut timer: Timer<'_>,
        op: &mut O,
    ) -> Result<Instant, Stop> {
        let waited = self.acquire(holding, now, timer.as_mut(), op).await?;
        let mut now = if waited { Instant::now() } else { now };
        // Also after the wait for a retry: a thread that was held up may have overslept it.
        self.check_time(now, self.retry.min_attempt_time)?;
        self.recheck(holding, &mut now, timer).await?;
        Ok(now)
    }

    /// The budget's leave for a retry, as of the failure at `end`: the wait counts from there, however long the answer takes.
    pub(super) async fn mark(
        &self,
        guards: &Guards,
        end: Instant,
        timer: Timer<'_>,
    ) -> Result<Option<BudgetMark>, Stop> {
        let Some(budget) = &guards.budget else { return Ok(None) };
        let mark = self.asked(budget.try_retry_at(end), &mut end.clone(), timer).await?;
        mark.map(Some).ok_or(Stop::Budget)
    }

    /// A run that has waited asks the circuit again, where that is configured. The new admission replaces the old one.
    async fn recheck<G: Deref<Target = Guards>>(
        &self,
        holding: &mut Holding<G>,
        now: &mut Instant,
        timer: Timer<'_>,
    ) -> Result<(), Stop> {
        if let Some(breaker) = holding.guards.breaker.as_ref().filter(|breaker| breaker.recheck())
            && !holding.is_trial()
        {
            let asked = self.asked(breaker.admit_at(self.run.key, *now), now, timer).await?;
            holding.admission = Some(asked.map_err(Stop::Circuit)?);
        }
        Ok(())
    }

    /// Takes the limiter's permit; whether it had to wait for it.
    async fn acquire<O: Operation, G: Deref<Target = Guards>>(
        &self,
        holding: &mut Holding<G>,
        now: Instant,
        mut timer: Timer<'_>,
        op: &mut O,
    ) -> Result<bool, Stop> {
        if self.take(holding, now)? {
            return Ok(false);
        }
        let Some(limiter) = &holding.guards.limiter else { return Ok(false) };
        let mut ticket = limiter.ticket(self.run.cost, !holding.is_trial(), now);
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
        holding.permit = Some(Taken::Permit(permit));
        op.observe(Signal::RateLimited { waited: now.elapsed(), bucket: ticket.bucket() });
        Ok(true)
    }
}
