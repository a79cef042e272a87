//! Answers that go wrong.

use super::answer::{Answer, Content, Failure};
use super::delivery::Extent;
use std::time::Duration;

/// Ways to misbehave. Each gives an [`Answer`], so headers and delivery can still be changed.
///
/// ```
/// use std::time::Duration;
/// use steadfast::testing::Fault;
///
/// let slow_failure = Fault::status(503).delay(Duration::from_millis(30)).then_close();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {}

impl Fault {
    /// This status, with the body that the provider sends with it.
    pub fn status(status: u16) -> Answer {
        Answer::new(Content::Failure(Failure::Status(status)))
    }

    /// Too many requests: come back after this time. Body and headers say the same.
    pub fn rate_limited(retry_after: Duration) -> Answer {
        Answer::new(Content::Failure(Failure::RateLimited(retry_after)))
    }

    /// The account has no money left. The status is often that of a rate limit; waiting does not help.
    pub fn quota_exhausted() -> Answer {
        Answer::new(Content::Failure(Failure::QuotaExhausted))
    }

    /// The key is not accepted.
    pub fn unauthorized() -> Answer {
        Answer::new(Content::Failure(Failure::Unauthorized))
    }

    /// The provider is overloaded, in its own words and with its own status for that.
    pub fn overloaded() -> Answer {
        Answer::new(Content::Failure(Failure::Overloaded))
    }

    /// The request is refused with status 400 and this message.
    pub fn bad_request(message: impl Into<String>) -> Answer {
        Answer::new(Content::Failure(Failure::BadRequest(message.into())))
    }

    /// This status and a page of HTML, as a proxy or a gateway sends it.
    pub fn html(status: u16) -> Answer {
        let page = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
        Answer::raw(status).header("content-type", "text/html").body(page)
    }

    /// Status 200, and a body of no bytes.
    pub fn empty() -> Answer {
        Answer::raw(200).header("content-type", "application/json")
    }

    /// An error object under a status of 200.
    pub fn error_in_200(code: impl Into<String>, message: impl Into<String>) -> Answer {
        Answer::new(Content::Failure(Failure::InSuccess { code: code.into(), message: message.into() }))
    }

    /// A good answer that comes late.
    pub fn delay(delay: Duration) -> Answer {
        Answer::echo().delay(delay)
    }

    /// No answer at all, on a connection that stays open.
    pub fn hang() -> Answer {
        Answer::new(Content::Hang)
    }

    /// No connection at all, and nothing is sent: for a [`MemoryTransport`](super::MemoryTransport). On sockets, where the
    /// connection stands before the script is asked, it is reset instead; a provider that refuses there is
    /// [`FakeProvider::refused`](super::FakeProvider::refused).
    pub fn connection_refused() -> Answer {
        Answer::new(Content::ConnectionRefused)
    }

    /// The connection is reset as soon as the request was read.
    pub fn reset_before_head() -> Answer {
        Answer::new(Content::ResetBeforeHead)
    }

    /// A good answer of which half arrives before the connection is reset.
    pub fn reset_in_body() -> Answer {
        Answer::echo().cut(Extent::Half).then_reset()
    }

    /// A good answer of which half arrives before the connection is closed.
    pub fn truncated_body() -> Answer {
        Answer::echo().cut(Extent::Half)
    }

    /// The connection is closed, without an answer, when a second request arrives on it: what a client sees when its
    /// pool kept a connection for too long. Skipped when the request comes on a fresh connection.
    pub fn close_on_reuse() -> Answer {
        Answer::new(Content::CloseOnReuse)
    }

    /// A good answer that arrives a few bytes at a time.
    pub fn slow_drip(bytes_per_tick: usize, tick: Duration) -> Answer {
        Answer::echo().drip(bytes_per_tick, tick)
    }
}
