//! The runner of the cases, tested: that it passes what is right, and fails what is not.

#[path = "replay_selftest/mini.rs"]
mod mini;
#[path = "replay_selftest/parrot.rs"]
mod parrot;
#[path = "replay/mod.rs"]
mod replay;

use mini::Mini;
use parrot::{mutations, perfect_run};
use replay::case::{Case, Kind, Line, load};
use replay::expect::judge;
use replay::play::{Verdict, play};
use replay::report::{Options, Summary, replay};
use replay::subject::{CallSpec, Client, NotConfigured, Outcome, Setup, Subject};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn corpus() -> Result<Vec<Case>, Box<dyn std::error::Error>> {
    let lines = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases"))?;
    let cases = lines.into_iter().map(|line| line.case.map_err(|why| format!("{}: {why}", line.name)));
    let mut cases = cases.collect::<Result<Vec<_>, _>>()?;
    cases.retain(|case| case.kind != Kind::Note);
    Ok(cases)
}

/// A case that is only about its expectations.
fn expecting(expect: &Value, stream: bool) -> Result<Case, String> {
    let case = json!({"id": "a", "theme": "t", "provider": "p", "api": "none", "kind": "http",
        "request": {"stream": stream}, "response": {"status": 200}, "expect": expect});
    Case::read(&case.to_string())
}

/// Mutates every expectation of a case, one at a time: each has to be noticed, and to be named.
fn every_mutation_is_noticed(case: &Case) -> Result<usize, String> {
    let expect = case.expectations()?;
    let run = perfect_run(&expect);
    let faults = judge(case, &expect, &run);
    assert!(faults.is_empty(), "{}: {faults:?}", case.id);
    let mutations = mutations(&case.expect);
    for (key, mutated) in &mutations {
        let case = Case { expect: mutated.clone(), ..case.clone() };
        let faults = judge(&case, &case.expectations()?, &run);
        let named = faults.iter().any(|fault| fault.field.contains(key.as_str()));
        assert!(named, "{}: {key} in {mutated} was not noticed: {faults:?}", case.id);
    }
    Ok(mutations.len())
}

#[test]
fn the_corpus_can_be_passed_and_no_expectation_of_it_is_vacuous() -> TestResult {
    let (mut cases, mut noticed) = (0, 0);
    for case in corpus()? {
        noticed += every_mutation_is_noticed(&case)?;
        cases += 1;
    }
    assert!(cases > 200 && noticed > 3 * cases, "{cases} cases, {noticed} mutations");
    Ok(())
}

#[test]
fn each_kind_of_expectation_can_be_passed_and_failed() -> TestResult {
    let all = json!({
        "ok": false, "finish_reason": null, "usage": {"input": 1, "output": [null, 2], "total": {"min": 3}},
        "text": ["Half", "Halves"], "partial_text": "Half", "reasoning": "because", "reasoning_signature": "s",
        "refusal": null, "tool_calls": [{"id": "*", "name": "get_time", "arguments": {"zone": 1}}],
        "error": {"type": ["api", "network"], "code": "overloaded", "status": [503, null], "retryable": true,
            "retry_after_ms": {"min": 5, "max": 9}, "provider_message_contains": "busy", "message_max_chars": 80,
            "attempts": 2, "attempt_statuses": [503, [500, 503]], "target_codes": ["overloaded"],
            "must_not_contain": ["sk-1"]},
        "requests": 3, "requests_min": 3, "requests_by_target": [1, 2],
        "waits": [{"min_ms": 10, "max_ms": 20}, {"min_ms": 5}], "total_ms": {"min": 20, "max": 400},
        "complete_within_ms": 500, "must_not_contain": ["sk-2"], "other_origin": {"must_not_receive": ["sk-3"]},
    });
    let noticed = every_mutation_is_noticed(&expecting(&all, false)?)?;
    assert_eq!(noticed, 38);
    every_mutation_is_noticed(&expecting(&all, true)?)?;
    let groups = json!({"outcomes": [{"ok_count": 1, "error_count": 9, "error": {"type": "circuit_open"}}, "dropped"]});
    assert_eq!(every_mutation_is_noticed(&expecting(&groups, false)?)?, 5);
    let text = json!({"text": {"repeat": "ab", "times": 3}});
    assert_eq!(every_mutation_is_noticed(&expecting(&text, false)?)?, 1);
    Ok(())
}

#[test]
fn an_expectation_that_is_not_known_is_an_error() {
    for expect in [
        json!({"ok": true, "colour": "red"}),
        json!({"error": {"sort": "api"}}),
        json!({"outcome": {"ok": true}, "text": "x"}),
        json!({"outcome": {"ok": true}, "outcomes": []}),
        json!({"waits": [{"min": 1}]}),
    ] {
        assert!(expecting(&expect, false).is_err(), "{expect}");
    }
}

/// Replays cases given as `kind`, settings, what the servers do and what is expected.
async fn mini(kind: &str, case: Value) -> Result<Verdict, String> {
    let mut all = json!({"id": "a", "theme": "t", "provider": "p", "api": "none", "kind": kind});
    if let (Value::Object(all), Value::Object(case)) = (&mut all, case) {
        all.extend(case);
    }
    Ok(play(&Case::read(&all.to_string())?, &Mini, Duration::from_secs(5)).await)
}

async fn all_pass(kind: &str, cases: &[Value]) -> TestResult {
    for case in cases {
        match mini(kind, case.clone()).await? {
            Verdict::Passed => {}
            verdict => panic!("{case}: {verdict:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_delivery_of_an_http_case_is_played() -> TestResult {
    let case = |delivery: Value, expect: Value| {
        json!({"response": {"status": 200, "headers": {"x-a": "1"}, "body": "0123456789", "delivery": delivery},
            "config": {"timeout_ms": 300}, "expect": expect})
    };
    let broken = |body: &str| json!({"error": {"code": "connection_interrupted"}, "partial_text": body, "requests": 1});
    let silent = |body: &str| json!({"error": {"code": "request_timeout"}, "partial_text": body, "requests": 1});
    all_pass(
        "http",
        &[
            case(json!({}), json!({"text": "0123456789"})),
            case(json!({"content_length": 400, "then": "close"}), broken("0123456789")),
            case(json!({"content_length": 4}), json!({"text": "0123"})),
            case(json!({"chunked": true}), json!({"text": "0123456789"})),
            case(json!({"chunked": true, "then": "close"}), json!({"text": "0123456789"})),
            case(json!({"chunked": true, "then": "close_without_terminator"}), broken("0123456789")),
            case(json!({"chunked": true, "then": "reset"}), broken("0123456789")),
            case(json!({"chunked": true, "then": "hang"}), silent("0123456789")),
            case(json!({"content_length": 400, "then": "hang"}), silent("0123456789")),
            case(json!({"before_head_ms": 5000}), silent("")),
            case(json!({"before_head_ms": 50}), json!({"text": "0123456789", "total_ms": {"min": 50}})),
            case(json!({"bytes_per_tick": 4, "tick_ms": 30}), json!({"text": "0123456789", "total_ms": {"min": 60}})),
            json!({"response": {"status": 200, "body": {"b64": "4pyT"}}, "expect": {"text": "✓"}}),
            json!({"response": {"status": 503, "body": "busy"},
                "expect": {"error": {"status": 503, "provider_message_contains": "busy"}}}),
        ],
    )
    .await
}

#[tokio::test]
async fn every_delivery_of_a_stream_is_played() -> TestResult {
    let case = |chunks: Value, then: &str, expect: Value| {
        json!({"request": {"stream": true}, "config": {"timeout_ms": 300}, "expect": expect,
            "response": {"status": 200, "chunks": chunks, "then": then}})
    };
    let chunks = json!(["a", {"b64": "4pyT"}, {"delay_ms": 30}, {"repeat": "xy", "times": 3}, ""]);
    let all = "a✓xyxyxy";
    all_pass(
        "stream",
        &[
            case(chunks.clone(), "close", json!({"text": all, "total_ms": {"min": 30}})),
            case(chunks.clone(), "reset", json!({"text": all, "error": {"code": "connection_interrupted"}})),
            case(chunks.clone(), "hang", json!({"text": all, "error": {"code": "request_timeout"}})),
            case(json!([]), "close", json!({"text": ""})),
        ],
    )
    .await
}

#[tokio::test]
async fn every_step_of_a_sequence_is_played() -> TestResult {
    let ok = || json!({"response": {"status": 200, "body": "ok"}});
    let busy = || json!({"response": {"status": 503, "body": "busy"}});
    let one_retry = json!({"max_retries": 1, "base_delay_ms": 40, "timeout_ms": 300});
    all_pass(
        "sequence",
        &[
            json!({"config": one_retry, "steps": [busy(), ok()],
                "expect": {"outcome": {"text": "ok"}, "requests": 2, "waits": [{"min_ms": 40, "max_ms": 280}]}}),
            json!({"config": one_retry, "steps": [{"network": "reset_after_request"}, ok()],
                "expect": {"outcome": {"text": "ok"}, "requests": 2}}),
            json!({"config": one_retry, "steps": [{"network": "hang"}, ok()],
                "expect": {"outcome": {"text": "ok"}, "requests": 2, "total_ms": {"min": 300}}}),
            json!({"config": one_retry, "steps": [{"stream": {"status": 200, "chunks": ["o", "k"]}, "delay_ms": 50}],
                "expect": {"outcome": {"text": "ok"}, "requests": 1, "total_ms": {"min": 50}}}),
            json!({"config": one_retry, "steps": [{"network": "refuse", "repeat": true}],
                "expect": {"outcome": {"error": {"code": "connection_failed", "attempts": 2}}, "requests": 0}}),
            json!({"steps": [ok(), {"network": "close_on_reuse"}, ok()], "script": [{"call": 2}, {"sleep_ms": 1}],
                "config": one_retry, "expect": {"outcomes": [{"text": "ok"}, {"text": "ok"}], "requests": 3}}),
            json!({"steps": [{"network": "close_on_reuse"}, ok()], "expect": {"outcome": {"text": "ok"}, "requests": 1}}),
            // Beyond the script.
            json!({"steps": [ok()], "script": [{"call": 2}],
                "expect": {"outcomes": [{"text": "ok"}, {"error": {"status": 500}}]}}),
            json!({"config": {"targets": 2}, "expect": {"outcome": {"text": "ok"}, "requests_by_target": [1, 1]},
                "steps": [{"response": {"status": 503}, "target": 0, "repeat": true},
                    {"response": {"status": 200, "body": "ok"}, "target": 1, "repeat": true}]}),
        ],
    )
    .await
}

#[tokio::test]
async fn a_target_that_refuses_first_listens_after_the_refusal() -> TestResult {
    // How soon the refusal is noticed depends on the system: with enough retries it always is.
    let case = json!({"config": {"max_retries": 20, "base_delay_ms": 40},
        "steps": [{"network": "refuse"}, {"response": {"status": 200, "body": "ok"}}],
        "expect": {"outcome": {"text": "ok"}, "requests": 1}});
    all_pass("sequence", &[case]).await
}

#[tokio::test]
async fn the_script_drives_the_client() -> TestResult {
    let slow = || json!({"response": {"status": 200, "body": "ok"}, "delay_ms": 200, "repeat": true});
    let calls = |script: Value, expect: Value| json!({"steps": [slow()], "script": script, "expect": expect});
    let (ok, cancelled) = (json!({"text": "ok"}), json!({"error": {"type": "aborted"}}));
    all_pass(
        "sequence",
        &[
            calls(json!([{"call": 2}]), json!({"outcomes": [ok, ok], "total_ms": {"min": 400}})),
            calls(
                json!([{"call": 3, "concurrent": true}]),
                json!({"outcomes": [{"ok_count": 3, "error_count": 0}], "total_ms": {"min": 200, "max": 390}}),
            ),
            calls(
                json!([{"call": 1, "background": true}, {"sleep_ms": 10}, {"call": 1}]),
                json!({"outcomes": [ok, ok], "total_ms": {"min": 210, "max": 390}, "waits": [{"min_ms": 8, "max_ms": 180}]}),
            ),
            calls(json!([{"call": 1, "cancel_after_ms": 0}]), json!({"outcomes": [cancelled], "requests": 0})),
            calls(
                json!([{"call": 1, "cancel_after_ms": 20}]),
                json!({"outcomes": [cancelled], "requests": 1, "total_ms": {"min": 20, "max": 180}}),
            ),
        ],
    )
    .await
}

#[tokio::test]
async fn placeholders_and_the_second_origin_are_real() -> TestResult {
    let case = |secret: &str| {
        json!({"config": {"api_key": "sk-1"}, "expect": {"other_origin": {"must_not_receive": [secret]}},
            "steps": [{"response": {"status": 307, "headers": {"location": "{{other_origin}}/x"}}}]})
    };
    // The mini client follows redirects, and takes its key along.
    assert!(matches!(mini("sequence", case("sk-2")).await?, Verdict::Passed));
    match mini("sequence", case("sk-1")).await? {
        Verdict::Failed(faults) => assert_eq!(faults[0].field, "other_origin.must_not_receive"),
        verdict => panic!("{verdict:?}"),
    }
    let body = json!({"response": {"status": 200, "body": "{{unix_ms:+1d}}"}, "expect": {"text": "{{unix_ms:+1d}}"}});
    assert!(matches!(mini("http", body).await?, Verdict::Failed(_)));
    Ok(())
}

/// A client that does not behave.
struct Unruly(&'static str);

impl Subject for Unruly {
    type Client = Self;

    fn configure(&self, setup: &Setup) -> Result<Self, NotConfigured> {
        match self.0 {
            "refuses" => Err(NotConfigured::Failed("bad settings".to_owned())),
            "lacks" => Err(NotConfigured::unsupported(format!("api {}", setup.api))),
            "panics early" => panic!("no client"),
            how => Ok(Self(how)),
        }
    }
}

impl Client for Unruly {
    async fn call(&self, _: CallSpec) -> Outcome {
        match self.0 {
            "panics" => panic!("no answer"),
            "hangs" => std::future::pending().await,
            "blocks" => loop {
                std::thread::park();
            },
            "lacks calls" => Outcome::unsupported("calls"),
            _ => Outcome { ok: true, ..Outcome::default() },
        }
    }
}

fn told(how: &'static str, lines: Vec<Line>) -> io::Result<(Summary, String)> {
    let mut out = Vec::new();
    let options = Options { limit: Duration::from_millis(50), ..Options::default() };
    let summary = replay(lines, &Arc::new(Unruly(how)), options, &mut out)?;
    Ok((summary, String::from_utf8_lossy(&out).into_owned()))
}

#[test]
fn a_client_that_misbehaves_fails_and_what_is_not_there_is_left_to_do() -> TestResult {
    let one = || -> Result<Vec<Line>, String> {
        Ok(vec![Line { name: "a".to_owned(), case: Ok(expecting(&json!({"ok": true}), false)?) }])
    };
    for (how, line) in [
        ("answers", "ok    a"),
        ("refuses", "FAIL  a: configure: expected a client, got bad settings"),
        ("panics early", "FAIL  a: configure: expected a client, got a panic: no client"),
        ("panics", "FAIL  a: call: expected an outcome, got a panic: no answer"),
        ("hangs", "FAIL  a: call: expected an outcome, got none within 50ms"),
        ("blocks", "FAIL  a: call: expected that it yields, got a thread is stuck"),
        ("lacks", "todo  a: api none"),
        ("lacks calls", "todo  a: calls"),
    ] {
        let (summary, out) = told(how, one()?)?;
        assert_eq!(out.lines().next(), Some(line));
        assert_eq!(summary.is_good(), !line.starts_with("FAIL"), "{out}");
    }
    Ok(())
}

#[test]
fn the_report_ends_with_the_sum() -> TestResult {
    let line = |name: &str, case| Line { name: name.to_owned(), case };
    let note = r#"{"id":"n","theme":"t","provider":"p","kind":"note","scenario":"s","expect":"e"}"#;
    let lines = vec![
        line("good", expecting(&json!({"ok": true}), false)),
        line("bad", expecting(&json!({"ok": false}), false)),
        line("cases.jsonl:3", Case::read("{}")),
        line("note", Case::read(note)),
    ];
    let (summary, out) = told("answers", lines)?;
    assert_eq!((summary.passed, summary.failed.len(), summary.todo.len()), (1, 2, 1));
    assert!(!summary.is_good());
    assert!(out.contains("FAIL  bad: ok: expected false, got true\n"), "{out}");
    assert!(out.contains("FAIL  cases.jsonl:3: case: "), "{out}");
    assert!(out.ends_with("\n1 todo\n     1  a note, for a test written by hand\n\n1 passed, 2 failed\n"), "{out}");
    assert!(!told("answers", Vec::new())?.0.is_good(), "nothing tried is nothing passed");
    Ok(())
}
