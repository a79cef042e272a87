//! How a call should end.

use std::fmt::Debug;
use steadfast::chat::{FinishReason, Reply, Usage};
use steadfast::{ErrorCode, LlmError};

/// What came of a call.
pub(crate) type Outcome = Result<Reply, LlmError>;

/// How a call should end, and after how many attempts.
pub(crate) struct Expected {
    pub end: Result<Answer, ErrorCode>,
    pub attempts: usize,
}

/// What should be in a reply; what is not set may be anything.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub text: Option<&'static str>,
    pub finish: Option<FinishReason>,
    /// Tokens of the prompt and of the answer.
    pub usage: Option<(u64, u64)>,
    pub reasoning: Option<&'static str>,
}

impl Expected {
    /// A reply with this in it, at the first attempt.
    pub(crate) fn answer(answer: Answer) -> Self {
        Self { end: Ok(answer), attempts: 1 }
    }

    /// Any reply, after so many attempts.
    pub(crate) fn any_answer(attempts: usize) -> Self {
        Self { end: Ok(Answer::default()), attempts }
    }

    /// An error of this code, after so many attempts.
    pub(crate) fn error(code: ErrorCode, attempts: usize) -> Self {
        Self { end: Err(code), attempts }
    }

    /// What is not as it should be.
    pub(crate) fn problems(&self, outcome: &Outcome) -> Vec<String> {
        let mut problems = Vec::new();
        compare(&mut problems, "attempts", &attempts(outcome), &self.attempts);
        match (&self.end, outcome) {
            (Ok(answer), Ok(reply)) => answer.compare(&mut problems, reply),
            (Err(code), Err(error)) => compare(&mut problems, "code", &error.code(), &Some(*code)),
            (Ok(_), Err(_)) => problems.push("an error in place of a reply".to_owned()),
            (Err(code), Ok(_)) => problems.push(format!("a reply in place of {}", code.as_str())),
        }
        problems
    }
}

impl Answer {
    fn compare(&self, problems: &mut Vec<String>, reply: &Reply) {
        match self.text {
            Some(text) => compare(problems, "text", &reply.text(), &text),
            None if reply.text().trim().is_empty() => problems.push("no text".to_owned()),
            None => {}
        }
        if let Some(finish) = self.finish {
            compare(problems, "finish reason", &reply.finish_reason(), &finish);
        }
        if self.reasoning.is_some() {
            compare(problems, "reasoning", &reply.reasoning(), &self.reasoning);
        }
        if self.usage.is_some() {
            let usage = reply.usage().map(|usage| (usage.input, usage.output));
            compare(problems, "usage", &usage, &self.usage);
        }
        if let Some(usage) = reply.usage().filter(|usage| !adds_up(usage)) {
            problems.push(format!("usage does not add up: {usage:?}"));
        }
    }
}

/// Whether the parts are within the totals.
fn adds_up(usage: &Usage) -> bool {
    let cached = usage.cached_input.unwrap_or(0) + usage.cache_write.unwrap_or(0);
    usage.total == usage.input + usage.output && cached <= usage.input && usage.reasoning.unwrap_or(0) <= usage.output
}

/// How many requests the call took.
pub(crate) fn attempts(outcome: &Outcome) -> usize {
    match outcome {
        Ok(reply) => reply.attempts().len() + 1,
        Err(error) => error.attempts().len().max(1),
    }
}

/// Notes it where the two differ.
pub(crate) fn compare<T: PartialEq + Debug>(problems: &mut Vec<String>, what: &str, is: &T, should_be: &T) {
    if is != should_be {
        problems.push(format!("{what} is {is:?} and should be {should_be:?}"));
    }
}
