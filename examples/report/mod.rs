//! Prints what was tried, for people: a table of attempts, and the tree of an error.

use std::time::{Duration, SystemTime};
use steadfast::LlmError;
use steadfast::record::{Attempt, Next, StopReason, TargetAttempt};

const HEAD: [&str; 8] = ["AT", "TARGET", "TRY", "WHAT FAILED", "STATUS", "TOOK", "WAIT", "DECISION"];

/// One line an attempt: when, where, what failed, and what was decided.
pub(crate) fn attempts(attempts: &[Attempt], margin: &str) {
    let Some(start) = attempts.first().map(|first| first.started_at) else { return };
    let rows: Vec<_> = attempts.iter().map(|attempt| row(attempt, start)).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEAD[column].len()]).max().unwrap_or_default()
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    print_row(margin, &widths, &HEAD.map(str::to_owned));
    for row in &rows {
        print_row(margin, &widths, row);
    }
}

/// The error, and under it every target with every attempt.
pub(crate) fn failure(error: &LlmError) {
    println!("{}: {error}", error.code().map_or(error.kind().to_string(), |code| code.to_string()));
    attempts(error.attempts(), "   ");
    let count = error.targets().len();
    for (place, tried) in error.targets().iter().enumerate() {
        let is_last = place + 1 == count;
        target(tried, if is_last { "└─" } else { "├─" }, if is_last { "     " } else { "│    " });
    }
}

fn target(tried: &TargetAttempt, branch: &str, margin: &str) {
    let TargetAttempt { provider, model, error, .. } = tried;
    println!("{branch} {error}  [{provider}, model {model}]");
    attempts(&tried.attempts, margin);
}

fn row(attempt: &Attempt, start: SystemTime) -> [String; 8] {
    let Attempt { index, error, request, started_at, duration, next, .. } = attempt;
    let (wait, decision) = match next {
        Next::Retried { after, advised: true } => (human(*after), "try again, when the provider said"),
        Next::Retried { after, advised: false } => (human(*after), "try again"),
        Next::Stopped(reason) => (String::new(), stopped(*reason)),
        _ => (String::new(), "?"),
    };
    [
        human(started_at.duration_since(start).unwrap_or_default()),
        request.as_ref().map(|request| request.name.clone()).unwrap_or_default(),
        (index + 1).to_string(),
        error.code.map_or(error.kind.to_string(), |code| code.to_string()),
        error.status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
        human(*duration),
        wait,
        decision.to_owned(),
    ]
}

fn stopped(reason: StopReason) -> &'static str {
    match reason {
        StopReason::NotRetryable => "give up: trying again cannot help",
        StopReason::UsedUp => "give up: no retry is left",
        StopReason::Budget => "give up: the retry budget is spent",
        StopReason::Deadline => "give up: no time is left",
        StopReason::WaitTooLong => "give up: the advised wait is too long",
        StopReason::Cancelled => "give up: cancelled",
        StopReason::Refused => "give up: refused by a guard",
        _ => "give up",
    }
}

fn print_row(margin: &str, widths: &[usize; 8], cells: &[String; 8]) {
    let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    println!("{}", format!("{margin}{}", padded.join("  ")).trim_end());
}

/// A duration as a person reads it.
pub(crate) fn human(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
