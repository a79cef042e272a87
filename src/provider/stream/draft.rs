//! A reply while it is being written.

use crate::chat::{Chunk, FinishReason, Opaque, Reply, ToolCall, ToolCallDelta, Usage};
use crate::provider::AnswerFault;
use crate::record::{ErrorCode, ToolProblem};
use serde_json::Value;
use std::collections::VecDeque;

/// A reply while it is being written: what a [`StreamDecoder`](super::StreamDecoder) has read so far, and the chunks that
/// nobody has taken yet.
#[derive(Debug, Default)]
pub struct Draft {
    chunks: VecDeque<Chunk>,
    /// Whether chunks are only passed on, and no reply is put together.
    pass_through: bool,
    /// Whether there was text, a refusal or a call, kept or not.
    has_output: bool,
    text: String,
    reasoning: String,
    refusal: String,
    /// How many tool calls there are, kept or not.
    called: usize,
    calls: Vec<CallDraft>,
    opaque: Vec<Opaque>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    model: Option<String>,
    request_id: Option<String>,
    categories: Vec<String>,
    done: bool,
}

/// A tool call while it is being written.
#[derive(Debug, Default)]
struct CallDraft {
    id: String,
    name: String,
    arguments: String,
    opaque: Option<Opaque>,
    complete: bool,
}

/// What a decoder writes.
impl Draft {
    /// Nothing so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// More words of the answer.
    pub fn text(&mut self, words: String) {
        if words.is_empty() {
            return;
        }
        self.has_output = true;
        if !self.pass_through {
            self.text.push_str(&words);
        }
        self.chunks.push_back(Chunk::Text(words.into()));
    }

    /// More of what the model thinks aloud.
    pub fn reasoning(&mut self, words: String) {
        if words.is_empty() {
            return;
        }
        if !self.pass_through {
            self.reasoning.push_str(&words);
        }
        self.chunks.push_back(Chunk::Reasoning(words.into()));
    }

    /// More of the model's words when it declines in a field of their own.
    pub fn refusal(&mut self, words: &str) {
        self.has_output |= !words.is_empty();
        if !self.pass_through {
            self.refusal.push_str(words);
        }
    }

    /// A part of a tool call. Parts of one call have the same index; the calls' indexes are theirs in the reply.
    pub fn tool_call(&mut self, mut part: ToolCallDelta) {
        self.has_output = true;
        // Decoders count calls as they come; an index out of nowhere must not cost memory.
        part.index = part.index.min(self.called);
        self.called = self.called.max(part.index + 1);
        if !self.pass_through {
            let call = self.call(part.index);
            if let Some(id) = &part.id {
                call.id.clone_from(id);
            }
            if let Some(name) = &part.name {
                call.name.clone_from(name);
            }
            call.arguments.push_str(&part.arguments);
            call.complete |= part.complete;
        }
        self.chunks.push_back(Chunk::ToolCall(part));
    }

    /// What the provider wants back beside the tool call at `index`.
    pub fn tool_call_opaque(&mut self, index: usize, opaque: Opaque) {
        if !self.pass_through {
            self.call(index).opaque = Some(opaque);
        }
    }

    /// What the provider wants back with the next turn.
    pub fn opaque(&mut self, block: Opaque) {
        if !self.pass_through {
            self.opaque.push(block);
        }
    }

    /// The tokens spent, as far as the provider has said; a later count replaces an earlier one.
    pub fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Why the model stopped.
    pub fn finish(&mut self, reason: FinishReason) {
        self.finish = Some(reason);
    }

    /// The model, as the provider reports it. The first report holds.
    pub fn model(&mut self, model: &str) {
        if self.model.is_none() && !model.is_empty() {
            self.model = Some(model.to_owned());
        }
    }

    /// The provider's id of the request, where the answer itself tells it. The first one holds.
    pub fn request_id(&mut self, id: &str) {
        if self.request_id.is_none() && !id.is_empty() {
            self.request_id = Some(id.to_owned());
        }
    }

    /// What a filter names when it withholds the answer.
    pub fn filtered(&mut self, categories: impl IntoIterator<Item = String>) {
        self.categories.extend(categories);
    }

    /// The protocol's own end was read: the answer is complete.
    pub fn done(&mut self) {
        self.done = true;
    }

    /// Why the model stopped, if that was said.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.finish
    }

    /// Whether a reply is put together. Where chunks are only passed on, a decoder need not keep what
    /// [`opaque`](Self::opaque) would be given.
    pub fn keeps_reply(&self) -> bool {
        !self.pass_through
    }

    /// How many tool calls there are so far, kept or only passed on: the index of the next.
    pub fn tool_calls(&self) -> usize {
        self.called
    }

    fn call(&mut self, index: usize) -> &mut CallDraft {
        let index = index.min(self.calls.len());
        if index == self.calls.len() {
            self.calls.push(CallDraft::default());
        }
        &mut self.calls[index]
    }
}

/// What the reader of the stream asks.
impl Draft {
    /// A draft that passes chunks on and puts no reply together.
    pub(crate) fn pass_through() -> Self {
        Self { pass_through: true, ..Self::default() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// The next chunk that nobody has taken.
    pub(crate) fn next_chunk(&mut self) -> Option<Chunk> {
        self.chunks.pop_front()
    }

    /// Puts a chunk back that was taken too early.
    pub(crate) fn put_back(&mut self, chunk: Chunk) {
        self.chunks.push_front(chunk);
    }

    /// A draft of an answer that came whole although a stream was asked for.
    pub(crate) fn whole(mut self, reply: &Reply) -> Self {
        self.reasoning(reply.reasoning().unwrap_or_default().to_owned());
        self.text(reply.text().to_owned());
        self.refusal(reply.refusal().unwrap_or_default());
        for (index, call) in reply.tool_calls().iter().enumerate() {
            let part = ToolCallDelta::new(index).id(&*call.id).name(&*call.name).arguments(call.arguments.to_string());
            self.tool_call(part.complete());
            if let Some(opaque) = &call.opaque {
                self.tool_call_opaque(index, opaque.clone());
            }
        }
        reply.opaque().iter().for_each(|block| self.opaque(block.clone()));
        self.finish(reply.finish_reason());
        self.usage = reply.usage().copied();
        self.model(reply.model().unwrap_or_default());
        self.done();
        self
    }

    /// Whether a chunk waits to be taken.
    pub(crate) fn has_chunk(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// The tokens spent, as far as the provider has said.
    pub(crate) fn usage_so_far(&self) -> Option<Usage> {
        self.usage
    }

    /// What has arrived, of a stream that broke: text, calls that are complete, usage.
    pub(crate) fn partial(&mut self) -> Reply {
        let calls = std::mem::take(&mut self.calls);
        let calls = calls.into_iter().filter(|call| call.complete).filter_map(|call| call.finish().ok());
        let calls = calls.collect::<Vec<_>>();
        self.reply(calls)
    }

    /// Why there is nothing usable in the answer, if it ends here.
    pub(crate) fn unusable(&self) -> Option<AnswerFault> {
        match self.finish.unwrap_or_default() {
            _ if self.has_output => None,
            FinishReason::Length => None,
            FinishReason::ContentFilter => Some(AnswerFault::Filtered(self.categories.clone())),
            _ => Some(AnswerFault::Empty),
        }
    }

    /// The reply, or why it is none and what came nevertheless: nothing usable, or calls whose arguments are no JSON.
    #[allow(clippy::result_large_err)] // asked once a stream
    pub(crate) fn finished(&mut self) -> Result<Reply, (AnswerFault, Reply)> {
        if let Some(fault) = self.unusable() {
            return Err((fault, self.reply(Vec::new())));
        }
        let (mut calls, mut problems) = (Vec::with_capacity(self.calls.len()), Vec::new());
        for call in std::mem::take(&mut self.calls) {
            match call.finish() {
                Ok(call) => calls.push(call),
                Err(problem) => problems.push(problem),
            }
        }
        let reply = self.reply(calls);
        if problems.is_empty() { Ok(reply) } else { Err((AnswerFault::ToolArguments(problems), reply)) }
    }

    fn reply(&mut self, calls: Vec<ToolCall>) -> Reply {
        let mut finish = self.finish.unwrap_or_default();
        // Some servers say `stop` although tools were called.
        if !calls.is_empty() && matches!(finish, FinishReason::Stop | FinishReason::Other) {
            finish = FinishReason::ToolCalls;
        }
        let words = |text: &mut String| Some(std::mem::take(text)).filter(|text| !text.is_empty());
        Reply::new(std::mem::take(&mut self.text))
            .with_reasoning(words(&mut self.reasoning))
            .with_refusal(words(&mut self.refusal))
            .with_tool_calls(calls)
            .with_opaque(std::mem::take(&mut self.opaque))
            .with_finish_reason(finish)
            .with_usage(self.usage)
            .with_model(self.model.take())
            .with_provider_request_id(self.request_id.take())
    }
}

impl CallDraft {
    fn finish(self) -> Result<ToolCall, ToolProblem> {
        match arguments(&self.arguments) {
            Ok(arguments) => Ok(ToolCall::new(self.id, self.name, arguments).with_opaque(self.opaque)),
            Err(_) => Err(malformed(self.name, self.id, &self.arguments)),
        }
    }
}

/// The arguments of a call, from their JSON. None at all are an empty object.
pub(crate) fn arguments(json: &str) -> Result<Value, serde_json::Error> {
    if json.trim().is_empty() { Ok(Value::Object(serde_json::Map::new())) } else { serde_json::from_str(json) }
}

/// The problem of a call whose arguments are no JSON, with their text.
pub(crate) fn malformed(tool: String, id: String, text: &str) -> ToolProblem {
    const KEPT: usize = 2_000;
    let end = text.char_indices().nth(KEPT).map_or(text.len(), |(at, _)| at);
    ToolProblem {
        tool,
        tool_call_id: id,
        code: ErrorCode::ToolArgumentsParseFailed,
        detail: Some(text[..end].to_owned()),
    }
}
