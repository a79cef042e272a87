//! What cannot be right anywhere is found before the first target is tried.

use super::Inner;
use super::call::{CallOptions, extra_is_object};
use super::target::TargetRef;
use crate::LlmError;
use crate::chat::{Request, Turn};
use crate::record::{ErrorCode, Issues};
use std::time::Duration;

pub(super) fn check(client: &Inner, request: &Request, options: &CallOptions) -> Result<(), LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    if request.history.is_empty() && request.user.as_ref().is_none_or(crate::chat::Content::is_blank) {
        return invalid("the call is empty: give it words of the user, or a history that ends with them".into());
    }
    if request.user.as_ref().is_some_and(crate::chat::Content::is_blank) {
        return invalid("user: the words of the user are empty; leave them out to continue from the history".into());
    }
    check_history(request)?;
    if request.sampling.max_tokens == Some(0) {
        return invalid("max_tokens is 0; it takes 1 or more, or nothing".into());
    }
    for (name, value) in [("temperature", request.sampling.temperature), ("top_p", request.sampling.top_p)] {
        if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
            return invalid(format!("{name} is {value}; it takes a number of at least 0"));
        }
    }
    if !extra_is_object(&request.extra) {
        return invalid("extra is not a JSON object; it takes the fields to merge into the body".into());
    }
    if let Some(name) = &options.invalid_header {
        return invalid(format!("header {name:?} is not a valid HTTP header"));
    }
    let times = [
        ("timeout", options.timeout),
        ("idle_timeout", options.idle_timeout),
        ("stall_timeout", options.stall_timeout),
    ];
    for (name, time) in times {
        if time == Some(Some(Duration::ZERO)) {
            return invalid(format!("{name} is zero; it takes more than zero, or none"));
        }
    }
    if let Some(retry) = &options.retry
        && let Err(error) = retry.check()
    {
        return Err(LlmError::of(ErrorCode::InvalidCall, format!("retry: {error}")).with_source(error));
    }
    for (target, model) in &options.models {
        if !client.targets.iter().enumerate().any(|(place, t)| target.means(place, &t.name)) {
            let which = match target {
                TargetRef::Place(place) => format!("number {place}"),
                TargetRef::Name(name) => format!("{name:?}"),
            };
            let names: Vec<_> = client.targets.iter().map(|t| &*t.name).collect();
            return invalid(format!("model_on: there is no target {which}; there are {}", names.join(", ")));
        }
        if model.trim().is_empty() {
            return invalid("model is empty; it takes the id of a model".into());
        }
    }
    if let Some(id) = &options.request_id
        && (id.is_empty() || id.len() > 512 || !id.bytes().all(|b| b.is_ascii_graphic() || b == b' '))
    {
        return invalid("request_id takes 1 to 512 visible ASCII characters".into());
    }
    Ok(())
}

fn check_history(request: &Request) -> Result<(), LlmError> {
    let at = |turn: usize, message: &str| {
        let message = format!("history[{turn}]: {message}");
        Err(LlmError::of(ErrorCode::InvalidHistory, message).with_issues(Issues::Turn { turn }))
    };
    if let Some(turn) =
        request.history.iter().position(|turn| turn.content().is_some_and(crate::chat::Content::is_blank))
    {
        return at(turn, "the turn is empty; leave it out");
    }
    let Some(last) = request.history.len().checked_sub(1) else { return Ok(()) };
    let ends_with_user = matches!(request.history[last], Turn::User { .. });
    match (&request.user, ends_with_user) {
        (Some(_), true) => {
            at(last, "the history ends with the user although the call has words of the user; move them there")
        }
        (None, false) => at(last, "the history ends with the model and the call has no words of the user; add some"),
        _ => Ok(()),
    }
}
