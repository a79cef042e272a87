//! The contract about tools.

use super::{Breach, listed};
use crate::chat::schema::fit;
use crate::chat::{Reply, Request, Tool, ToolChoice};
use crate::client::call::Expected;
use crate::record::{ErrorCode, Issues, ToolProblem};

/// Fields of protocols that declare tools; who sends some by `extra` knows what to do with their calls.
const DECLARING: [&str; 2] = ["tools", "toolConfig"];

/// Finds every problem with the calls of a reply.
pub(super) fn check(request: &Request, expected: &Expected, reply: &mut Reply) -> Result<(), Breach> {
    if reply.tool_calls().is_empty() {
        return Ok(());
    }
    let declares_more = DECLARING.iter().any(|field| request.extra.contains_key(*field));
    let mut problems = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for call in reply.tool_calls_mut() {
        let mut found = |code: ErrorCode, detail: Option<String>| {
            problems.push(ToolProblem { tool: call.name.clone(), tool_call_id: call.id.clone(), code, detail });
        };
        let tool = request.tools.iter().find(|tool| tool.name == call.name);
        match tool {
            _ if request.tool_choice == ToolChoice::None => found(ErrorCode::ToolChoiceNoneViolated, None),
            None if declares_more => {}
            None if request.tools.is_empty() => found(ErrorCode::UnexpectedToolCalls, None),
            None => found(ErrorCode::UnknownTool, Some(format!("there are: {}", names(&request.tools)))),
            Some(_) => {}
        }
        if ids.contains(&call.id) {
            found(ErrorCode::DuplicateToolCallId, None);
        }
        ids.push(call.id.clone());
        // A provider that holds the model to a strict schema writes null for what is left out.
        if let Some(tool) = tool.filter(|tool| expected.validate_arguments || tool.strict == Some(true)) {
            let mismatches = fit(&tool.parameters, &mut call.arguments);
            if expected.validate_arguments && !mismatches.is_empty() {
                found(ErrorCode::SchemaMismatch, Some(listed(&mismatches)));
            }
        }
    }
    let Some(first) = problems.first() else { return Ok(()) };
    let code = first.code;
    let what =
        format!("{}: {}", code.as_str().replace('_', " "), problems.iter().map(line).collect::<Vec<_>>().join("; "));
    Err(Breach { code, what, issues: Issues::Tools { problems } })
}

fn names(tools: &[Tool]) -> String {
    tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>().join(", ")
}

fn line(problem: &ToolProblem) -> String {
    let ToolProblem { tool, tool_call_id: id, code, detail } = problem;
    let what = match code {
        ErrorCode::ToolChoiceNoneViolated => "was called although no tool was to be",
        ErrorCode::UnexpectedToolCalls => "was called although the call has no tools",
        ErrorCode::UnknownTool => "is not among the tools",
        ErrorCode::DuplicateToolCallId => "was called with an id that another call has",
        _ => "was called with arguments that do not fit its schema",
    };
    match detail {
        Some(detail) => format!("{tool:?} ({id}) {what}: {detail}"),
        None => format!("{tool:?} ({id}) {what}"),
    }
}
