//! The only code that touches the network: requests out, response heads and bodies in.

pub mod framing;
#[cfg(feature = "reqwest")]
mod over_reqwest;
mod response;

pub use response::{BodyStream, Response};

#[cfg(feature = "reqwest")]
pub(crate) use over_reqwest::{default_client, sort};

use crate::provider::{HttpRequest, TransportFault};
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "reqwest")]
use tokio_util::either::Either;

/// A boxed future, as a [`Transport`] returns it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends requests by other means than the built-in HTTP client: through a mesh, in memory, from a recording.
///
/// An implementation does not retry, does not follow redirects and does not time out: the client does what of this is
/// wanted. Dropping the future or the response must end the exchange.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and waits for the head of its response.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<Response, TransportError>>;
}

/// What broke below HTTP, and the cause.
#[derive(Debug)]
pub struct TransportError {
    fault: TransportFault,
    source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    /// A break of this sort. The cause's text must not hold the request's URL or credentials.
    pub fn new(fault: TransportFault, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { fault, source: source.into() }
    }

    /// What sort of break it is.
    pub fn fault(&self) -> TransportFault {
        self.fault
    }

    /// The cause.
    pub(crate) fn into_source(self) -> Box<dyn Error + Send + Sync> {
        self.source
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            TransportFault::Connect => "the connection could not be made",
            TransportFault::Interrupted => "the connection broke",
            TransportFault::Timeout => "the connection timed out",
            TransportFault::TooLarge(_) => "the body is too large",
            TransportFault::Request => "the request could not be sent as it is",
        })
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// What a client sends with: the built-in way is called directly, another one through its trait.
#[derive(Clone)]
pub(crate) enum Sender {
    #[cfg(feature = "reqwest")]
    Reqwest(reqwest::Client),
    Custom(Arc<dyn Transport>),
}

impl Sender {
    /// Takes the request at once, so that the future does not keep it too.
    pub(crate) fn send(&self, request: HttpRequest) -> impl Future<Output = Result<Response, TransportError>> + Send {
        match self {
            #[cfg(feature = "reqwest")]
            Self::Reqwest(client) => Either::Left(over_reqwest::send(client, request)),
            #[cfg(feature = "reqwest")]
            Self::Custom(transport) => Either::Right(transport.send(request)),
            #[cfg(not(feature = "reqwest"))]
            Self::Custom(transport) => transport.send(request),
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(feature = "reqwest")]
            Self::Reqwest(_) => "Reqwest",
            Self::Custom(_) => "Custom",
        })
    }
}
