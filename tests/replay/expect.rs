//! What a case expects, and whether a run is that.

use super::case::Case;
use super::play::Run;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;

/// One expected value: itself, any of a list, nothing (`null`), a range, or a repeated text.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Expected(pub(crate) Value);

impl Expected {
    pub(crate) fn matches(&self, got: &Value) -> bool {
        matches(&self.0, got)
    }
}

fn matches(expected: &Value, got: &Value) -> bool {
    match expected {
        Value::Array(any) => any.iter().any(|one| matches(one, got)),
        Value::Object(object) if is_range(object) => got.as_f64().is_some_and(|got| {
            let bound = |name: &str| object.get(name).and_then(Value::as_f64);
            bound("min").is_none_or(|min| got >= min) && bound("max").is_none_or(|max| got <= max)
        }),
        Value::Object(object) => match repeated(object) {
            Some(text) => got == text.as_str(),
            None => same(expected, got),
        },
        _ => same(expected, got),
    }
}

fn is_range(object: &Map<String, Value>) -> bool {
    !object.is_empty() && object.iter().all(|(key, value)| matches!(key.as_str(), "min" | "max") && value.is_number())
}

/// The text that `{"repeat", "times"}` stands for.
pub(crate) fn repeated(object: &Map<String, Value>) -> Option<String> {
    let (text, times) = (object.get("repeat")?.as_str()?, object.get("times")?.as_u64()?);
    Some(text.repeat(usize::try_from(times).ok()?))
}

/// Equal as JSON values: 1 is 1.0.
fn same(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (expected, got) => expected == got,
    }
}

/// Everything a case says about its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub(crate) outcome: Told,
    pub(crate) around: Around,
}

/// What it says about the calls.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Nothing,
    /// One call: one of these, each with the place in the case that says so.
    AnyOf(Vec<(String, Slot)>),
    /// For each call of the script.
    Each(Vec<Slot>),
}

#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Dropped,
    Outcome(Box<Outcome>),
}

/// What it says about everything else.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Around {
    #[serde(deserialize_with = "present")]
    pub(crate) requests: Option<Expected>,
    pub(crate) requests_min: Option<usize>,
    pub(crate) requests_by_target: Option<Vec<usize>>,
    pub(crate) waits: Vec<Wait>,
    #[serde(deserialize_with = "present")]
    pub(crate) total_ms: Option<Expected>,
    pub(crate) complete_within_ms: Option<u64>,
    pub(crate) must_not_contain: Vec<String>,
    pub(crate) other_origin: OtherOrigin,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wait {
    pub(crate) min_ms: u64,
    pub(crate) max_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OtherOrigin {
    pub(crate) must_not_receive: Vec<String>,
}

/// What it says about one call, or about the calls of a concurrent group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Outcome {
    pub(crate) ok: Option<bool>,
    #[serde(deserialize_with = "present")]
    pub(crate) ok_count: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) error_count: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) text: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) partial_text: Option<Expected>,
    pub(crate) tool_calls: Option<Vec<Map<String, Value>>>,
    pub(crate) usage: Option<Map<String, Value>>,
    #[serde(deserialize_with = "present")]
    pub(crate) finish_reason: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) reasoning: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) reasoning_signature: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) refusal: Option<Expected>,
    pub(crate) error: Option<Error>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Error {
    #[serde(rename = "type", deserialize_with = "present")]
    pub(crate) kind: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) code: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) status: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) retryable: Option<Expected>,
    #[serde(deserialize_with = "present")]
    pub(crate) retry_after_ms: Option<Expected>,
    pub(crate) provider_message_contains: Option<String>,
    pub(crate) message_max_chars: Option<usize>,
    #[serde(deserialize_with = "present")]
    pub(crate) attempts: Option<Expected>,
    pub(crate) attempt_statuses: Option<Vec<Expected>>,
    pub(crate) target_codes: Option<Vec<Expected>>,
    pub(crate) must_not_contain: Vec<String>,
}

/// `null` says something here: that there must be nothing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Expected>, D::Error> {
    Expected::deserialize(from).map(Some)
}

/// The keys of an expectation that are not about one call.
const AROUND: [&str; 8] = [
    "complete_within_ms",
    "must_not_contain",
    "other_origin",
    "requests",
    "requests_by_target",
    "requests_min",
    "total_ms",
    "waits",
];

impl Expect {
    /// Sorts the keys of a case's `expect`. One that is not known is an error: nothing goes unchecked.
    pub(crate) fn read(expect: &Value) -> Result<Self, String> {
        let Value::Object(all) = expect else { return Err("expect: not an object".to_owned()) };
        let (around, mut call): (Map<_, _>, Map<_, _>) =
            all.clone().into_iter().partition(|(key, _)| AROUND.contains(&key.as_str()));
        let around = serde_json::from_value(Value::Object(around)).map_err(|error| format!("expect: {error}"))?;
        let (outcome, outcomes, any_of) = (call.remove("outcome"), call.remove("outcomes"), call.remove("any_of"));
        let outcome = match (outcome, outcomes, any_of) {
            (Some(outcome), None, None) if call.is_empty() => {
                Told::AnyOf(vec![("outcome.".to_owned(), Slot::read(outcome)?)])
            }
            (None, Some(Value::Array(each)), None) if call.is_empty() => {
                Told::Each(each.into_iter().map(Slot::read).collect::<Result<_, _>>()?)
            }
            (None, None, Some(Value::Array(any))) => {
                let merged = any.into_iter().enumerate().map(|(i, option)| {
                    let Value::Object(option) = option else { return Err("any_of: not an object".to_owned()) };
                    let mut merged = call.clone();
                    merged.extend(option);
                    Ok((format!("any_of[{i}]."), Slot::read(Value::Object(merged))?))
                });
                Told::AnyOf(merged.collect::<Result<_, _>>()?)
            }
            (None, None, None) if call.is_empty() => Told::Nothing,
            (None, None, None) => Told::AnyOf(vec![(String::new(), Slot::read(Value::Object(call))?)]),
            _ => return Err("expect: outcome, outcomes and any_of are one another's alternatives".to_owned()),
        };
        Ok(Self { outcome, around })
    }
}

impl Slot {
    fn read(value: Value) -> Result<Self, String> {
        if value == "dropped" {
            return Ok(Self::Dropped);
        }
        serde_json::from_value(value).map(Self::Outcome).map_err(|error| format!("expect: {error}"))
    }
}

/// One thing that is not as expected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    pub(crate) field: String,
    expected: String,
    got: String,
}

impl Fault {
    pub(crate) fn new(field: impl Into<String>, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Self { field: field.into(), expected: expected.to_string(), got: got.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.field, short(&self.expected), short(&self.got))
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Everything in a run that is not as the case expects.
pub(crate) fn judge(case: &Case, expect: &Expect, run: &Run) -> Vec<Fault> {
    let mut faults = Faults { streams: case.streams(), printed: &printed(run), list: Vec::new() };
    match &expect.outcome {
        Told::Nothing => {}
        Told::AnyOf(options) => faults.any_of(options, run),
        Told::Each(slots) => faults.each(slots, run),
    }
    faults.around(&expect.around, run);
    faults.list
}

struct Faults<'a> {
    streams: bool,
    /// Everything that secrets are looked for in.
    printed: &'a [String],
    list: Vec<Fault>,
}

impl Faults<'_> {
    fn add(&mut self, field: impl Into<String>, expected: impl fmt::Display, got: impl fmt::Display) {
        self.list.push(Fault::new(field, expected, got));
    }

    fn check(&mut self, field: impl Into<String>, expected: Option<&Expected>, got: &Value) {
        if let Some(expected) = expected.filter(|expected| !expected.matches(got)) {
            self.add(field, &expected.0, got);
        }
    }

    /// The faults of the option that comes closest.
    fn any_of(&mut self, options: &[(String, Slot)], run: &Run) {
        let [group] = run.outcomes.as_slice() else {
            return self.add("outcome", "one call", format!("{} calls", run.outcomes.len()));
        };
        let tried = options.iter().map(|(at, slot)| {
            let mut faults = Faults { list: Vec::new(), ..*self };
            faults.slot(at, slot, group);
            faults.list
        });
        self.list.extend(tried.min_by_key(Vec::len).unwrap_or_default());
    }

    fn each(&mut self, slots: &[Slot], run: &Run) {
        if slots.len() != run.outcomes.len() {
            return self.add("outcomes", slots.len(), run.outcomes.len());
        }
        for (i, (slot, group)) in slots.iter().zip(&run.outcomes).enumerate() {
            self.slot(&format!("outcomes[{i}]."), slot, group);
        }
    }

    /// One call, or a concurrent group of which each is to be so, unless they are counted.
    fn slot(&mut self, at: &str, slot: &Slot, group: &[Value]) {
        let outcome = match slot {
            Slot::Dropped => {
                for got in group.iter().filter(|got| got["dropped"] != true) {
                    self.add(format!("{at}dropped"), "a call that is let go", got);
                }
                return;
            }
            Slot::Outcome(outcome) => outcome,
        };
        if outcome.ok_count.is_none() && outcome.error_count.is_none() {
            for got in group {
                self.outcome(at, outcome, got);
            }
            return;
        }
        let (good, bad): (Vec<_>, Vec<_>) = group.iter().partition(|got| got["ok"] == true);
        self.check(format!("{at}ok_count"), outcome.ok_count.as_ref(), &good.len().into());
        self.check(format!("{at}error_count"), outcome.error_count.as_ref(), &bad.len().into());
        for got in bad {
            if let Some(error) = &outcome.error {
                self.error(at, error, &got["error"]);
            }
        }
    }

    fn outcome(&mut self, at: &str, expected: &Outcome, got: &Value) {
        if got["dropped"] == true {
            return self.add(format!("{at}ok"), "a result", "dropped");
        }
        let ok = got["ok"] == true;
        let want_ok = expected.ok.unwrap_or(expected.error.is_none());
        if ok != want_ok {
            let error = &got["error"];
            let told = format!("{} {} {}", error["type"], error["code"], error["message"]);
            self.add(format!("{at}ok"), want_ok, if ok { "true".to_owned() } else { format!("false ({told})") });
        }
        if let Some(text) = &expected.text {
            let or_empty = |name: &str| if got[name].is_null() { Value::from("") } else { got[name].clone() };
            if self.streams {
                self.check(format!("{at}text (delivered)"), Some(text), &or_empty("delivered_text"));
            }
            if !self.streams || (ok && !got["text"].is_null()) {
                self.check(format!("{at}text"), Some(text), &or_empty("text"));
            }
        }
        if let Some(partial) = &expected.partial_text {
            let have = if got["partial_text"].is_null() { Value::from("") } else { got["partial_text"].clone() };
            self.check(format!("{at}partial_text"), Some(partial), &have);
        }
        self.check(format!("{at}finish_reason"), expected.finish_reason.as_ref(), &got["finish_reason"]);
        self.check(format!("{at}reasoning"), expected.reasoning.as_ref(), &got["reasoning"]);
        let signature = expected.reasoning_signature.as_ref();
        self.check(format!("{at}reasoning_signature"), signature, &got["reasoning_signature"]);
        self.check(format!("{at}refusal"), expected.refusal.as_ref(), &got["refusal"]);
        for (key, value) in expected.usage.iter().flatten() {
            self.check(format!("{at}usage.{key}"), Some(&Expected(value.clone())), &got["usage"][key]);
        }
        if let Some(calls) = &expected.tool_calls {
            self.tool_calls(at, calls, got["tool_calls"].as_array().map_or(&[], Vec::as_slice));
        }
        match &expected.error {
            Some(error) if !ok => self.error(at, error, &got["error"]),
            Some(_) => self.add(format!("{at}error"), "an error", "a success"),
            None => {}
        }
    }

    fn tool_calls(&mut self, at: &str, expected: &[Map<String, Value>], got: &[Value]) {
        if expected.len() != got.len() {
            return self.add(format!("{at}tool_calls"), Value::from(expected.to_vec()), Value::from(got.to_vec()));
        }
        for (i, (call, have)) in expected.iter().zip(got).enumerate() {
            for (key, value) in call {
                let field = format!("{at}tool_calls[{i}].{key}");
                if key == "id" && value == "*" {
                    let id = have["id"].as_str().unwrap_or_default();
                    if id.is_empty() || got.iter().filter(|other| other["id"] == id).count() != 1 {
                        self.add(field, "any, not empty, unique", &have["id"]);
                    }
                } else if !same(value, &have[key]) {
                    self.add(field, value, &have[key]);
                }
            }
        }
    }

    fn error(&mut self, at: &str, expected: &Error, got: &Value) {
        for (name, expected) in [
            ("type", &expected.kind),
            ("code", &expected.code),
            ("status", &expected.status),
            ("retryable", &expected.retryable),
            ("retry_after_ms", &expected.retry_after_ms),
        ] {
            self.check(format!("{at}error.{name}"), expected.as_ref(), &got[name]);
        }
        let message = got["message"].as_str().unwrap_or_default();
        if let Some(part) = &expected.provider_message_contains {
            let said = got["provider_message"].as_str().unwrap_or(message);
            if !said.contains(part.as_str()) {
                self.add(format!("{at}error.provider_message_contains"), part, said);
            }
        }
        if let Some(max) = expected.message_max_chars {
            let chars = message.chars().count();
            if chars == 0 || chars > max {
                self.add(format!("{at}error.message_max_chars"), format!("1 to {max}"), chars);
            }
        }
        let attempts = got["attempts"].as_array().map_or(&[][..], Vec::as_slice);
        self.check(format!("{at}error.attempts"), expected.attempts.as_ref(), &attempts.len().into());
        self.list_of(format!("{at}error.attempt_statuses"), expected.attempt_statuses.as_ref(), attempts, "status");
        let targets = got["targets"].as_array().map_or(&[][..], Vec::as_slice);
        self.list_of(format!("{at}error.target_codes"), expected.target_codes.as_ref(), targets, "code");
        self.leaks(&format!("{at}error.must_not_contain"), &expected.must_not_contain);
    }

    fn list_of(&mut self, field: String, expected: Option<&Vec<Expected>>, got: &[Value], key: &str) {
        let Some(expected) = expected else { return };
        let as_expected = expected.len() == got.len() && expected.iter().zip(got).all(|(e, g)| e.matches(&g[key]));
        if !as_expected {
            let expected: Value = expected.iter().map(|expected| expected.0.clone()).collect();
            self.add(field, expected, got.iter().map(|got| got[key].clone()).collect::<Value>());
        }
    }

    /// Whether a secret is in anything printed, as it is or as JSON within JSON.
    fn leaks(&mut self, field: &str, secrets: &[String]) {
        for secret in secrets {
            let once = escaped(secret);
            let forms = [secret.clone(), escaped(&once), once];
            let hit = self.printed.iter().find_map(|text| forms.iter().find_map(|form| Some((text, text.find(form)?))));
            if let Some((text, at)) = hit {
                let start = text[..at].char_indices().rev().nth(60).map_or(0, |(start, _)| start);
                self.add(field, format!("no {secret}"), &text[start..]);
            }
        }
    }

    fn around(&mut self, expected: &Around, run: &Run) {
        let Around { requests, requests_min, requests_by_target, waits, total_ms, .. } = expected;
        self.check("requests", requests.as_ref(), &run.seen.len().into());
        if let Some(min) = requests_min.filter(|min| run.seen.len() < *min) {
            self.add("requests_min", min, run.seen.len());
        }
        if let Some(expected) = requests_by_target {
            let count = |target| run.seen.iter().filter(|seen| seen.target == target).count();
            let got: Vec<_> = (0..expected.len()).map(count).collect();
            if *expected != got {
                self.add("requests_by_target", format!("{expected:?}"), format!("{got:?}"));
            }
        }
        let got = run.waits_ms();
        for (i, wait) in waits.iter().enumerate() {
            let (min, max) = (wait.min_ms, wait.max_ms.unwrap_or(u64::MAX));
            if !got.get(i).is_some_and(|got| (min..=max).contains(got)) {
                self.add(format!("waits[{i}]"), format!("{min} to {max} ms"), format!("{:?}", got.get(i)));
            }
        }
        self.check("total_ms", total_ms.as_ref(), &run.total_ms.into());
        if let Some(max) = expected.complete_within_ms.filter(|max| run.total_ms > *max) {
            self.add("complete_within_ms", max, run.total_ms);
        }
        self.leaks("must_not_contain", &expected.must_not_contain);
        for secret in &expected.other_origin.must_not_receive {
            if run.other_origin.contains(secret.as_str()) {
                self.add("other_origin.must_not_receive", format!("no {secret}"), "received");
            }
        }
    }
}

/// A text as it stands in JSON, without the quotes.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// All strings of all outcomes, those within JSON texts too.
fn printed(run: &Run) -> Vec<String> {
    let mut texts = Vec::new();
    for outcome in run.outcomes.iter().flatten() {
        strings(outcome, &mut texts);
    }
    texts
}

fn strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Value::Object(fields) => {
            for (key, value) in fields {
                texts.push(key.clone());
                strings(value, texts);
            }
        }
        _ => {}
    }
}
