//! An answer that is no JSON or does not fit its schema, sent back to the model with what is wrong.
//!
//! This is no second retry loop: no provider has failed, and what is sent is another request, which has its own run of the
//! one loop, with its own place in the limiter. Neither retries nor the retry budget are used for it.

use super::attempt::Take;
use super::chain::Answer;
use super::failure::{TargetFailure, line};
use super::target::ReadyTarget;
use crate::LlmError;
use crate::chat::{Content, Reply, Request, ToolResult, Turn};
use crate::record::{Attempt, ErrorCode, Issues, Next, ToolProblem};
use std::fmt::Write as _;
use std::time::Duration;

/// The reasks of one call on one target.
pub(super) struct Reasks {
    left: u32,
    /// What is asked now, once it is something else than the call.
    request: Option<Box<Request>>,
    /// The attempts with other words, the breach that ended each included.
    before: Vec<Attempt>,
}

impl Reasks {
    pub(super) fn new(most: u32) -> Self {
        Self { left: most, request: None, before: Vec::new() }
    }

    /// What is asked now.
    pub(super) fn request<'a>(&'a self, first: &'a Request) -> &'a Request {
        self.request.as_deref().unwrap_or(first)
    }

    /// How many attempts were made with other words.
    pub(super) fn attempts(&self) -> u32 {
        u32::try_from(self.before.len()).unwrap_or(u32::MAX)
    }

    /// Whether the model is asked again, and what then.
    pub(super) fn again(&mut self, first: &Request, failure: &mut TargetFailure) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        let Some(next) = corrected(self.request(first), &failure.error) else { return false };
        self.left = left;
        self.request = Some(Box::new(next));
        self.take(&mut failure.attempts);
        if let Some(last) = self.before.last_mut() {
            last.next = Next::Retried { after: Duration::ZERO, advised: false };
        }
        true
    }

    /// Puts the attempts behind those before them.
    fn take(&mut self, attempts: &mut Vec<Attempt>) {
        let made = self.attempts();
        self.before.extend(attempts.drain(..).map(|mut attempt| {
            attempt.index += made;
            attempt
        }));
    }

    /// An answer, with all that came before it.
    pub(super) fn answered<T: Take>(mut self, mut answer: Answer<T>) -> Answer<T> {
        if !self.before.is_empty() {
            answer.attempts += self.attempts();
            self.take(&mut answer.before);
            answer.before = self.before;
        }
        answer
    }

    /// The failure of the target, with all that came before it.
    pub(super) fn failed(mut self, target: &ReadyTarget, mut failure: TargetFailure) -> TargetFailure {
        if self.before.is_empty() {
            return failure;
        }
        self.take(&mut failure.attempts);
        failure.sent = true;
        let attempts = self.before;
        let count = attempts.len();
        let time = took(&attempts);
        failure.error = failure.error.change_record(|record| {
            let says = record.provider_message.as_deref();
            record.message = line(Some(&target.name), &failure.what, Some((count, time)), says);
            record.attempts.clone_from(&attempts);
            if record.request.is_none() {
                record.request = attempts.iter().rev().find_map(|attempt| attempt.request.clone());
            }
        });
        failure.attempts = attempts;
        failure
    }
}

/// From the first attempt to the end of the last.
fn took(attempts: &[Attempt]) -> Duration {
    let (Some(first), Some(last)) = (attempts.first(), attempts.last()) else { return Duration::ZERO };
    let until_last = last.started_at.duration_since(first.started_at).unwrap_or_default();
    until_last + last.queued + last.duration
}

/// The conversation with the answer and what is wrong with it; none where asking again cannot help, or there was no answer.
fn corrected(request: &Request, error: &LlmError) -> Option<Request> {
    let reply = error.partial()?;
    match (error.code()?, error.issues()?) {
        // It would be cut again.
        (ErrorCode::JsonParseFailed, Issues::Json { cut_by_length: true, .. }) => None,
        (ErrorCode::JsonParseFailed, Issues::Json { line, column, .. }) => {
            let place = if *line > 0 { format!(" (line {line}, column {column})") } else { String::new() };
            Some(said(request, reply, &format!("It is not JSON{place}.")))
        }
        (ErrorCode::SchemaMismatch, Issues::Schema { mismatches }) => {
            let mut faults = String::from("It does not fit:");
            for fault in mismatches {
                let path = if fault.path.is_empty() { "the whole" } else { &fault.path };
                _ = write!(faults, "\n- {path}: {}", fault.message);
            }
            Some(said(request, reply, &faults))
        }
        (ErrorCode::SchemaMismatch, Issues::Tools { problems }) => {
            Some(request.clone().then(reply.to_turn()).then(Turn::tool_results(results(reply, problems))))
        }
        _ => None,
    }
}

/// What is wrong, as the user's next words.
fn said(request: &Request, reply: &Reply, faults: &str) -> Request {
    let words = format!("Your answer cannot be used. {faults}\n\nAnswer again: the corrected JSON and nothing else.");
    let mut request = request.clone();
    if reply.text().trim().is_empty() {
        let words = Content::from(words);
        request.user = Some(match request.user.take() {
            Some(user) => user.joined(words),
            None => words,
        });
        return request;
    }
    request.then(Turn::assistant(reply.text())).then(Turn::user(words))
}

/// What is wrong, as the results of the calls.
fn results<'a>(reply: &'a Reply, problems: &'a [ToolProblem]) -> impl Iterator<Item = ToolResult> + 'a {
    reply.tool_calls().iter().map(|call| {
        let problem = problems.iter().find(|problem| problem.tool_call_id == call.id);
        let why = problem
            .map_or("not run, since another call beside it cannot be; call it again".to_owned(), |problem| {
                format!("not run: {}", problem.detail.as_deref().unwrap_or("the call is not valid"))
            });
        ToolResult::error(call.id.clone(), why)
    })
}
