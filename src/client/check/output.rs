//! The form that the answer is to have, and what it is held to.

use crate::LlmError;
use crate::chat::{Output, Request};
use crate::client::call::Expected;
use crate::record::ErrorCode;

/// The longest name of a schema (OpenAI).
const LONGEST_NAME: usize = 64;

pub(super) fn check(request: &Request, expected: &Expected) -> Result<(), LlmError> {
    let invalid = |message: String| Err(LlmError::of(ErrorCode::InvalidCall, message));
    if request.output.is_text() && (!expected.checks.is_empty() || expected.parse_json.is_some()) {
        let what = if expected.checks.is_empty() { "parse_json" } else { "validate" };
        return invalid(format!("{what} reads JSON, but the answer is to be text; ask for JSON by `json` or `schema`"));
    }
    if let Output::Schema(output) = &request.output {
        let name = &output.name;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_name) {
            return invalid(format!(
                "the output schema is called {name:?}; a name takes 1 to {LONGEST_NAME} letters, digits, `_` or `-`"
            ));
        }
        if !output.schema.is_object() {
            return invalid(format!("the output schema {name:?} is not a JSON object"));
        }
        if let Err(fault) = output.check() {
            return invalid(format!("the output schema {name:?} cannot be used: {fault}"));
        }
    }
    if expected.validate_arguments {
        for tool in &request.tools {
            if let Err(fault) = tool.check_schema() {
                return invalid(format!("the parameters of tool {:?} cannot be used: {fault}", tool.name));
            }
        }
    }
    Ok(())
}
