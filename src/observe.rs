//! What happens inside a client, told to whoever listens.
//!
//! Nothing is made of it where nobody listens. Observers run outside every lock; a slow one holds up the call that it is told
//! of, a panicking one harms nothing.

mod event;
mod observers;

pub use event::{CallOutcome, Event, EventKind};
pub(crate) use observers::Observers;
pub use observers::{EventItem, Events};
