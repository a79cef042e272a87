//! What an answer says, read but not yet judged.

use crate::chat::{FinishReason, Reply, Usage};
use crate::provider::{AnswerFault, Failure, Head, request_id};
use bytes::Bytes;

/// What an answer in either of OpenAI's protocols says.
#[derive(Default)]
pub(in crate::provider) struct Said {
    pub(in crate::provider) text: String,
    pub(in crate::provider) reasoning: Option<String>,
    pub(in crate::provider) refusal: Option<String>,
    pub(in crate::provider) finish: FinishReason,
    pub(in crate::provider) usage: Option<Usage>,
    pub(in crate::provider) model: Option<String>,
}

impl Said {
    /// The reply, or why there is nothing usable in it. Empty texts count as none; an answer that the token limit cut
    /// before its first word is a reply: sent again it would be cut and paid for again.
    pub(in crate::provider) fn reply<'a>(self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        let refusal = self.refusal.filter(|words| !words.is_empty());
        if self.text.is_empty() && refusal.is_none() && self.finish != FinishReason::Length {
            // The rules read the categories from the body, wherever it has them.
            let filtered = self.finish == FinishReason::ContentFilter;
            let fault = if filtered { AnswerFault::Filtered(Vec::new()) } else { AnswerFault::Empty };
            return Err(Failure::of(head, body).fault(fault));
        }
        Ok(Reply::new(self.text)
            .with_reasoning(self.reasoning.filter(|words| !words.is_empty()))
            .with_refusal(refusal)
            .with_finish_reason(self.finish)
            .with_usage(self.usage)
            .with_model(self.model)
            .with_provider_request_id(request_id(&head.headers).map(str::to_owned)))
    }
}
