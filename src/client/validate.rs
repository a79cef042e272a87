//! Whether an answer keeps to what was asked: the tools, the form, the schema, the caller's own checks.

mod json;
mod tools;

use super::call::Expected;
use crate::chat::schema::fit;
use crate::chat::{FinishReason, Output, Reply, Request};
use crate::record::{ErrorCode, Issues, SchemaMismatch};
use serde_json::Value;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How an answer does not keep to what was asked.
pub(super) struct Breach {
    pub(super) code: ErrorCode,
    pub(super) what: String,
    pub(super) issues: Issues,
}

/// Holds a reply to what was asked, and keeps in it what was learned on the way: the JSON that it is.
pub(super) fn validate(request: &Request, expected: &Expected, reply: &mut Reply) -> Result<(), Breach> {
    tools::check(request, expected, reply)?;
    if request.output.is_text() {
        return Ok(());
    }
    if let Some(instead) = other_than_json(reply) {
        return if expected.must_answer { Err(mismatch(vec![whole(instead)])) } else { Ok(()) };
    }
    let mut value = json::read(expected, reply)?;
    if let Output::Schema(output) = &request.output {
        let mismatches = fit(&output.schema, &mut value);
        if !mismatches.is_empty() {
            return Err(mismatch(mismatches));
        }
    }
    let faults: Vec<_> = expected.checks.iter().filter_map(|check| run(&**check, &value).err()).map(whole).collect();
    if !faults.is_empty() {
        return Err(mismatch(faults));
    }
    reply.keep_json(value);
    Ok(())
}

/// What the model did in place of an answer in JSON, if that is what it did.
fn other_than_json(reply: &Reply) -> Option<String> {
    if let Some(words) = reply.refusal() {
        return Some(format!("the model declined: {words}"));
    }
    if reply.finish_reason() == FinishReason::Refusal {
        return Some("the model declined".to_owned());
    }
    (!reply.tool_calls().is_empty()).then(|| "the model called tools instead of an answer".to_owned())
}

/// Asks a check of the caller's.
fn run(check: &(dyn Fn(&Value) -> Result<(), String> + Send + Sync), value: &Value) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| check(value))).unwrap_or_else(|_| Err("the check panicked".to_owned()))
}

fn whole(message: String) -> SchemaMismatch {
    SchemaMismatch { path: String::new(), message }
}

fn mismatch(mismatches: Vec<SchemaMismatch>) -> Breach {
    let what = format!("schema mismatch: {}", listed(&mismatches));
    Breach { code: ErrorCode::SchemaMismatch, what, issues: Issues::Schema { mismatches } }
}

/// The first few faults in one line, and how many more there are.
fn listed(mismatches: &[SchemaMismatch]) -> String {
    const TOLD: usize = 3;
    let told = |fault: &SchemaMismatch| match &*fault.path {
        "" => fault.message.clone(),
        path => format!("{path} {}", fault.message),
    };
    let mut line = mismatches.iter().take(TOLD).map(told).collect::<Vec<_>>().join("; ");
    if mismatches.len() > TOLD {
        _ = write!(line, "; and {} more", mismatches.len() - TOLD);
    }
    line
}

#[cfg(test)]
mod tests;
