//! What is measured, and the work that each does.

use crate::bare::Bare;
use crate::load::{Load, Sample, Work, call, stream};
use crate::steadfast::Steadfast;

pub(crate) const KEY: &str = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123456789";
pub(crate) const MODEL: &str = "gpt-4.1-mini";
pub(crate) const SYSTEM: &str = "You are an accountant. Answer in two sentences, with the numbers of the invoices.";
pub(crate) const QUESTION: &str = "Which of the invoices in the attached list are overdue today, and by how many days?";
pub(crate) const MAX_TOKENS: u32 = 800;
pub(crate) const TEMPERATURE: f32 = 0.5;

/// A client of chat completions. It asks [`QUESTION`], under [`SYSTEM`], [`MAX_TOKENS`] and [`TEMPERATURE`].
pub(crate) trait Subject: Send + Sync + 'static {
    /// Reads a whole answer: the text, the reason for its end, the model and the usage. Returns the length of the text.
    fn call(&self) -> impl Future<Output = usize> + Send;
}

/// A client that can stream.
pub(crate) trait Streaming: Send + Sync + 'static {
    /// A streamed answer under way.
    type Stream: Send + 'static;

    /// Starts a streamed answer, with the usage at its end, and reads it up to its first text.
    fn open(&self) -> impl Future<Output = Self::Stream> + Send;

    /// Reads the rest, each text as a string of its own. Returns the length of all of it, the first included.
    fn drain(&self, stream: Self::Stream) -> impl Future<Output = usize> + Send;
}

/// Every subject, in the order of the tables. The first is what the others are divided by.
pub(crate) const SUBJECTS: [&str; 4] = ["bare", "steadfast", "steadfast-all", "steadfast-observed"];
/// Those that stream.
pub(crate) const STREAMING: [&str; 4] = SUBJECTS;
/// A process that only starts.
pub(crate) const NOTHING: &str = "nothing";

/// Puts a load on the subject of that name, as a client of the API at `base`, which ends in `/v1`.
pub(crate) async fn measure(name: &str, base: &str, load: Load) -> Sample {
    let streams = matches!(load.work, Work::Stream { .. } | Work::Hold);
    match name {
        "bare" if streams => stream(Bare::new(base), load).await,
        "bare" => call(Bare::new(base), load).await,
        "steadfast" if streams => stream(Steadfast::new(base), load).await,
        "steadfast-all" if streams => stream(Steadfast::guarded(base), load).await,
        "steadfast-observed" if streams => stream(Steadfast::observed(base), load).await,
        "steadfast" => call(Steadfast::new(base), load).await,
        "steadfast-all" => call(Steadfast::guarded(base), load).await,
        "steadfast-observed" => call(Steadfast::observed(base), load).await,
        NOTHING => Sample::default(),
        other => panic!("no subject is called {other}"),
    }
}
