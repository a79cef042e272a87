//! What a whole answer says, read but not yet judged.

use crate::chat::{FinishReason, Opaque, Reply, ToolCall, Usage};
use crate::provider::{AnswerFault, Failure, Head, request_id};
use bytes::Bytes;

/// What a whole answer says.
#[derive(Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
    pub(super) refusal: Option<String>,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) opaque: Option<Opaque>,
    pub(super) finish: FinishReason,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
}

impl Said {
    /// The reply, or why there is nothing usable in it. Empty texts count as none; an answer that the token limit cut
    /// before its first word is a reply: sent again it would be cut and paid for again.
    pub(super) fn reply<'a>(self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        let refusal = self.refusal.filter(|words| !words.is_empty());
        let called = !self.tool_calls.is_empty();
        if self.text.is_empty() && refusal.is_none() && !called && self.finish != FinishReason::Length {
            // The rules read the categories from the body, wherever it has them.
            let filtered = self.finish == FinishReason::ContentFilter;
            let fault = if filtered { AnswerFault::Filtered(Vec::new()) } else { AnswerFault::Empty };
            return Err(Failure::of(head, body).fault(fault));
        }
        // Some servers say `stop` although tools were called.
        let finish = match self.finish {
            FinishReason::Stop | FinishReason::Other if called => FinishReason::ToolCalls,
            finish => finish,
        };
        let mut reply = Reply::new(self.text)
            .with_reasoning(self.reasoning.filter(|words| !words.is_empty()))
            .with_finish_reason(finish)
            .with_usage(self.usage)
            .with_model(self.model)
            .with_provider_request_id(request_id(&head.headers).map(str::to_owned));
        // Most answers have nothing of this.
        if called || refusal.is_some() || self.opaque.is_some() {
            reply = reply.with_refusal(refusal).with_tool_calls(self.tool_calls).with_opaque(self.opaque);
        }
        Ok(reply)
    }
}
