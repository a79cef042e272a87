//! What an application holds: a client with its chain of targets.

mod attempt;
mod builder;
mod call;
mod capability;
mod chain;
mod check;
mod credentials;
mod estimate;
#[cfg(feature = "schemars")]
mod extract;
mod failure;
mod fallback;
mod handle;
mod reask;
mod scope;
mod snapshot;
mod stream;
mod target;
mod validate;
mod whole;

pub use builder::ClientBuilder;
pub use call::{Call, CallOptions};
#[cfg(feature = "schemars")]
pub use extract::Extracted;
pub use fallback::{FallbackContext, FallbackDecision, default_fallback};
pub use handle::TargetHandle;
pub use snapshot::CaptureBodies;
pub use stream::ReplyStream;
pub use target::{Target, TargetKey, TargetRef};

use crate::LlmError;
use crate::chat::Reply;
use crate::observe::{Events, Observers};
use crate::resilience::Random;
use crate::transport::Sender;
use fallback::FallbackPolicy;
use snapshot::Capture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use target::ReadyTarget;
use tokio_util::sync::CancellationToken;

/// Calls models, and survives what happens on the way.
///
/// A client owns an ordered chain of targets, each with its own guards. It is cheap to clone; clones share everything.
///
/// ```
/// use steadfast::{Client, Target, testing::{Answer, FakeProvider}, provider::OpenAiCompatible};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fake = FakeProvider::openai().otherwise(Answer::text("Paris.")).start().await?;
///
/// let target = Target::new(OpenAiCompatible::new(fake.base_url()), "any-model");
/// let client = Client::builder(target).build()?;
/// let reply = client.call("What is the capital of France?").await?;
/// assert_eq!(reply.text(), "Paris.");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) targets: Vec<ReadyTarget>,
    pub(crate) sender: Sender,
    pub(crate) deadline: Option<Duration>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) fallback: FallbackPolicy,
    pub(crate) capture: Capture,
    pub(crate) max_response_bytes: u64,
    pub(crate) max_event_bytes: usize,
    pub(crate) random: Random,
    pub(crate) observers: Arc<Observers>,
}

impl Client {
    /// Starts to build a client whose primary target is this one.
    pub fn builder(primary: Target) -> ClientBuilder {
        ClientBuilder::new(primary)
    }

    /// Asks, and waits for the whole answer.
    ///
    /// Dropping the future cancels the call: its connection is closed, and everything it holds is given back.
    ///
    /// # Errors
    ///
    /// One [`LlmError`] that holds the whole history: the target's own error where one target was tried,
    /// `fallback_exhausted` where more were.
    pub fn call(&self, call: impl Into<Call>) -> impl Future<Output = Result<Reply, LlmError>> + Send {
        chain::run(&self.0, call.into())
    }

    /// Asks, and gives the answer as it comes.
    ///
    /// Opening the stream is everything up to its first chunk with content: it is retried and failed over like a call. Dropping
    /// the future or the stream cancels it.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), for everything up to the first chunk with content.
    pub fn stream(&self, call: impl Into<Call>) -> impl Future<Output = Result<ReplyStream, LlmError>> + Send {
        stream::open(&self.0, call.into())
    }

    /// Subscribes to what happens from now on; see [`observe`](crate::observe).
    pub fn events(&self) -> Events {
        self.0.observers.subscribe()
    }

    /// The first target.
    pub fn primary(&self) -> TargetHandle<'_> {
        TargetHandle::new(&self.0.targets[0])
    }

    /// A target by its place in the chain or by its name.
    pub fn target(&self, key: impl TargetKey) -> Option<TargetHandle<'_>> {
        let index = key.place(self.0.targets.iter().map(|target| &*target.name))?;
        self.0.targets.get(index).map(TargetHandle::new)
    }

    /// All targets, in order.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = TargetHandle<'_>> {
        self.0.targets.iter().map(TargetHandle::new)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("targets", &self.0.targets)
            .field("sender", &self.0.sender)
            .finish_non_exhaustive()
    }
}
