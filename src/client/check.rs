//! What cannot be right anywhere is found before the first target is tried.

mod history;
mod media;
mod output;
mod tools;

use super::Inner;
use super::call::{CallOptions, extra_is_object};
use super::target::TargetRef;
use crate::LlmError;
use crate::chat::{Content, Request};
use crate::record::ErrorCode;
use std::time::Duration;

/// Checks the call, and joins what it asks to be joined.
pub(super) fn check(client: &Inner, request: &mut Request, options: &CallOptions) -> Result<(), LlmError> {
    if options.merge_turns {
        history::merge_turns(request);
    }
    check_words(request)?;
    history::check(request)?;
    tools::check(request)?;
    output::check(request, &options.expected)?;
    check_settings(client, request, options)
}

fn check_words(request: &Request) -> Result<(), LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    let Some(user) = &request.user else {
        if request.history.is_empty() {
            return invalid("the call is empty: give it words of the user, or a history that ends with them".into());
        }
        return Ok(());
    };
    if Content::is_blank(user) {
        return invalid(if request.history.is_empty() {
            "the call is empty: give it words of the user, or a history that ends with them".into()
        } else {
            "user: the words of the user are empty; leave them out to continue from the history".into()
        });
    }
    media::check(user, true).or_else(|fault| invalid(format!("user: {fault}")))
}

fn check_settings(client: &Inner, request: &Request, options: &CallOptions) -> Result<(), LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
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
