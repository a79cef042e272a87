//! The order of a conversation: who speaks after whom, and which results answer which calls.

use super::media;
use crate::LlmError;
use crate::chat::{Content, Request, ToolCall, ToolResult, Turn};
use crate::record::{ErrorCode, Issues};

/// Joins the current words of the user to a history that ends with the user.
pub(super) fn merge_turns(request: &mut Request) {
    if let (Some(_), Some(Turn::User { .. })) = (&request.user, request.history.last())
        && let Some(Turn::User { content: before }) = request.history.pop()
        && let Some(now) = request.user.take()
    {
        request.user = Some(before.joined(now));
    }
}

/// Checks every turn, and how the history and the current words of the user go together.
pub(super) fn check(request: &Request) -> Result<(), LlmError> {
    // The turn whose calls have no results yet.
    let mut open: Option<(usize, &[ToolCall])> = None;
    for (turn, each) in request.history.iter().enumerate() {
        match each {
            Turn::Assistant { content, tool_calls } => {
                unanswered(open.take())?;
                check_words(turn, content.as_ref(), false)?;
                if content.is_none() && tool_calls.is_empty() {
                    return at(turn, "the model's turn has neither words nor tool calls; leave it out");
                }
                check_calls(turn, tool_calls)?;
                open = Some((turn, &**tool_calls)).filter(|(_, calls)| !calls.is_empty());
            }
            Turn::Tool { results } => match open.take() {
                Some((_, calls)) => check_results(turn, calls, results)?,
                None => {
                    return at(
                        turn,
                        "tool results, but the turn before called no tool; put them after the turn that did",
                    );
                }
            },
            Turn::User { content } => {
                unanswered(open.take())?;
                check_words(turn, Some(content), true)?;
            }
        }
    }
    unanswered(open)?;
    let Some(last) = request.history.len().checked_sub(1) else { return Ok(()) };
    match (&request.user, &request.history[last]) {
        (Some(_), Turn::User { .. }) => at(
            last,
            "the history ends with the user although the call has words of the user; put both into one, or set \
             `merge_turns`",
        ),
        (None, Turn::Assistant { .. }) => {
            at(last, "the history ends with the model and the call has no words of the user; add some")
        }
        _ => Ok(()),
    }
}

fn at<T>(turn: usize, message: &str) -> Result<T, LlmError> {
    let message = format!("history[{turn}]: {message}");
    Err(LlmError::of(ErrorCode::InvalidHistory, message).with_issues(Issues::Turn { turn }))
}

fn check_words(turn: usize, content: Option<&Content>, is_user: bool) -> Result<(), LlmError> {
    let Some(content) = content else { return Ok(()) };
    if content.is_blank() {
        return at(turn, "its words are empty; leave them out, or the turn if it has nothing else");
    }
    media::check(content, is_user).or_else(|fault| at(turn, &fault))
}

fn check_calls(turn: usize, calls: &[ToolCall]) -> Result<(), LlmError> {
    for (place, call) in calls.iter().enumerate() {
        if call.id.is_empty() || call.name.is_empty() {
            return at(turn, &format!("tool call {place} has no id or no name; its result cannot be told apart"));
        }
        if calls[..place].iter().any(|before| before.id == call.id) {
            return at(turn, &format!("two tool calls have the id {:?}; ids are unique within a turn", call.id));
        }
    }
    Ok(())
}

/// The calls of a turn that nothing has answered.
fn unanswered(open: Option<(usize, &[ToolCall])>) -> Result<(), LlmError> {
    let Some((turn, calls)) = open else { return Ok(()) };
    let ids = calls.iter().map(|call| call.id.clone()).collect();
    let cure = "put `Turn::tool_results` right after it, with `ToolResult::error` for a tool that did not run";
    wrong_results(ErrorCode::MissingToolResults, turn, ids, "called tools that have no results", cure)
}

/// A tool turn answers each call of the turn before it exactly once.
fn check_results(turn: usize, calls: &[ToolCall], results: &[ToolResult]) -> Result<(), LlmError> {
    let is_called = |id: &str| calls.iter().any(|call| call.id == id);
    let mut unknown: Vec<String> = Vec::new();
    let mut twice: Vec<String> = Vec::new();
    for (place, result) in results.iter().enumerate() {
        let list = if !is_called(&result.id) {
            &mut unknown
        } else if results[..place].iter().any(|before| before.id == result.id) {
            &mut twice
        } else {
            continue;
        };
        if !list.contains(&result.id) {
            list.push(result.id.clone());
        }
    }
    if !unknown.is_empty() {
        let called: Vec<_> = calls.iter().map(|call| &*call.id).collect();
        let cure = format!("it called {}", called.join(", "));
        let what = "has results for what the turn before did not call";
        return wrong_results(ErrorCode::UnknownToolResultIds, turn, unknown, what, &cure);
    }
    if !twice.is_empty() {
        let what = "has more than one result for a call";
        return wrong_results(ErrorCode::DuplicateToolResultIds, turn, twice, what, "give one for each");
    }
    let is_answered = |id: &str| results.iter().any(|result| result.id == id);
    let missing: Vec<_> = calls.iter().filter(|call| !is_answered(&call.id)).map(|call| call.id.clone()).collect();
    if !missing.is_empty() {
        let cure = "add them, with `ToolResult::error` for a tool that did not run";
        return wrong_results(ErrorCode::MissingToolResults, turn, missing, "lacks results for calls", cure);
    }
    for result in results {
        media::check(&result.content, true).or_else(|fault| at(turn, &format!("result {:?}: {fault}", result.id)))?;
    }
    Ok(())
}

fn wrong_results(code: ErrorCode, turn: usize, ids: Vec<String>, what: &str, cure: &str) -> Result<(), LlmError> {
    let message = format!("history[{turn}] {what} ({}); {cure}", ids.join(", "));
    Err(LlmError::of(code, message).with_issues(Issues::ToolResults { turn, ids }))
}
