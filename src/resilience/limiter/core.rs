//! The decisions of a limiter: who may go out at which instant. No clock, no lock, no waiting.

use super::{
    Bucket, RateLimit, RateLimitState,
    aimd::Ceiling,
    bucket::TokenBucket,
    pacing::{Heard, Pacing},
    queue::{Place, Queue},
};
use crate::resilience::{LimitHint, clock::later, window::nanos};
use std::{mem, time::Duration};
use tokio::time::Instant;

/// Everything that one decision looks at.
///
/// In this order: what each decision writes fills two cache lines, with the lock before it. Threads that share a limiter
/// wait for each other's lines longer than for anything else.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Core {
    /// Slots ever taken, and how many may be out.
    taken: u64,
    slots: Option<u32>,
    requests: Option<TokenBucket>,
    tokens: Option<TokenBucket>,
    /// What had been given back when the buckets were refilled last, and when that was, in nanoseconds.
    seen: Totals,
    at: u64,
    pub(super) queue: Queue,
    /// What the head of the queue was found to wait for.
    pub(super) obstacle: Bucket,
    /// How many requests an idle limiter saves up, if not a minute's worth.
    burst: Option<u32>,
    ceiling: Option<Ceiling>,
    pacing: Option<Pacing>,
}

const _: () = assert!(mem::offset_of!(Core, queue) + 16 <= 128, "with the lock before it, it no longer fits");

/// Why not now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Obstacle {
    pub(super) bucket: Bucket,
    /// When it is out of the way, as far as time alone decides.
    pub(super) until: Option<Instant>,
}

/// All that was ever given back, and has succeeded, as counters that wrap.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Totals {
    pub(super) slots: u64,
    pub(super) tokens: i64,
    pub(super) requests: u32,
    pub(super) successes: u32,
}

/// An instant, and how far it is from the limiter's first, which is reckoned without the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    instant: Instant,
    start: Instant,
    nanos: u64,
}

impl Moment {
    #[inline]
    pub(super) fn new(instant: Instant, start: Instant) -> Self {
        Self { instant: instant.max(start), start, nanos: nanos(instant.saturating_duration_since(start)) }
    }
}

impl Core {
    pub(super) fn new(settings: &RateLimit) -> Self {
        let bucket = |limit, burst: Option<u64>| TokenBucket::new(limit, burst.unwrap_or(limit));
        let requests = settings.requests_per_minute;
        Self {
            taken: 0,
            slots: settings.max_concurrent,
            requests: requests.map(|limit| bucket(limit.into(), settings.burst.map(u64::from))),
            tokens: settings.tokens_per_minute.map(|limit| bucket(limit, settings.token_burst)),
            seen: Totals::default(),
            at: 0,
            queue: Queue::new(),
            obstacle: Bucket::Requests,
            burst: settings.burst,
            ceiling: settings.aimd.zip(requests).map(|(aimd, start)| Ceiling::new(aimd, start)),
            pacing: settings.follow_provider.then(Pacing::default),
        }
    }

    /// Brings the buckets up to date. Returns the later of `now` and what they have seen (time does not run backwards),
    /// and whether the request limit has moved.
    #[inline]
    pub(super) fn refresh(&mut self, totals: Totals, now: Moment) -> (Instant, bool) {
        let seen = mem::replace(&mut self.seen, totals);
        // First what comes back, then the refill: a debt counts from when its request went out, not from when somebody
        // next looked, and so an idle limiter has paid it off.
        self.take_back(totals.requests.wrapping_sub(seen.requests), totals.tokens.wrapping_sub(seen.tokens));
        let instant = match now.nanos.checked_sub(self.at) {
            Some(elapsed) => {
                self.at = now.nanos;
                if let Some(bucket) = &mut self.requests {
                    bucket.refill(elapsed);
                }
                if let Some(bucket) = &mut self.tokens {
                    bucket.refill(elapsed);
                }
                now.instant
            }
            None => later(now.start, Duration::from_nanos(self.at)),
        };
        // The time until now was at the old rate.
        let successes = totals.successes.wrapping_sub(seen.successes);
        if successes > 0 {
            self.move_ceiling(|ceiling| ceiling.rise(successes));
        }
        (instant, successes > 0)
    }

    /// Takes one request and its tokens, all or nothing, if it is this one's turn and there is room. Needs a
    /// [`refresh`](Self::refresh) before, which gives `now`.
    #[inline]
    pub(super) fn admit(&mut self, place: Option<&Place>, tokens: u32, now: Instant) -> Result<(), Obstacle> {
        if !self.queue.is_first(place) {
            return Err(Obstacle { bucket: self.obstacle, until: None });
        }
        let tokens = u64::from(tokens);
        let obstacle = if self.slots.is_some_and(|slots| self.in_flight() >= u64::from(slots)) {
            Some(Obstacle { bucket: Bucket::Concurrency, until: None })
        } else {
            self.obstacle(1, tokens, now)
        };
        if let Some(obstacle) = obstacle {
            self.obstacle = obstacle.bucket;
            return Err(obstacle);
        }
        self.taken += 1;
        if let Some(bucket) = &mut self.requests {
            bucket.take(1);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.take(tokens);
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.requests.take(1);
            pacing.tokens.take(tokens);
        }
        Ok(())
    }

    /// How long a request would wait for buckets and provider behind all who wait. Slots are not looked at: how long
    /// they stay taken cannot be known.
    pub(super) fn predicted_wait(&self, tokens: u32, now: Instant) -> Duration {
        let until = self.predicted_obstacle(tokens, now).and_then(|obstacle| obstacle.until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// What a request would wait for now, behind all who wait already.
    pub(super) fn predicted_obstacle(&self, tokens: u32, now: Instant) -> Option<Obstacle> {
        let requests = u64::try_from(self.queue.len()).unwrap_or(u64::MAX).saturating_add(1);
        let tokens = self.queue.tokens().saturating_add(u64::from(tokens));
        self.obstacle(requests, tokens, now)
    }

    /// How things stand.
    pub(super) fn state(&self, now: Instant) -> RateLimitState {
        let pacing = self.pacing.as_ref();
        let quiet = pacing.and_then(|pacing| pacing.quiet_until).filter(|until| *until > now).map(|_| 0);
        let left = |bucket: &Option<TokenBucket>, word: Option<u64>| {
            let own = bucket.as_ref().map(TokenBucket::whole);
            own.into_iter().chain(word).chain(quiet).min()
        };
        RateLimitState {
            requests_remaining: left(&self.requests, pacing.and_then(|pacing| pacing.requests.left(now))),
            tokens_remaining: left(&self.tokens, pacing.and_then(|pacing| pacing.tokens.left(now))),
            in_flight: u32::try_from(self.in_flight()).unwrap_or(u32::MAX),
            queued: self.queue.len(),
        }
    }

    /// The provider has refused for capacity.
    pub(super) fn throttled(&mut self, now: Instant) {
        self.move_ceiling(|ceiling| ceiling.lower(now));
    }

    /// Whether a success would raise the request limit.
    pub(super) fn can_rise(&self) -> bool {
        self.ceiling.as_ref().is_some_and(|ceiling| !ceiling.is_at_max())
    }

    /// The provider has said how its limits stand.
    pub(super) fn follow(&mut self, hint: &LimitHint, now: Instant) {
        self.move_ceiling(|ceiling| {
            if ceiling.is_short(hint.requests_remaining, hint.requests_limit, hint.requests_window) {
                ceiling.lower(now);
            }
        });
        let Some(pacing) = &mut self.pacing else { return };
        if let Some(remaining) = hint.requests_remaining {
            let heard = Heard { remaining, reset: hint.requests_reset, window: hint.requests_window };
            pacing.requests.hear(heard, self.requests.as_mut(), now);
        }
        if let Some(remaining) = hint.tokens_remaining {
            let heard = Heard { remaining, reset: hint.tokens_reset, window: hint.tokens_window };
            pacing.tokens.hear(heard, self.tokens.as_mut(), now);
        }
    }

    /// The provider has asked for silence.
    pub(super) fn hold_until(&mut self, until: Instant) {
        if let Some(pacing) = &mut self.pacing {
            pacing.quiet_until = pacing.quiet_until.max(Some(until));
        }
    }

    /// What is in the way of so much, but slots: of several, what takes longest.
    #[inline]
    fn obstacle(&self, requests: u64, tokens: u64, now: Instant) -> Option<Obstacle> {
        let has = |bucket: &Option<TokenBucket>, n| bucket.as_ref().is_none_or(|bucket| bucket.has(n));
        // Mostly there is room, and no time to reckon.
        if self.pacing.is_none() && has(&self.requests, requests) && (tokens == 0 || has(&self.tokens, tokens)) {
            return None;
        }
        self.latest_obstacle(requests, tokens, now)
    }

    /// Which of requests and tokens are there last.
    #[cold]
    fn latest_obstacle(&self, requests: u64, tokens: u64, now: Instant) -> Option<Obstacle> {
        let lacking = |bucket: &Option<TokenBucket>, n| {
            bucket.as_ref().filter(|bucket| !bucket.has(n)).map(|bucket| bucket.ready_at(n, now))
        };
        let mut requests_at = lacking(&self.requests, requests);
        let mut tokens_at = if tokens > 0 { lacking(&self.tokens, tokens) } else { None };
        if let Some(pacing) = &self.pacing {
            let quiet = pacing.quiet_until.filter(|until| *until > now);
            requests_at = requests_at.max(quiet).max(pacing.requests.opens_at(requests, now));
            tokens_at = tokens_at.max(pacing.tokens.opens_at(tokens, now));
        }
        let bucket = if tokens_at > requests_at { Bucket::Tokens } else { Bucket::Requests };
        requests_at.max(tokens_at).map(|until| Obstacle { bucket, until: Some(until) })
    }

    /// Permits that are out.
    fn in_flight(&self) -> u64 {
        self.taken - self.seen.slots
    }

    fn take_back(&mut self, requests: u32, tokens: i64) {
        if let Some(bucket) = self.requests.as_mut().filter(|_| requests > 0) {
            bucket.give(requests.into());
        }
        if let Some(bucket) = self.tokens.as_mut().filter(|_| tokens != 0) {
            bucket.give(tokens);
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.requests.give(requests.into());
            pacing.tokens.give(tokens);
        }
    }

    fn move_ceiling(&mut self, change: impl FnOnce(&mut Ceiling)) {
        if let (Some(ceiling), Some(bucket)) = (&mut self.ceiling, &mut self.requests) {
            change(ceiling);
            let limit = ceiling.per_minute();
            bucket.resize(limit.into(), self.burst.map_or(limit, |burst| burst.min(limit)).into());
        }
    }
}
