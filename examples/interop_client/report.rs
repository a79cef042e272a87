//! What came of each scenario, a line each.

use super::expected::{Outcome, attempts};
use serde_json::{Value, json};
use steadfast::ErrorCode;

/// So much of a text is shown.
const SHOWN: usize = 80;

/// Prints what came of each scenario, and remembers whether all went well.
pub(crate) struct Report {
    server: String,
    provider: String,
    is_good: bool,
}

impl Report {
    pub(crate) fn new(server: &str, provider: &str) -> Self {
        Self { server: server.to_owned(), provider: provider.to_owned(), is_good: true }
    }

    /// Whether no scenario had a problem.
    pub(crate) fn is_good(&self) -> bool {
        self.is_good
    }

    /// Notes a scenario.
    pub(crate) fn scenario(&mut self, name: &str, outcome: &Outcome, problems: &[String]) {
        self.scenario_but(name, outcome, problems, None);
    }

    /// Notes a scenario that is good but for something, which is told.
    pub(crate) fn scenario_but(&mut self, name: &str, outcome: &Outcome, problems: &[String], but: Option<&str>) {
        if !self.is_without(name, problems) {
            match outcome {
                Ok(reply) => println!("     {reply:?}"),
                Err(error) => println!("     {error}\n     {:?}", error.provider_message()),
            }
            return;
        }
        let mut line = json!({
            "server": self.server,
            "provider": self.provider,
            "scenario": name,
            "attempts": attempts(outcome),
            "end": end(outcome),
        });
        if let Some(but) = but {
            line["but"] = but.into();
        }
        println!("{line}");
    }

    /// Notes something about several scenarios.
    pub(crate) fn note(&mut self, name: &str, problems: &[String]) {
        if self.is_without(name, problems) {
            println!("{}", json!({"server": self.server, "provider": self.provider, "scenario": name}));
        }
    }

    /// Says the problems, if there are any.
    fn is_without(&mut self, name: &str, problems: &[String]) -> bool {
        if !problems.is_empty() {
            self.is_good = false;
            println!("FAIL {} {} `{name}`: {}", self.server, self.provider, problems.join("; "));
        }
        problems.is_empty()
    }
}

fn end(outcome: &Outcome) -> Value {
    match outcome {
        Ok(reply) => {
            let mut end = json!({
                "text": reply.text().chars().take(SHOWN).collect::<String>(),
                "finish_reason": reply.finish_reason(),
                "usage": reply.usage(),
            });
            if !reply.tool_calls().is_empty() {
                end["tool_calls"] = json!(reply.tool_calls());
            }
            end
        }
        Err(error) => json!({
            "code": error.code().map_or(error.kind().as_str(), ErrorCode::as_str),
            "says": error.provider_message().map(|said| said.chars().take(SHOWN).collect::<String>()),
        }),
    }
}
