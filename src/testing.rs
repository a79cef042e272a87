//! A provider that misbehaves on command, to test against without a network and without a key.
//!
//! [`FakeProvider`] is a real HTTP server on a loopback port: whatever client is under test, its sockets, pools and
//! timeouts are the real ones. A script says what it answers: an [`Answer`] in the provider's words, a [`Fault`], or
//! plain HTTP. Its journal says what arrived, and what can be waited for is a signal, never a sleep:
//!
//! ```
//! # use tokio::{io::{AsyncReadExt, AsyncWriteExt}, net::TcpStream};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! use steadfast::testing::{Answer, FakeProvider, Fault};
//!
//! let fake = FakeProvider::openai().then(Fault::hang()).otherwise(Answer::text("Hello there.")).start().await?;
//!
//! // A call that is given up leaves nothing behind.
//! let mut call = TcpStream::connect(fake.address()).await?;
//! call.write_all(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}").await?;
//! fake.wait_for_requests(1).await;
//! assert_eq!(fake.connections_open(), 1);
//! drop(call);
//! fake.wait_until_idle().await;
//! assert_eq!(fake.connections_open(), 0);
//! assert_eq!(fake.journal()[0].answered, "hang");
//! # Ok(()) }
//! ```
//!
//! Real sockets and a paused clock do not go together: the clock jumps while bytes are on their way. [`MemoryTransport`]
//! plays the same scripts without a socket, so that a test of minutes takes none.

mod answer;
mod anthropic;
mod azure;
mod backend;
mod bedrock;
mod delivery;
mod fake;
mod fault;
mod gemini;
mod http1;
mod journal;
mod memory;
mod mishap;
mod ollama;
mod openai;
mod outgoing;
mod protocol;
mod responses;
mod script;
mod serve;
#[cfg(test)]
mod tests;
mod wire;

pub use answer::Answer;
pub use delivery::Piece;
pub use fake::{FakeProvider, FakeProviderBuilder, RefusedProvider};
pub use fault::Fault;
pub use journal::Received;
pub use memory::{MemoryNetwork, MemoryTransport};
pub use mishap::Mishap;
