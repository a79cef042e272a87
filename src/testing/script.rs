//! Which answer is next.

use super::answer::{Answer, Content};
use std::collections::VecDeque;
use std::sync::Arc;

/// Answers in the order of the requests, then one for all others.
#[derive(Clone, Debug)]
pub(super) struct Script {
    steps: VecDeque<(Arc<Answer>, usize)>,
    otherwise: Arc<Answer>,
}

impl Script {
    pub(super) fn new(otherwise: Answer) -> Self {
        Self { steps: VecDeque::new(), otherwise: Arc::new(otherwise) }
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

    pub(super) fn set_otherwise(&mut self, answer: Answer) {
        self.otherwise = Arc::new(answer);
    }

    /// The answer to the next request, which comes on a `fresh` connection or on one that has served before.
    pub(super) fn take(&mut self, fresh: bool) -> Arc<Answer> {
        while let Some((answer, left)) = self.steps.front_mut() {
            let answer = Arc::clone(answer);
            *left -= 1;
            if *left == 0 {
                self.steps.pop_front();
            }
            if !(fresh && is_close_on_reuse(&answer)) {
                return answer;
            }
        }
        if fresh && is_close_on_reuse(&self.otherwise) {
            return Arc::new(Answer::echo());
        }
        Arc::clone(&self.otherwise)
    }
}

fn is_close_on_reuse(answer: &Answer) -> bool {
    matches!(answer.content, Content::CloseOnReuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fault;

    fn played(script: &mut Script, fresh: &[bool]) -> Vec<String> {
        fresh.iter().map(|fresh| script.take(*fresh).to_string()).collect()
    }

    #[test]
    fn steps_come_in_order_then_the_last_answer_for_ever() {
        let mut script = Script::new(Answer::raw(204));
        script.push(Answer::raw(500));
        script.push(Answer::raw(503));
        script.repeat_last(2);
        script.push(Answer::raw(502));
        script.repeat_last(0);
        assert_eq!(played(&mut script, &[true; 5]), ["500", "503", "503", "204", "204"]);
    }

    #[test]
    fn close_on_reuse_is_skipped_on_a_fresh_connection() {
        let mut script = Script::new(Fault::close_on_reuse());
        script.push(Fault::close_on_reuse());
        script.push(Answer::raw(500));
        script.push(Fault::close_on_reuse());
        assert_eq!(played(&mut script, &[true, false]), ["500", "closed on reuse"]);
        assert_eq!(played(&mut script, &[true, false]), ["200 echo", "closed on reuse"]);
    }
}
