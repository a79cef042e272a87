//! This crate's own client, as the runner sees it.

use super::subject::{CallSpec, Client, NotConfigured, Outcome, Setup, Subject};

/// Makes clients of this crate.
#[derive(Debug)]
pub(crate) struct Steadfast;

/// A client of this crate, made for one case.
#[derive(Debug)]
pub(crate) struct SteadfastClient;

impl Subject for Steadfast {
    type Client = SteadfastClient;

    fn configure(&self, _setup: &Setup) -> Result<SteadfastClient, NotConfigured> {
        Err(NotConfigured::unsupported("the client is not there yet"))
    }
}

impl Client for SteadfastClient {
    async fn call(&self, _call: CallSpec) -> Outcome {
        Outcome::unsupported("calls")
    }
}
