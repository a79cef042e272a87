//! What an answer says, whole or streamed.

mod pieces;

use super::answer::{Answer, Body, Called, Candidate, Few, Part, finish_reason};
use super::signature::{self, Origin};
use crate::chat::{FinishReason, Reply, ToolCallDelta};
use crate::provider::lenient::{Brief, Fields, Present};
use crate::provider::{AnswerFault, Draft, Failure, Frame, Head, StreamDecoder, json, made_up, request_id};
use bytes::Bytes;
use pieces::Pieces;
use std::borrow::Cow;

/// Reads a whole answer.
pub(super) fn decode<'a>(protocol: &'static str, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let Body(answers) = json::read(head, body)?;
    if answers.iter().any(|answer| answer.error.0) {
        return Err(failed(AnswerFault::Error));
    }
    let count = answers.len();
    if count > 1 {
        // Its first piece alone would be an answer that is cut.
        return Err(failed(AnswerFault::Invalid(format!("{count} answers in a list, as a stream has them"))));
    }
    let (mut reader, mut draft) = (Reader::new(protocol), Draft::new());
    reader.read_all(answers, &mut draft).map_err(failed)?;
    let reply = draft.finished().map_err(|(fault, _)| failed(fault))?;
    // There is no official header with a request id.
    let id = request_id(&head.headers).map(str::to_owned);
    let id = id.or_else(|| reply.provider_request_id().map(str::to_owned));
    Ok(reply.with_provider_request_id(id))
}

/// Reads answers, or the pieces of one as they come, into a draft.
#[derive(Debug)]
pub(super) struct Reader {
    /// The adapter's name, to which signatures belong.
    protocol: &'static str,
    /// Whether there were words or calls.
    spoke: bool,
    /// How many calls there were.
    calls: usize,
    /// The call whose arguments come in pieces.
    open: Option<Pieces>,
}

impl StreamDecoder for Reader {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        let data = frame.data.trim_ascii();
        // Google has no such end, gateways do; whether the answer was complete its finish reason says.
        if data == b"[DONE]" {
            return Ok(());
        }
        let Body(answers) = json::read_frame(data)?;
        self.read_all(answers, draft)
    }

    fn end(&mut self, draft: &mut Draft) -> bool {
        let is_complete = draft.finish_reason().is_some();
        if is_complete {
            self.close(draft);
        }
        is_complete
    }
}

impl Reader {
    pub(super) fn new(protocol: &'static str) -> Self {
        Self { protocol, spoke: false, calls: 0, open: None }
    }

    fn read_all(&mut self, answers: Few<Answer<'_>>, draft: &mut Draft) -> Result<(), AnswerFault> {
        answers.into_iter().try_for_each(|answer| self.read_one(answer, draft))
    }

    fn read_one(&mut self, answer: Answer<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        let Answer { error, candidates, prompt_feedback, usage_metadata, model_version, response_id } = answer;
        if error.0 {
            return Err(AnswerFault::Error);
        }
        if let Some(model) = model_version.get() {
            draft.model(model);
        }
        if let Some(id) = response_id.get() {
            draft.request_id(id);
        }
        // Each count is of the whole answer so far.
        if let Some(usage) = usage_metadata.0.usage() {
            draft.usage(usage);
        }
        // Others are only there where `extra` asked for them.
        let first = candidates.into_iter().flatten().find(|candidate| candidate.index.0.unwrap_or(0) == 0);
        let Candidate { content: Fields(content), finish_reason: word, safety_ratings, .. } = first.unwrap_or_default();
        let origin = Origin { protocol: self.protocol, model: model_version.get(), answer: response_id.get() };
        for part in content.parts.into_iter().flatten() {
            self.part(part, origin, draft);
        }
        let Fields(feedback) = prompt_feedback;
        match (word.get().and_then(finish_reason), feedback.block_reason.get()) {
            (Some(FinishReason::ContentFilter), _) => withheld(safety_ratings.0, &word, draft),
            (_, Some(_)) if !self.spoke => withheld(feedback.safety_ratings.0, &feedback.block_reason, draft),
            (Some(finish), _) => draft.finish(finish),
            (None, _) => {}
        }
        Ok(())
    }

    fn part(&mut self, part: Part<'_>, origin: Origin<'_>, draft: &mut Draft) {
        let Part { text: words, thought: Present(is_thought), thought_signature, function_call } = part;
        if let Some(Fields(called)) = function_call {
            return self.call(called, &thought_signature, origin, draft);
        }
        let words = words.0.unwrap_or_default();
        if let Some(signature) = thought_signature.get() {
            draft.opaque(signature::of_words(origin, signature, is_thought, words.is_empty()));
        }
        if is_thought {
            draft.reasoning(words);
        } else {
            self.spoke |= !words.is_empty();
            draft.text(words);
        }
    }

    fn call(&mut self, called: Called<'_>, signature: &Brief<'_>, origin: Origin<'_>, draft: &mut Draft) {
        let Called { id, name, args, partial_args, will_continue: Present(continues) } = called;
        let Some(name) = name.get() else {
            // What has no name goes on with the call before it.
            if let Some(open) = &mut self.open {
                open.add(partial_args.unwrap_or_default());
                if !continues {
                    self.close(draft);
                }
            }
            return;
        };
        self.close(draft);
        let index = self.calls;
        self.calls += 1;
        self.spoke = true;
        let own = signature::of_call(origin, id.get(), signature.get());
        let id = id.get().map_or_else(|| made_up::call_id((origin.answer, name)), str::to_owned);
        let delta = ToolCallDelta::new(index).id(id).name(name);
        if continues || partial_args.is_some() {
            draft.tool_call(delta);
            let mut open = Pieces::new(index);
            open.add(partial_args.unwrap_or_default());
            self.open = Some(open);
            if !continues {
                self.close(draft);
            }
        } else {
            draft.tool_call(delta.arguments(args.map(|args| text_of(args.get())).unwrap_or_default()).complete());
        }
        if let Some(own) = own {
            draft.tool_call_opaque(index, own);
        }
    }

    /// Ends the call whose arguments came in pieces.
    fn close(&mut self, draft: &mut Draft) {
        if let Some(open) = self.open.take() {
            draft.tool_call(open.whole());
        }
    }
}

/// The JSON of arguments. They are an object, but gateways have sent it as a text.
fn text_of(args: &str) -> Cow<'_, str> {
    match args.starts_with('"').then(|| serde_json::from_str(args)) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(args),
    }
}

/// A filter withheld it: the categories that caught something, or where none is rated the reason itself.
fn withheld(categories: Vec<String>, reason: &Brief<'_>, draft: &mut Draft) {
    let reason = reason.get().map(str::to_owned).filter(|_| categories.is_empty());
    draft.filtered(categories.into_iter().chain(reason));
    draft.finish(FinishReason::ContentFilter);
}
