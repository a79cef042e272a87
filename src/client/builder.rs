//! Builds a client, and names everything that is wrong with its settings.

use super::fallback::{FallbackContext, FallbackDecision, FallbackPolicy, SoftSettings};
use super::snapshot::{Capture, CaptureBodies};
use super::target::Target;
use super::{Client, Inner};
use crate::LlmError;
use crate::chat::Sampling;
use crate::observe::{Event, Observers};
use crate::record::{ConfigError, Problems};
use crate::resilience::{Random, Retry};
use crate::transport::{Sender, Transport};
use http::HeaderName;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Builds a [`Client`].
///
/// | setting | default |
/// |---|---|
/// | `retry`, `timeout`, `defaults` | for targets that set none: [`Retry::default`], 120 s, nothing |
/// | `idle_timeout`, `stall_timeout` (streams), for targets that set none | 60 s, none |
/// | `deadline` | none |
/// | `connect_timeout` | 10 s |
/// | `fallback_on` | [`default_fallback`](crate::default_fallback) |
/// | `fallback_reserve` | 0.25 of the deadline |
/// | `capture_bodies`, `capture_limit` | on failure, 64 KiB |
/// | `max_response_bytes` | 256 MiB |
/// | `max_event_bytes` (streams) | 16 MiB |
#[must_use = "a builder does nothing until `build` is called"]
pub struct ClientBuilder {
    targets: Vec<Target>,
    soft: SoftSettings,
    deadline: Option<Duration>,
    connect_timeout: Option<Duration>,
    cancel: Option<CancellationToken>,
    fallback: FallbackPolicy,
    capture: Capture,
    invalid_headers: Vec<String>,
    max_response_bytes: u64,
    max_event_bytes: usize,
    seed: Option<u64>,
    transport: Option<Sender>,
    observers: Observers,
}

impl ClientBuilder {
    pub(super) fn new(primary: Target) -> Self {
        Self {
            targets: vec![primary],
            soft: SoftSettings {
                timeout: Some(Duration::from_secs(120)),
                idle_timeout: Some(Duration::from_secs(60)),
                ..SoftSettings::default()
            },
            deadline: None,
            connect_timeout: Some(Duration::from_secs(10)),
            cancel: None,
            fallback: FallbackPolicy::default(),
            capture: Capture::default(),
            invalid_headers: Vec::new(),
            max_response_bytes: 256 << 20,
            max_event_bytes: 16 << 20,
            seed: None,
            transport: None,
            observers: Observers::default(),
        }
    }

    /// Adds a target, to be tried when those before it have failed. Targets are tried in the order they were added.
    pub fn fallback(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }

    /// Sets how often and how patiently to try again, for targets and calls that do not say.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.soft.retry = retry;
        self
    }

    /// Sets the longest attempt, for targets and calls that do not say; `None` is no limit.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.soft.timeout = timeout.into();
        self
    }

    /// Sets the longest silence of a stream in bytes, for targets and calls that do not say; `None` is no limit.
    pub fn idle_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.soft.idle_timeout = timeout.into();
        self
    }

    /// Sets the longest gap between chunks with content, for targets and calls that do not say; `None` is no limit.
    pub fn stall_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.soft.stall_timeout = timeout.into();
        self
    }

    /// Sets the longest call, for calls that do not say; `None` is no limit.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets what to sample with where neither the target nor the call says.
    pub fn defaults(mut self, sampling: Sampling) -> Self {
        self.soft.sampling = sampling;
        self
    }

    /// Cancels every call when the token is cancelled, beside a call's own token.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Sets the longest time to connect, DNS and TLS included; `None` is no limit. With your own
    /// [`http_client`](Self::http_client) it is that client's to set.
    pub fn connect_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.connect_timeout = timeout.into();
        self
    }

    /// Decides after each failed target whether the next is tried. A panic in it counts as [`FallbackDecision::Stop`].
    pub fn fallback_on(
        mut self,
        decide: impl Fn(&LlmError, &FallbackContext) -> FallbackDecision + Send + Sync + 'static,
    ) -> Self {
        self.fallback.decide = Arc::new(decide);
        self
    }

    /// Sets the share of the deadline, in [0, 1), that a target which is not the last leaves to the others, so that a hung
    /// primary cannot eat the time of a healthy fallback.
    pub fn fallback_reserve(mut self, share: f64) -> Self {
        self.fallback.reserve = share;
        self
    }

    /// Sets whether errors keep the bodies of failed requests.
    pub fn capture_bodies(mut self, capture: CaptureBodies) -> Self {
        self.capture.bodies = capture;
        self
    }

    /// Sets how much of a body is kept, in bytes.
    pub fn capture_limit(mut self, bytes: usize) -> Self {
        self.capture.cap = bytes;
        self
    }

    /// Keeps the value of this header in snapshots, beside the built-in list. Secret headers are never kept.
    pub fn capture_header(mut self, name: &str) -> Self {
        match HeaderName::try_from(name) {
            Ok(name) => self.capture.kept_headers.push(name),
            Err(_) => self.invalid_headers.push(name.to_owned()),
        }
        self
    }

    /// Edits request bodies and the provider's messages before they are kept in an error, to take personal data out. Keys
    /// are out already.
    pub fn redact(mut self, hook: impl Fn(&mut String) + Send + Sync + 'static) -> Self {
        self.capture.redact = Some(Arc::new(hook));
        self
    }

    /// Calls `observer` with everything that happens; see [`observe`](crate::observe). It runs on the call's own task: what is slow
    /// in it belongs behind a channel, or use [`Client::events`].
    pub fn on_event(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observers.add(Arc::new(observer));
        self
    }

    /// Sets the largest body that is read, in bytes.
    pub fn max_response_bytes(mut self, bytes: u64) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// Sets the largest event of a stream, in bytes.
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Makes chance repeatable: the same seed gives the same jitter.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sends with your own client, for roots, pools, and other proxies than the environment names (`HTTPS_PROXY` and its
    /// like, read when the client is built).
    ///
    /// Requests keep this crate's `user-agent`; [`Call::header`](crate::Call::header) sets another. Build the client with
    /// `redirect::Policy::none()`: across origins `reqwest` takes `authorization` and cookies off a redirected
    /// request, but no other header that may hold a key. Build it with `retry::never().max_retries_per_request(0)` too:
    /// there is one attempt loop, and `never` by itself still copies each request.
    #[cfg(feature = "reqwest")]
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.transport = Some(Sender::Reqwest(client));
        self
    }

    /// Sends by other means than HTTP over a socket.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Sender::Custom(Arc::new(transport)));
        self
    }

    /// Checks everything at once, and makes the client. Sends nothing.
    ///
    /// # Errors
    ///
    /// Every problem that was found, each with field, value and what is allowed.
    pub fn build(self) -> Result<Client, ConfigError> {
        let mut problems = Problems::default();
        let soft = &self.soft;
        problems.require(
            (0.0..1.0).contains(&self.fallback.reserve),
            "fallback_reserve",
            self.fallback.reserve,
            "a share from 0 to below 1",
        );
        problems.require(
            self.connect_timeout != Some(Duration::ZERO),
            "connect_timeout",
            "0 s",
            "more than zero, or none",
        );
        problems.require(self.max_response_bytes > 0, "max_response_bytes", 0, "at least 1 byte");
        problems.require(self.max_event_bytes > 0, "max_event_bytes", 0, "at least 1 byte");
        for name in &self.invalid_headers {
            problems.require(false, "capture_header", format_args!("{name:?}"), "the name of an HTTP header");
        }
        let random = self.seed.map_or_else(Random::from_entropy, Random::seeded);

        let observers = Arc::new(self.observers);

        let mut targets = Vec::with_capacity(self.targets.len());
        for (place, (name, target)) in names(&mut problems, &self.targets).into_iter().zip(self.targets).enumerate() {
            let ready = target.ready(name, soft, &random).map_err(|e| e.within(&format!("targets[{place}]")));
            if let Some(mut ready) = problems.take(ready) {
                ready.watch_circuit(&observers);
                targets.push(ready);
            }
        }
        let sender = match self.transport {
            Some(sender) => Some(sender),
            None => problems.take(default_sender(self.connect_timeout)),
        };
        problems.finish()?;
        let Some(sender) = sender else {
            return Err(ConfigError::new("transport", "missing", "a transport"));
        };
        Ok(Client(Arc::new(Inner {
            targets,
            sender,
            deadline: self.deadline,
            cancel: self.cancel,
            fallback: self.fallback,
            capture: self.capture,
            max_response_bytes: self.max_response_bytes,
            max_event_bytes: self.max_event_bytes,
            random,
            observers,
        })))
    }
}

#[cfg(feature = "reqwest")]
fn default_sender(connect_timeout: Option<Duration>) -> Result<Sender, ConfigError> {
    match crate::transport::default_client(connect_timeout) {
        Ok(client) => Ok(Sender::Reqwest(client)),
        Err(error) => {
            Err(ConfigError::new("http_client", error, "a client that can be built; give one by `http_client`"))
        }
    }
}

#[cfg(not(feature = "reqwest"))]
fn default_sender(_: Option<Duration>) -> Result<Sender, ConfigError> {
    Err(ConfigError::new("transport", "missing", "feature `reqwest`, or a transport of your own by `transport`"))
}

/// The names of the targets: their own, or `provider/model` with a number for a repeat.
fn names(problems: &mut Problems, targets: &[Target]) -> Vec<String> {
    let mut taken = HashSet::new();
    for name in targets.iter().filter_map(Target::own_name) {
        problems.require(
            taken.insert(name.to_owned()),
            "name",
            format_args!("{name:?}"),
            "a name that no other target has",
        );
    }
    targets
        .iter()
        .map(|target| {
            if let Some(name) = target.own_name() {
                return name.to_owned();
            }
            let plain = target.default_name();
            let numbered = (2_usize..).map(|n| format!("{plain}#{n}"));
            let free = std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name));
            let name = free.unwrap_or(plain); // the numbers do not run out
            taken.insert(name.clone());
            name
        })
        .collect()
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("targets", &self.targets)
            .field("deadline", &self.deadline)
            .field("fallback", &self.fallback)
            .field("capture", &self.capture)
            .finish_non_exhaustive()
    }
}
