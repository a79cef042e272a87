//! Which answer is next.

use super::answer::{Answer, Content};
use super::journal::Received;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Answers in the order of the requests, then one for all others, or a rule that finds one.
#[derive(Clone, Debug)]
pub(super) struct Script {
    steps: VecDeque<(Arc<Answer>, usize)>,
    otherwise: Next,
}

/// The answer to a request, or who knows it.
#[derive(Clone)]
pub(super) enum Next {
    Answer(Arc<Answer>),
    Rule(Arc<dyn Fn(&Received) -> Answer + Send + Sync>),
}

impl From<Answer> for Next {
    fn from(answer: Answer) -> Self {
        Self::Answer(Arc::new(answer))
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(answer) => answer.fmt(f),
            Self::Rule(_) => f.write_str("Rule(..)"),
        }
    }
}

impl Script {
    pub(super) fn new(otherwise: Answer) -> Self {
        Self { steps: VecDeque::new(), otherwise: otherwise.into() }
    }

    pub(super) fn push(&mut self, answer: Answer) {
        self.steps.push_back((Arc::new(answer), 1));
    }

    /// Sets how often the last step is played.
    pub(super) fn repeat_last(&mut self, times: usize) {
        if times == 0 {
            self.steps.pop_back();
        } else if let Some((_, left)) = self.steps.back_mut() {
            *left = times;
        }
    }

    pub(super) fn set_otherwise(&mut self, otherwise: impl Into<Next>) {
        self.otherwise = otherwise.into();
    }

    /// The answer to the next request, which comes on a connection that has served before (`reused`) or not.
    pub(super) fn take(&mut self, reused: bool) -> Next {
        while let Some((answer, left)) = self.steps.front_mut() {
            let answer = Arc::clone(answer);
            *left -= 1;
            if *left == 0 {
                self.steps.pop_front();
            }
            if reused || !is_close_on_reuse(&answer) {
                return Next::Answer(answer);
            }
        }
        match &self.otherwise {
            Next::Answer(answer) if !reused && is_close_on_reuse(answer) => Answer::echo().into(),
            otherwise => otherwise.clone(),
        }
    }
}

fn is_close_on_reuse(answer: &Answer) -> bool {
    matches!(answer.content, Content::CloseOnReuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fault;

    fn played(script: &mut Script, reused: &[bool]) -> Vec<String> {
        let take = |reused: &bool| match script.take(*reused) {
            Next::Answer(answer) => answer.to_string(),
            Next::Rule(_) => "rule".to_owned(),
        };
        reused.iter().map(take).collect()
    }

    #[test]
    fn steps_come_in_order_then_the_last_answer_for_ever() {
        let mut script = Script::new(Answer::raw(204));
        script.push(Answer::raw(500));
        script.push(Answer::raw(503));
        script.repeat_last(2);
        script.push(Answer::raw(502));
        script.repeat_last(0);
        assert_eq!(played(&mut script, &[false; 5]), ["500", "503", "503", "204", "204"]);
    }

    #[test]
    fn close_on_reuse_is_skipped_on_a_fresh_connection() {
        let mut script = Script::new(Fault::close_on_reuse());
        script.push(Fault::close_on_reuse());
        script.push(Answer::raw(500));
        script.push(Fault::close_on_reuse());
        assert_eq!(played(&mut script, &[false, true]), ["500", "closed on reuse"]);
        assert_eq!(played(&mut script, &[false, true]), ["200 echo", "closed on reuse"]);
    }
}
