//! A run that is exactly what a case expects, and expectations that it then does not meet.

use crate::replay::expect::{Error, Expect, Expected, Outcome as Wanted, Slot, Told, repeated};
use crate::replay::play::Run;
use crate::replay::subject::{Failure, Outcome, Reason, ToolCall};
use crate::replay::world::Seen;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Said by every perfect run, and received by its second origin: what looks for it finds it.
const PLANTED: &str = "sk-planted";

/// Far from every number in a case.
const FAR: u64 = 1_000_003;

/// A value that an expectation accepts.
fn pick(expected: &Value) -> Value {
    match expected {
        Value::Array(any) => any.first().map(pick).unwrap_or_default(),
        Value::Object(object) => match repeated(object) {
            Some(text) => Value::from(text),
            None => object.get("min").or(object.get("max")).unwrap_or(expected).clone(),
        },
        value => value.clone(),
    }
}

fn picked(expected: Option<&Expected>) -> Value {
    expected.map(|expected| pick(&expected.0)).unwrap_or_default()
}

fn text(expected: Option<&Expected>) -> Option<String> {
    picked(expected).as_str().map(str::to_owned)
}

fn count(expected: Option<&Expected>) -> Option<usize> {
    picked(expected).as_u64().and_then(|count| usize::try_from(count).ok())
}

pub(crate) fn perfect_run(expect: &Expect) -> Run {
    let slots: Vec<&Slot> = match &expect.outcome {
        Told::Nothing => Vec::new(),
        Told::AnyOf(options) => options.iter().take(1).map(|(_, slot)| slot).collect(),
        Told::Each(slots) => slots.iter().collect(),
    };
    let around = &expect.around;
    let by_target = around.requests_by_target.clone().unwrap_or_default();
    let requests = count(around.requests.as_ref()).or(around.requests_min);
    let requests = requests.unwrap_or(by_target.iter().sum()).max(around.waits.len() + 1);
    let mut targets = by_target.iter().enumerate().flat_map(|(target, count)| vec![target; *count]);
    let mut at = Instant::now();
    let seen = (0..if expects_requests(expect) { requests } else { 0 }).map(|number| {
        let wait = number.checked_sub(1).and_then(|before| around.waits.get(before));
        at += Duration::from_millis(wait.map_or(1, |wait| wait.min_ms));
        Seen { target: targets.next().unwrap_or(0), at }
    });
    Run {
        outcomes: slots.into_iter().map(perfect_group).collect(),
        seen: seen.collect(),
        total_ms: picked(around.total_ms.as_ref()).as_u64().unwrap_or(1),
        other_origin: PLANTED.to_owned(),
    }
}

fn expects_requests(expect: &Expect) -> bool {
    count(expect.around.requests.as_ref()) != Some(0)
}

fn perfect_group(slot: &Slot) -> Vec<Value> {
    let outcomes = match slot {
        Slot::Dropped => vec![Outcome::dropped()],
        Slot::Outcome(wanted) => match (count(wanted.ok_count.as_ref()), count(wanted.error_count.as_ref())) {
            (None, None) => vec![perfect(wanted, wanted.ok.unwrap_or(wanted.error.is_none()))],
            (good, bad) => {
                let group = [(true, good), (false, bad)];
                group.into_iter().flat_map(|(ok, count)| vec![perfect(wanted, ok); count.unwrap_or(0)]).collect()
            }
        },
    };
    outcomes.into_iter().map(|outcome| serde_json::to_value(outcome).unwrap_or_default()).collect()
}

fn perfect(wanted: &Wanted, ok: bool) -> Outcome {
    let calls = wanted.tool_calls.iter().flatten().enumerate().map(|(i, call)| {
        let field = |key: &str| call.get(key).cloned().unwrap_or_default();
        let id = field("id").as_str().filter(|id| *id != "*").map_or(format!("call_{i}"), str::to_owned);
        ToolCall { id, name: field("name").as_str().unwrap_or_default().to_owned(), arguments: field("arguments") }
    });
    let usage: Map<_, _> = wanted.usage.iter().flatten().map(|(key, value)| (key.clone(), pick(value))).collect();
    let tokens = |key: &str| usage.get(key).and_then(Value::as_u64);
    Outcome {
        ok,
        text: text(wanted.text.as_ref()),
        delivered_text: text(wanted.text.as_ref()).unwrap_or_default(),
        partial_text: text(wanted.partial_text.as_ref()).or(Some(PLANTED.to_owned())),
        finish_reason: text(wanted.finish_reason.as_ref()),
        tool_calls: calls.collect(),
        usage: Some(crate::replay::subject::Usage {
            input: tokens("input"),
            output: tokens("output"),
            total: tokens("total"),
            cached_input: tokens("cached_input"),
            cache_write: tokens("cache_write"),
            reasoning: tokens("reasoning"),
        }),
        reasoning: text(wanted.reasoning.as_ref()),
        reasoning_signature: text(wanted.reasoning_signature.as_ref()),
        refusal: text(wanted.refusal.as_ref()),
        error: (!ok).then(|| perfect_error(wanted.error.as_ref().unwrap_or(&Error::default()))),
        ..Outcome::default()
    }
}

fn perfect_error(wanted: &Error) -> Failure {
    let status = |value: &Value| value.as_u64().and_then(|status| u16::try_from(status).ok());
    let statuses = wanted.attempt_statuses.iter().flatten().map(|expected| status(&pick(&expected.0)));
    let mut attempts: Vec<_> = statuses.map(|status| Reason { status, ..Reason::default() }).collect();
    attempts.resize_with(count(wanted.attempts.as_ref()).unwrap_or(attempts.len()), Reason::default);
    let codes = wanted.target_codes.iter().flatten().map(|expected| text(Some(expected)));
    Failure {
        kind: text(wanted.kind.as_ref()).unwrap_or_default(),
        code: text(wanted.code.as_ref()),
        status: status(&picked(wanted.status.as_ref())),
        retryable: picked(wanted.retryable.as_ref()) == true,
        retry_after_ms: picked(wanted.retry_after_ms.as_ref()).as_u64(),
        provider_message: wanted.provider_message_contains.clone(),
        message: "failed".to_owned(),
        debug: format!("Failed({PLANTED})"),
        json: json!({}),
        attempts,
        targets: codes.map(|code| Reason { code, ..Reason::default() }).collect(),
    }
}

/// Every expectation of a case, changed one at a time into one that the perfect run does not meet; with the name that
/// the fault has to bear.
pub(crate) fn mutations(expect: &Value) -> Vec<(String, Value)> {
    let mut mutations = Vec::new();
    for (key, value) in expect.as_object().into_iter().flatten() {
        for (name, mutated) in mutate(key, value) {
            let mut whole = expect.clone();
            whole[key] = mutated;
            mutations.push((name, whole));
        }
    }
    mutations
}

fn mutate(key: &str, value: &Value) -> Vec<(String, Value)> {
    match (key, value) {
        ("error" | "outcome" | "usage" | "other_origin", Value::Object(_)) => mutations(value),
        ("must_not_contain" | "must_not_receive", _) => vec![(key.to_owned(), json!([PLANTED]))],
        ("message_max_chars" | "complete_within_ms", _) => vec![(key.to_owned(), json!(0))],
        // An option that is met would hide what is not: all of all options are changed at once.
        ("any_of", Value::Array(options)) => {
            let options = options.iter().map(|option| {
                let all = option.as_object().into_iter().flatten();
                let all = all.filter_map(|(key, value)| Some((key.clone(), mutate(key, value).pop()?.1)));
                Value::Object(all.collect())
            });
            vec![("any_of".to_owned(), options.collect())]
        }
        ("outcomes" | "tool_calls" | "waits" | "requests_by_target" | "attempt_statuses" | "target_codes", _) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            let mut mutated = Vec::new();
            let mut replace = |at: usize, name: String, item: Value| {
                let mut items = items.to_vec();
                items[at] = item;
                mutated.push((name, Value::from(items)));
            };
            for (at, item) in items.iter().enumerate() {
                match (key, item) {
                    ("outcomes", Value::Object(_)) => {
                        for (name, item) in mutations(item) {
                            replace(at, name, item);
                        }
                    }
                    ("outcomes", _) => replace(at, key.to_owned(), json!({"ok": false})),
                    ("tool_calls", Value::Object(_)) => {
                        for (field, value) in item.as_object().into_iter().flatten() {
                            let mut item = item.clone();
                            item[field] = if value.is_object() { json!({"far": FAR}) } else { far(value) };
                            replace(at, format!("{key}[{at}].{field}"), item);
                        }
                    }
                    ("waits", Value::Object(_)) => {
                        let min = item["min_ms"].as_u64().unwrap_or(0);
                        replace(at, format!("{key}[{at}]"), json!({"min_ms": min + 1}));
                        replace(at, format!("{key}[{at}]"), json!({"max_ms": min.saturating_sub(1)}));
                    }
                    _ => replace(at, key.to_owned(), far(item)),
                }
            }
            if matches!(key, "outcomes" | "tool_calls") {
                let longer = [items, &[json!({})]].concat();
                mutated.push((key.to_owned(), Value::from(longer)));
            }
            mutated
        }
        _ => vec![(key.to_owned(), far(value))],
    }
}

/// An expectation that no value meets which this one accepts.
fn far(expected: &Value) -> Value {
    match expected {
        Value::Array(any) => any.iter().map(far).collect(),
        Value::Bool(yes) => json!(!yes),
        Value::Null => json!("something"),
        Value::Number(number) => json!(number.as_u64().unwrap_or(0) + FAR),
        Value::Object(object) if object.contains_key("repeat") => json!({"repeat": object["repeat"], "times": FAR}),
        Value::Object(_) => json!({"min": pick(expected).as_u64().unwrap_or(0) + FAR}),
        Value::String(text) => json!(format!("{text}~")),
    }
}
