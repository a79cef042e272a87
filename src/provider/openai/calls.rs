//! Tool calls, put together from fragments however the server sends them.
//!
//! OpenAI numbers the calls, and gives the id and the name with the first fragment of each. Others leave out the number,
//! give every call the same one, repeat id and name with each fragment, or make up a new id for each; arguments come as
//! fragments of JSON, as one object, or a second time as a whole. The rules, first match wins:
//!
//! - a fragment belongs to the call of its number, and among several of that number to the one of its id; without a number
//!   to the call of its id, else to the one at its place in the list, else to the last one;
//! - a fragment without a name continues a call, whatever its id;
//! - one with another id, or with another name, opens a new call although the number is taken;
//! - so does one that names the same tool again when the arguments so far are complete, unless it brings the same ones:
//!   then it is an echo.

use crate::chat::{Opaque, ToolCall, ToolCallDelta};
use crate::provider::Draft;
use crate::provider::lenient::{Brief, Count, Fields, List};
use crate::provider::made_up;
use crate::provider::stream::{arguments, malformed};
use crate::record::ToolProblem;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Of longer arguments it is not noticed when they come a second time.
const COMPARED: usize = 4_096;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The id of the answer.
    answer: String,
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// The server's number.
    number: Option<u64>,
    /// Empty until it is known.
    id: String,
    name: String,
    /// The arguments so far, while they are not too long to be compared.
    arguments: Option<String>,
    complete: bool,
}

/// What a frame says of tool calls; none where something else came.
#[derive(Default)]
pub(super) struct Fragments<'a>(pub(super) Vec<Fragment<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Fragments<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        List::deserialize(from).map(|List(fragments)| Self(fragments))
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Fragment<'a> {
    #[serde(default)]
    index: Count,
    #[serde(default, borrow)]
    id: Brief<'a>,
    #[serde(default, borrow)]
    function: Fields<Function<'a>>,
    /// What Gemini's door wants back.
    #[serde(default, borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(default, borrow)]
    name: Brief<'a>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

impl Fragment<'_> {
    /// The id; empty where there is none, or one that stands for none.
    fn id(&self) -> &str {
        match self.id.text() {
            "null" => "",
            id => id,
        }
    }

    fn name(&self) -> &str {
        self.function.0.name.text()
    }

    /// The JSON of the arguments, or a part of it.
    fn arguments(&self) -> Cow<'_, str> {
        self.function.0.arguments.map(json_of).unwrap_or_default()
    }
}

/// What goes back with a call, of what a fragment brings.
fn opaque(fragment: &Fragment<'_>, protocol: &str) -> Option<Opaque> {
    let value: Value = serde_json::from_str(fragment.extra_content?.get()).ok()?;
    Some(Opaque::new(protocol, json!({"extra_content": value})))
}

/// The calls of a whole answer, each of which is one. `cut` says that the token limit has ended it.
///
/// # Errors
///
/// Those whose arguments are no JSON.
pub(super) fn whole(
    fragments: &Fragments<'_>,
    answer: &str,
    protocol: &str,
    cut: bool,
) -> Result<Vec<ToolCall>, Vec<ToolProblem>> {
    let (mut calls, mut problems) = (Vec::with_capacity(fragments.0.len()), Vec::new());
    for (at, fragment) in fragments.0.iter().enumerate() {
        let (name, json) = (fragment.name(), fragment.arguments());
        let id = match fragment.id() {
            "" => made_up::call_id((answer, at, name)),
            id => id.to_owned(),
        };
        let is_last = at + 1 == fragments.0.len();
        match arguments(&json) {
            Ok(arguments) if !(cut && is_last && json.trim().is_empty()) => {
                calls.push(ToolCall::new(id, name, arguments).with_opaque(opaque(fragment, protocol)));
            }
            _ => problems.push(malformed(name.to_owned(), id, &json)),
        }
    }
    if problems.is_empty() { Ok(calls) } else { Err(problems) }
}

/// The JSON of arguments: a text that holds it, or the value itself.
pub(in crate::provider) fn json_of(arguments: &RawValue) -> Cow<'_, str> {
    let json = arguments.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Brief<'_>>(json).unwrap_or_default().0,
        _ if json == "null" => Cow::Borrowed(""),
        _ => Cow::Borrowed(json),
    }
}

impl Calls {
    /// Notes the id of the answer.
    pub(super) fn answer(&mut self, id: &str) {
        if self.answer.is_empty() && !id.is_empty() {
            id.clone_into(&mut self.answer);
        }
    }

    /// Adds what a frame says.
    pub(super) fn add(&mut self, fragments: &Fragments<'_>, protocol: &str, draft: &mut Draft) {
        let several = fragments.0.len() > 1;
        for (place, fragment) in fragments.0.iter().enumerate() {
            let place = several.then_some(place);
            let at = self.find(fragment, place).unwrap_or_else(|| {
                self.calls.push(Call { number: fragment.index.0, arguments: Some(String::new()), ..Call::default() });
                self.calls.len() - 1
            });
            self.calls[at].take(at, fragment, draft);
            if let Some(opaque) = opaque(fragment, protocol) {
                draft.tool_call_opaque(at, opaque);
            }
        }
    }

    /// The token limit has ended the answer: what it cut off, where that does not show in the arguments by themselves. An
    /// answer that was complete has them, if only as `{}`.
    pub(super) fn cut(&self) -> Option<ToolProblem> {
        let call = self.calls.last()?;
        let cut = !call.complete && call.arguments.as_ref().is_some_and(|json| json.trim().is_empty());
        cut.then(|| malformed(call.name.clone(), call.id.clone(), ""))
    }

    /// Nothing more follows.
    pub(super) fn complete(&mut self, draft: &mut Draft) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            if call.complete {
                continue;
            }
            call.complete = true;
            let mut part = ToolCallDelta::new(at).complete();
            if call.id.is_empty() {
                call.id = made_up::call_id((&self.answer, at, &call.name));
                part.id = Some(call.id.clone());
            }
            draft.tool_call(part);
        }
    }

    /// The call that a fragment belongs to; none where it opens one.
    fn find(&self, fragment: &Fragment<'_>, place: Option<usize>) -> Option<usize> {
        let (id, name) = (fragment.id(), fragment.name());
        let latest = |is: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(is);
        let of_id = || latest(&|call| !id.is_empty() && call.id == id);
        let last = self.calls.len().checked_sub(1);
        let found = match fragment.index.0 {
            Some(number) => latest(&|call| call.number == Some(number) && !id.is_empty() && call.id == id)
                .or_else(|| latest(&|call| call.number == Some(number)))
                .or_else(|| of_id().filter(|at| name.is_empty() || self.calls[*at].name == name)),
            None => of_id().or(place.filter(|place| *place < self.calls.len())).or(last),
        };
        match found {
            Some(at) => self.calls[at].is_continued_by(fragment).then_some(at),
            None => last.filter(|_| id.is_empty() && name.is_empty()),
        }
    }
}

impl Call {
    fn is_continued_by(&self, fragment: &Fragment<'_>) -> bool {
        let (id, name) = (fragment.id(), fragment.name());
        if name.is_empty() || self.name.is_empty() {
            return true;
        }
        match (self.id.is_empty(), id.is_empty()) {
            (false, false) => self.id == id,
            _ if self.name != name => false,
            _ => {
                let arguments = fragment.arguments();
                arguments.trim().is_empty() || !self.has_all() || self.has(&arguments)
            }
        }
    }

    fn take(&mut self, at: usize, fragment: &Fragment<'_>, draft: &mut Draft) {
        let (id, name, arguments) = (fragment.id(), fragment.name(), fragment.arguments());
        let mut part = ToolCallDelta::new(at);
        if self.id.is_empty() && !id.is_empty() {
            id.clone_into(&mut self.id);
            part.id = Some(id.to_owned());
        }
        if self.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut self.name);
            part.name = Some(name.to_owned());
        }
        let is_echo = !(id.is_empty() && name.is_empty()) && self.has_all() && self.has(&arguments);
        if !arguments.is_empty() && !is_echo {
            match &mut self.arguments {
                Some(so_far) if so_far.len() + arguments.len() <= COMPARED => so_far.push_str(&arguments),
                _ => self.arguments = None,
            }
            part.arguments = arguments.into_owned();
        }
        if part.id.is_some() || part.name.is_some() || !part.arguments.is_empty() {
            draft.tool_call(part);
        }
    }

    /// Whether the arguments so far are complete JSON.
    fn has_all(&self) -> bool {
        self.arguments.as_ref().is_some_and(|json| serde_json::from_str::<IgnoredAny>(json).is_ok())
    }

    /// Whether the arguments so far are these.
    fn has(&self, arguments: &str) -> bool {
        let value = |json: &str| serde_json::from_str::<Value>(json).ok();
        self.arguments.as_ref().is_some_and(|so_far| so_far == arguments || value(so_far) == value(arguments))
    }
}

#[cfg(test)]
mod tests;
