//! Who listens.

use super::{Event, EventKind};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use tokio::sync::broadcast::{self, error::RecvError};

/// How many events a subscription holds until it is read.
const CAPACITY: usize = 1024;

/// Everyone who listens to a client.
#[derive(Default)]
pub(crate) struct Observers {
    callbacks: Vec<Observer>,
    channel: OnceLock<broadcast::Sender<Event>>,
}

struct Observer {
    callback: Arc<dyn Fn(&Event) + Send + Sync>,
    panicked: AtomicBool,
}

impl Observers {
    pub(crate) fn add(&mut self, callback: Arc<dyn Fn(&Event) + Send + Sync>) {
        self.callbacks.push(Observer { callback, panicked: AtomicBool::new(false) });
    }

    /// Whether anyone listens: if not, no event need be made.
    pub(crate) fn any(&self) -> bool {
        !self.callbacks.is_empty() || self.channel.get().is_some_and(|channel| channel.receiver_count() > 0)
    }

    pub(crate) fn subscribe(&self) -> Events {
        Events(self.channel.get_or_init(|| broadcast::Sender::new(CAPACITY)).subscribe())
    }

    /// Tells everyone. Must not be called under a lock.
    pub(crate) fn tell(&self, event: Event) {
        for (number, observer) in self.callbacks.iter().enumerate() {
            if catch_unwind(AssertUnwindSafe(|| (observer.callback)(&event))).is_err()
                && !observer.panicked.swap(true, Relaxed)
            {
                let report = Event { kind: EventKind::ObserverPanicked { observer: number }, ..event.clone() };
                self.report(number, report);
            }
        }
        self.publish(event);
    }

    /// Tells all but the one that panicked.
    fn report(&self, panicked: usize, event: Event) {
        for (number, observer) in self.callbacks.iter().enumerate() {
            if number != panicked {
                // One that panics over a report has its own coming.
                let _ = catch_unwind(AssertUnwindSafe(|| (observer.callback)(&event)));
            }
        }
        self.publish(event);
    }

    fn publish(&self, event: Event) {
        if let Some(channel) = self.channel.get() {
            let _ = channel.send(event); // fails when nobody listens any more
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.callbacks.len())
    }
}

/// A subscription to a client's events. Bounded: a reader that falls behind loses the oldest, and is told how many.
///
/// ```
/// # use steadfast::{Client, Target, observe::{EventItem, EventKind}, provider::OpenAiCompatible, testing::FakeProvider};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let fake = FakeProvider::openai().start().await?;
/// # let client = Client::builder(Target::new(OpenAiCompatible::new(fake.base_url()), "m")).build()?;
/// let mut events = client.events();
/// client.call("Hello").await?;
/// let Some(EventItem::Event(first)) = events.next().await else { panic!("an event") };
/// assert!(matches!(first.kind, EventKind::CallStarted));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

/// What a subscription gives.
#[derive(Clone, Debug)]
pub enum EventItem {
    /// An event.
    Event(Box<Event>),
    /// So many events were lost, because they were not read in time.
    Missed(u64),
}

impl Events {
    /// The next event; none once the client is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<EventItem> {
        match self.0.recv().await {
            Ok(event) => Some(EventItem::Event(Box::new(event))),
            Err(RecvError::Lagged(missed)) => Some(EventItem::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<EventItem> {
        match self.0.try_recv() {
            Ok(event) => Some(EventItem::Event(Box::new(event))),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(EventItem::Missed(missed)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }
}
