//! An answer that is read whole.

use super::attempt::{Sent, Take, TargetOperation};
use super::failure::AttemptFailure;
use super::validate::validate;
use crate::chat::Reply;
use crate::observe::EventKind;
use crate::provider::{EncodeContext, Head};
use crate::resilience::LimitHint;
use crate::transport::Response;
use bytes::Bytes;

/// Takes an answer whole.
pub(super) struct Whole;

/// A whole answer.
pub(super) struct Answered {
    pub(super) reply: Reply,
    pub(super) limits: Option<Box<LimitHint>>,
}

impl Take for Whole {
    type Output = Box<Answered>;
    type Kept = ();

    fn keep(_: Sent) {}

    fn context(model: &str) -> EncodeContext<'_> {
        EncodeContext::new(model)
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and a response is large")]
    fn take(
        op: &TargetOperation<'_, Self>,
        mut response: Response,
    ) -> impl Future<Output = Result<Box<Answered>, AttemptFailure>> + Send {
        async move {
            let body = response.read(op.client.max_response_bytes).await.map_err(|error| op.broken(error))?;
            let mut answered = op.decode(&response.head, &body)?;
            match validate(op.request, &op.options.expected, &mut answered.reply) {
                Ok(()) => Ok(answered),
                Err(breach) => {
                    let Answered { reply, .. } = *answered;
                    if let Some(usage) = reply.usage().copied() {
                        let event = EventKind::UsageFailure { usage, partial: false, estimated: false };
                        op.scope.tell(Some((op.target, op.model)), || event);
                    }
                    let failed = op.breached(breach, &response.head, reply.usage());
                    Err(AttemptFailure { error: failed.error.with_partial(reply), ..failed })
                }
            }
        }
    }
}

impl<T: Take> TargetOperation<'_, T> {
    /// Reads an answer that came whole.
    pub(super) fn decode(&self, head: &Head, body: &Bytes) -> Result<Box<Answered>, AttemptFailure> {
        match self.target.provider.decode(head, body) {
            Ok(mut reply) => {
                if self.options.keep_raw {
                    reply.keep_raw(body.clone());
                }
                Ok(Box::new(Answered { reply, limits: self.hint(head).map(Box::new) }))
            }
            Err(failure) => {
                let failed = self.failed(failure, Some(head), None);
                // A success whose body is of no use was still paid for.
                Err(AttemptFailure { spent: None, ..failed })
            }
        }
    }
}
