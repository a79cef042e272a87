//! The loop, with a scripted operation on a paused clock.

mod bounds;
mod decisions;
mod evidence;
mod guarded;
mod told;

use super::*;
use crate::resilience::{
    Advice, Breaker, Budget, Cancel, ChangeSink, ChangeSubscription, CircuitRefusal, CircuitState, Failed, Jitter,
    Lease, LimitHint, Limiter, Outcome, RateLimit, RefusalReason, RetryBudget, SharedBreaker, SharedTicket, Verdict,
};
use futures_core::future::BoxFuture;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What one attempt does: after a while it comes so far, and after another it ends.
#[derive(Clone, Copy)]
struct Step {
    reach: Reach,
    takes: Duration,
    ends: Ends,
}

#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Nothing,
    Sent,
    Head,
}

#[derive(Clone, Copy)]
enum Ends {
    Done,
    Fails(Verdict),
    Panics,
}

impl Step {
    /// It takes so long.
    fn after(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }

    fn unsent(self) -> Self {
        Self { reach: Reach::Nothing, ..self }
    }

    fn head(self) -> Self {
        Self { reach: Reach::Head, ..self }
    }
}

/// An attempt that is sent and succeeds at once.
const DONE: Step = Step { reach: Reach::Sent, takes: Duration::ZERO, ends: Ends::Done };
/// One that is sent and never ends.
const HANGS: Step = Step { reach: Reach::Sent, takes: Duration::from_secs(1_000_000), ends: Ends::Done };
/// One that is sent and fails at once, as evidence, in a way that backoff may cure.
const BUSY: Step = fails(Verdict::transient("busy"));
/// One that is sent and fails at once, for good, and is no evidence.
const WRONG: Step = fails(Verdict::permanent("wrong"));

const fn fails(verdict: Verdict) -> Step {
    Step { reach: Reach::Sent, takes: Duration::ZERO, ends: Ends::Fails(verdict) }
}

const fn advises(wait: Duration) -> Verdict {
    Verdict { retry: Advice::After(wait), ..Verdict::transient("limited") }
}

/// The error of an attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    Own(Verdict),
    Cut(Interrupt),
}

/// An operation that does what it is told, one step an attempt, and notes what it is told.
struct Script {
    steps: VecDeque<Step>,
    start: Instant,
    notes: Mutex<Vec<String>>,
    attempts: AtomicU32,
    spent: Option<u32>,
    hint: Option<LimitHint>,
    asked_for_limits: AtomicU32,
    /// Cancelled by the first attempt, before it ends.
    cancels: Option<CancellationToken>,
    /// Whose state is noted with each signal.
    limiter: Option<Limiter>,
}

impl Script {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            start: Instant::now(),
            notes: Mutex::default(),
            attempts: AtomicU32::new(0),
            spent: None,
            hint: None,
            asked_for_limits: AtomicU32::new(0),
            cancels: None,
            limiter: None,
        }
    }

    fn attempts(&self) -> u32 {
        self.attempts.load(SeqCst)
    }

    fn note(&self, what: &str) {
        let at = self.start.elapsed().as_secs_f64();
        self.notes.lock().expect("whole").push(format!("{at} {what}"));
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().expect("whole"))
    }
}

impl Operation for Script {
    type Output = &'static str;
    type Error = Broken;

    async fn attempt<'a>(&'a mut self, cx: AttemptContext<'a>) -> Result<&'static str, Broken> {
        let made = self.attempts.fetch_add(1, SeqCst);
        assert_eq!(cx.index, made, "attempts are numbered from 0");
        if cx.trial {
            self.note("trial");
        }
        let step = self.steps.pop_front().expect("no more attempts than the script has steps");
        match step.reach {
            Reach::Nothing => {}
            Reach::Sent => cx.progress.sent(),
            Reach::Head => cx.progress.head(),
        }
        if let Some(token) = &self.cancels {
            token.cancel();
        }
        if !step.takes.is_zero() {
            sleep(step.takes).await;
        }
        match step.ends {
            Ends::Done => Ok("done"),
            Ends::Fails(verdict) => Err(Broken::Own(verdict)),
            Ends::Panics => panic!("on purpose"),
        }
    }

    fn interrupted(&mut self, by: Interrupt) -> Broken {
        Broken::Cut(by)
    }

    fn classify(&self, error: &Broken) -> Verdict {
        match error {
            Broken::Own(verdict) => *verdict,
            Broken::Cut(Interrupt::Timeout(_)) => Verdict::transient("timeout"),
            Broken::Cut(Interrupt::Deadline) => Verdict::permanent("deadline"),
            Broken::Cut(Interrupt::Cancelled) => Verdict::permanent("cancelled"),
        }
    }

    fn spent(&self, _: &Broken) -> Option<u32> {
        self.spent
    }

    fn limits(&self, _: &Broken) -> Option<LimitHint> {
        self.asked_for_limits.fetch_add(1, SeqCst);
        self.hint
    }

    fn observe(&self, signal: Signal<'_, Broken>) {
        let label = |error: &Broken| self.classify(error).label;
        let what = match signal {
            Signal::AttemptStarted { index } => format!("started {index}"),
            Signal::AttemptFailed { index, error } => format!("failed {index} {}", label(error)),
            Signal::RetryScheduled { retry, max_retries, delay, advised, error } => {
                let advised = if advised { " advised" } else { "" };
                format!("retry {retry} of {max_retries} after {delay:?}{advised} for {}", label(error))
            }
            Signal::RateLimited { waited, bucket } => format!("waited {waited:?} for {bucket}"),
            Signal::BudgetExhausted { error } => format!("no budget for {}", label(error)),
        };
        self.note(&what);
        if let Some(limiter) = &self.limiter {
            self.note(&format!("in flight {}", limiter.state().in_flight));
        }
    }
}

/// The settings of the runs of a test.
struct Bench {
    guards: Arc<Guards>,
    retry: Retry,
    timeout: Option<Duration>,
}

type Ran = Result<(&'static str, Lease), Failed<Broken>>;

impl Bench {
    /// Nothing guards, nothing is left to chance: retries come after 1 s, 2 s, 4 s.
    fn new(max_retries: u32) -> Self {
        let retry = Retry::new(max_retries).base_delay(SECOND).jitter(Jitter::None);
        Self { guards: Arc::default(), retry, timeout: None }
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn retry(mut self, change: impl FnOnce(Retry) -> Retry) -> Self {
        self.retry = change(self.retry);
        self
    }

    fn breaker(mut self, breaker: &Breaker) -> Self {
        Arc::make_mut(&mut self.guards).breaker = Some(breaker.clone());
        self
    }

    fn fleet(self, fleet: &Arc<Fleet>) -> Self {
        self.breaker(&Breaker::shared(fleet.clone()))
    }

    fn budget(mut self, budget: &Budget) -> Self {
        Arc::make_mut(&mut self.guards).budget = Some(budget.clone());
        self
    }

    fn limiter(mut self, limiter: &Limiter) -> Self {
        Arc::make_mut(&mut self.guards).limiter = Some(limiter.clone());
        self
    }

    async fn run(&self, run: Run<'_>, op: &mut Script) -> Ran {
        let random = Random::seeded(1);
        let engine = Engine::new(&self.retry, self.timeout, &random, run);
        let (mut lease, mut course) = (Lease::new(&self.guards, Instant::now()), Course::default());
        match engine.execute(lease.holding(), op, &mut course).await {
            Ok(output) => Ok((output, lease)),
            Err(stop) => Err(course.failed(stop)),
        }
    }

    /// Runs the steps to a failure.
    async fn fail(&self, run: Run<'_>, steps: impl IntoIterator<Item = Step>) -> Failed<Broken> {
        self.run(run, &mut Script::new(steps)).await.expect_err("it fails")
    }
}

fn by_deadline(wait: Duration) -> Run<'static> {
    Run { end: Some(End::Deadline(Instant::now() + wait)), ..Run::default() }
}

fn by_reserve(wait: Duration) -> Run<'static> {
    Run { end: Some(End::Reserve(Instant::now() + wait)), ..Run::default() }
}

fn cancelled_by(token: &CancellationToken) -> Run<'_> {
    Run { cancel: Cancel::either(Some(token), None), ..Run::default() }
}

/// Cancels after a while.
fn cancel_after(wait: Duration) -> CancellationToken {
    let token = CancellationToken::new();
    let later = token.clone();
    tokio::spawn(async move {
        sleep(wait).await;
        later.cancel();
    });
    token
}

fn errors(failed: &Failed<Broken>) -> Vec<Broken> {
    failed.tried.iter().map(|tried| tried.error).collect()
}

/// A breaker that admits, and keeps what is recorded.
#[derive(Debug, Default)]
struct Fleet {
    admits: AtomicU32,
    outcomes: Mutex<Vec<Outcome>>,
    /// The next admissions are refused.
    refuses: AtomicBool,
    /// The next admissions are trials.
    tries: AtomicBool,
    /// Asking takes so long.
    slow: Option<Duration>,
    recheck: bool,
    hang_evidence: Option<Duration>,
}

impl Fleet {
    fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.lock().expect("whole").clone()
    }

    /// The labels of the recorded failures, with what is none in brackets.
    fn labels(&self) -> Vec<&'static str> {
        let label = |outcome| match outcome {
            Outcome::Success => "(success)",
            Outcome::Failure(evidence) => evidence.label,
            Outcome::Released => "(released)",
        };
        self.outcomes().into_iter().map(label).collect()
    }
}

impl SharedBreaker for Fleet {
    fn admit<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<SharedTicket, CircuitRefusal>> {
        Box::pin(async move {
            if let Some(time) = self.slow {
                sleep(time).await;
            }
            let id = self.admits.fetch_add(1, SeqCst).into();
            if self.refuses.load(SeqCst) {
                return Err(CircuitRefusal::new(RefusalReason::HeldOpen, Instant::now()));
            }
            Ok(SharedTicket { id, trial: self.tries.load(SeqCst) })
        })
    }

    fn settle(&self, _: &str, _: SharedTicket, outcome: Outcome) {
        self.outcomes.lock().expect("whole").push(outcome);
    }

    fn state(&self, _: Option<&str>) -> CircuitState {
        CircuitState::Closed
    }

    fn failure_breakdown(&self, _: Option<&str>) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }

    fn open(&self, _: Option<&str>) {}

    fn hold_open(&self, _: Option<&str>) {}

    fn close(&self, _: Option<&str>) {}

    fn observe(&self, _: ChangeSink) -> ChangeSubscription {
        ChangeSubscription::new(|| {})
    }

    fn recheck(&self) -> bool {
        self.recheck
    }

    fn hang_evidence(&self) -> Option<Duration> {
        self.hang_evidence
    }
}

/// A limiter that has nothing left for a second.
async fn exhausted(settings: RateLimit) -> Limiter {
    let limiter = settings.requests_per_minute(60).burst(1).build().expect("valid");
    limiter.acquire(0).await.expect("the only one").settle(None);
    limiter
}

fn budget(min_calls: u32, ratio: f64) -> Budget {
    RetryBudget::new(60 * SECOND, min_calls, ratio).build().expect("valid")
}
