//! What an adapter refuses before anything is sent.

use crate::LlmError;
use crate::chat::{Sampling, Setting, Tool};
use crate::record::{ErrorCode, Issues};

/// Refuses a value that is not within 0 and `max`; `f64::MAX` means that the protocol names no maximum.
pub(super) fn check_range(provider: &str, setting: &str, value: Option<f64>, max: f64) -> Result<(), LlmError> {
    match value {
        Some(value) if !(0.0..=max).contains(&value) => {
            let taken = if max < f64::MAX { format!("0 to {max}") } else { "0 or more".to_owned() };
            let message = format!("{setting} {value} is out of range; {provider} takes {taken}");
            Err(LlmError::of(ErrorCode::InvalidCall, message))
        }
        _ => Ok(()),
    }
}

/// Refuses a setting that this model or protocol is known not to take. `cure` says what to do instead.
pub(crate) fn unsupported(provider: &str, model: &str, setting: &str, cure: &str) -> LlmError {
    let message = format!("{provider}: {model} does not take {setting}; {cure}");
    LlmError::of(ErrorCode::UnsupportedCapability, message)
        .with_issues(Issues::Capability { capability: setting.to_owned(), model: model.to_owned() })
}

/// Refuses tools with names of other characters than letters, digits, `_` and `-`, or longer than `longest`: another target
/// may take them.
pub(super) fn check_tool_names(provider: &str, model: &str, tools: &[Tool], longest: usize) -> Result<(), LlmError> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match tools.iter().find(|tool| tool.name.len() > longest || !tool.name.bytes().all(is_taken)) {
        Some(tool) => {
            let cure = format!("it takes up to {longest} letters, digits, `_` and `-`");
            Err(unsupported(provider, model, &format!("the tool name {:?}", tool.name), &cure))
        }
        None => Ok(()),
    }
}

/// The first of these settings that the call has set.
pub(super) fn first_set(sampling: &Sampling, among: &[Setting]) -> Option<&'static str> {
    among.iter().find_map(|setting| {
        let (is_set, name) = match setting {
            Setting::MaxTokens => (sampling.max_tokens.is_some(), "max_tokens"),
            Setting::Seed => (sampling.seed.is_some(), "seed"),
            Setting::Stop => (!sampling.stop.is_empty(), "stop"),
            Setting::Temperature => (sampling.temperature.is_some(), "temperature"),
            Setting::TopP => (sampling.top_p.is_some(), "top_p"),
        };
        is_set.then_some(name)
    })
}
