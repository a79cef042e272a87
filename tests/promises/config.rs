//! Settings that cannot work are refused when the client is built, each by its name, all at once.

use super::support::*;
use std::time::Duration;
use steadfast::provider::{OpenAi, OpenAiCompatible};
use steadfast::resilience::{Aimd, CircuitBreaker, Policy, RateLimit, Retry, RetryBudget};
use steadfast::testing::MemoryTransport;
use steadfast::{Client, ConfigError, Target};

const ZERO: Duration = Duration::ZERO;

/// What is wrong with a target: field and value.
fn problems(change: impl FnOnce(Target) -> Target) -> Vec<(String, String)> {
    let provider = MemoryTransport::openai();
    let target = change(Target::new(OpenAiCompatible::new(provider.base_url()), "m"));
    listed(&Client::builder(target).transport(provider).build().expect_err("it is wrong"))
}

fn listed(error: &ConfigError) -> Vec<(String, String)> {
    for problem in error.problems() {
        assert!(!problem.allowed.is_empty(), "{problem}");
        assert!(!problem.value.is_empty(), "{problem}");
        assert!(error.to_string().contains(&problem.to_string()), "{error}");
    }
    assert!(error.to_string().starts_with("invalid configuration: ") && !error.to_string().contains('\n'), "{error}");
    error.problems().iter().map(|problem| (problem.field.clone(), problem.value.clone())).collect()
}

fn one(field: &str, value: &str) -> Vec<(String, String)> {
    vec![(format!("targets[0].{field}"), value.to_owned())]
}

#[test]
fn every_number_of_retry_is_checked() {
    let retry = |retry: Retry| problems(|target| target.retry(retry));
    for (factor, shown) in [(0.5, "0.5"), (0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        assert_eq!(retry(Retry::new(1).factor(factor)), one("retry.factor", shown));
    }
    for (share, shown) in [(-0.1, "-0.1"), (1.1, "1.1"), (f64::NAN, "NaN")] {
        assert_eq!(retry(Retry::new(1).advised_jitter(share)), one("retry.advised_jitter", shown));
    }
    assert_eq!(retry(Retry::new(1).base_delay(secs(2)).max_delay(secs(1))), one("retry.max_delay", "1s"));
    assert_eq!(retry(Retry::new(1).retry_status([99])), one("retry.retry_status", "99"));
    assert_eq!(retry(Retry::new(1).non_retryable_status([600])), one("retry.non_retryable_status", "600"));
}

#[test]
fn every_number_of_the_breaker_is_checked() {
    let breaker = |breaker: CircuitBreaker| problems(|target| target.circuit_breaker(breaker));
    let rolling = |window, calls, ratio| breaker(CircuitBreaker::rolling(window, calls, ratio));
    let at = |field: &str, value: &str| one(&format!("circuit_breaker.{field}"), value);
    assert_eq!(breaker(CircuitBreaker::consecutive(0)), at("tripping.consecutive", "0"));
    assert_eq!(rolling(ZERO, 1, 0.5), at("tripping.rolling.window", "0s"));
    assert_eq!(rolling(secs(1), 0, 0.5), at("tripping.rolling.min_calls", "0"));
    for (ratio, shown) in [(0.0, "0"), (1.1, "1.1"), (-0.5, "-0.5"), (f64::NAN, "NaN")] {
        assert_eq!(rolling(secs(1), 1, ratio), at("tripping.rolling.failure_ratio", shown));
        let half = CircuitBreaker::default().half_open_success_ratio(ratio);
        assert_eq!(breaker(half), at("half_open_success_ratio", shown));
    }
    assert_eq!(breaker(CircuitBreaker::default().half_open_probes(0)), at("half_open_probes", "0"));
    assert_eq!(breaker(CircuitBreaker::default().recovery_ramp(ZERO)), at("recovery_ramp", "0s"));
    for (multiplier, shown) in [(0.9, "0.9"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let grown = CircuitBreaker::default().cooldown_backoff(multiplier, secs(60));
        assert_eq!(breaker(grown), at("cooldown_backoff.multiplier", shown));
    }
    let short = CircuitBreaker::default().cooldown_backoff(2.0, secs(29));
    assert_eq!(breaker(short), at("cooldown_backoff.max", "29s"));
}

#[test]
fn every_number_of_the_budget_is_checked() {
    let budget = |window, ratio| problems(|target| target.retry_budget(RetryBudget::new(window, 10, ratio)));
    assert_eq!(budget(ZERO, 0.1), one("retry_budget.window", "0s"));
    for (ratio, shown) in [(-0.1, "-0.1"), (1.1, "1.1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        assert_eq!(budget(secs(1), ratio), one("retry_budget.retry_ratio", shown));
    }
}

#[test]
fn every_number_of_the_limiter_is_checked() {
    let limit = |limit: RateLimit| problems(|target| target.rate_limit(limit));
    let at = |field: &str, value: &str| one(&format!("rate_limit.{field}"), value);
    let rated = || RateLimit::new().requests_per_minute(60).tokens_per_minute(600);
    assert_eq!(limit(RateLimit::new().requests_per_minute(0)), at("requests_per_minute", "0"));
    assert_eq!(limit(RateLimit::new().tokens_per_minute(0)), at("tokens_per_minute", "0"));
    assert_eq!(limit(RateLimit::new().max_concurrent(0)), at("max_concurrent", "0"));
    assert_eq!(limit(rated().burst(0)), at("burst", "0"));
    assert_eq!(limit(rated().burst(61)), at("burst", "61"));
    assert_eq!(limit(rated().token_burst(601)), at("token_burst", "601"));
    assert_eq!(limit(RateLimit::new().max_queue_time(ZERO)), at("max_queue_time", "0s"));
    for (share, shown) in [(0.0, "0"), (1.1, "1.1"), (f64::NAN, "NaN")] {
        assert_eq!(limit(rated().estimate_fraction(share)), at("estimate_fraction", shown));
    }
    assert_eq!(limit(rated().aimd(Aimd::new(1.0, 1.0, 1, 100))), at("aimd.decrease_factor", "1"));
}

#[test]
fn every_time_of_target_and_client_is_checked() {
    assert_eq!(problems(|target| target.timeout(ZERO)), one("timeout", "0 s"));
    let provider = MemoryTransport::openai();
    let builder = || Client::builder(target(&provider)).transport(provider.clone());
    let wrong = |builder: steadfast::ClientBuilder| listed(&builder.build().expect_err("it is wrong"));
    let pair = |field: &str, value: &str| vec![(field.to_owned(), value.to_owned())];
    for (share, shown) in [(-0.1, "-0.1"), (1.0, "1"), (f64::NAN, "NaN")] {
        assert_eq!(wrong(builder().fallback_reserve(share)), pair("fallback_reserve", shown));
    }
    assert_eq!(wrong(builder().connect_timeout(ZERO)), pair("connect_timeout", "0 s"));
    assert_eq!(wrong(builder().max_response_bytes(0)), pair("max_response_bytes", "0"));
    let headers = builder().capture_header("bad name").capture_header("x-good").capture_header("also bad");
    let both = [("capture_header", "\"bad name\""), ("capture_header", "\"also bad\"")];
    assert_eq!(wrong(headers), both.map(|(field, value)| (field.to_owned(), value.to_owned())));
    // The client's own timeout is checked on the targets that inherit it, and so is its retry.
    let plain = Target::new(OpenAiCompatible::new(provider.base_url()), "m");
    let inherited = Client::builder(plain).timeout(ZERO).retry(Retry::new(1).factor(0.0)).transport(provider.clone());
    let fields: Vec<_> = wrong(inherited).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["targets[0].retry.factor", "targets[0].timeout"]);
    // A deadline of zero is what a spent budget of time computes to.
    assert!(builder().deadline(ZERO).build().is_ok());
}

#[test]
fn all_problems_are_named_at_once() {
    let provider = MemoryTransport::openai();
    let first = Target::new(OpenAiCompatible::new("nonsense"), " ")
        .name("same")
        .retry(Retry::new(1).factor(0.5).advised_jitter(2.0))
        .timeout(ZERO)
        .circuit_breaker(CircuitBreaker::consecutive(0))
        .retry_budget(RetryBudget::new(ZERO, 0, 2.0))
        .rate_limit(RateLimit::new().max_concurrent(0));
    let second = Target::new(OpenAiCompatible::new(provider.base_url()), "m").name("same").timeout(ZERO);
    let builder = Client::builder(first).fallback(second).fallback_reserve(2.0).transport(provider);
    let error = builder.build().expect_err("it is wrong");
    let fields: Vec<_> = error.problems().iter().map(|problem| problem.field.as_str()).collect();
    let expected = [
        "fallback_reserve",
        "name",
        "targets[0].base_url",
        "targets[0].model",
        "targets[0].retry.factor",
        "targets[0].retry.advised_jitter",
        "targets[0].timeout",
        "targets[0].circuit_breaker.tripping.consecutive",
        "targets[0].retry_budget.window",
        "targets[0].retry_budget.retry_ratio",
        "targets[0].rate_limit.max_concurrent",
        "targets[1].timeout",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_bad_url_is_named_without_its_secrets() {
    for url in ["nonsense", "", "/v1", "ftp://host/v1", "http://", "https://{resource}.example.com/v1"] {
        let found = problems(|_| Target::new(OpenAiCompatible::new(url), "m"));
        assert_eq!(found.len(), 1, "{url}: {found:?}");
        assert_eq!(found[0].0, "targets[0].base_url", "{url}");
    }
    let found = problems(|_| Target::new(OpenAiCompatible::new("ftp://user:pass-word@host?key=abcdefgh"), "m"));
    assert!(!format!("{found:?}").contains("pass-word") && !format!("{found:?}").contains("abcdefgh"), "{found:?}");
}

#[test]
fn a_missing_key_names_its_variable() {
    let error = OpenAiCompatible::preset("groq").map(|groq| problems(|_| Target::new(groq, "m")));
    let found = error.expect("there is such a preset");
    assert_eq!(found[0], ("targets[0].api_key".to_owned(), "not given".to_owned()));
    let provider = OpenAiCompatible::preset("groq").expect("there is such a preset");
    let error = Client::builder(Target::new(provider, "m")).build().expect_err("no key");
    assert!(error.to_string().contains("GROQ_API_KEY"), "{error}");
    let error = OpenAiCompatible::preset("nobody").expect_err("there is none").to_string();
    assert!(error.contains("`nobody`") && error.contains("`Preset::ALL`"), "{error}");
    let error = OpenAiCompatible::preset("groqq").expect_err("there is none").to_string();
    assert!(error.contains("perhaps groq"), "where one is near, it is named: {error}");
}

#[test]
fn a_key_that_no_header_can_hold_is_named_without_being_shown() {
    for key in ["sk-12345678\n", "sk-\u{7f}12345678", "", "  "] {
        let found = problems(|_| Target::new(OpenAi::new(key), "m"));
        assert_eq!(found[0].0, "targets[0].api_key", "{key:?}");
        assert!(!format!("{found:?}").contains("12345678"), "{found:?}");
    }
}

#[test]
fn a_bad_header_of_an_adapter_is_named_without_its_value() {
    let provider = OpenAiCompatible::new("http://host/v1").header("x-tenant", "line\nbreak-12345678");
    let found = problems(|_| Target::new(provider, "m"));
    assert_eq!(found[0].0, "targets[0].x-tenant");
    assert!(!format!("{found:?}").contains("12345678"), "{found:?}");
}

#[test]
fn names_and_models_must_be_there_and_names_differ() {
    assert_eq!(problems(|target| target.name("")), one("name", "empty"));
    assert_eq!(problems(|_| Target::new(OpenAi::new("sk-12345678"), "")), one("model", "empty"));
    let provider = MemoryTransport::openai();
    let same = || target(&provider).name("same");
    let error = Client::builder(same()).fallback(same()).transport(provider.clone()).build().expect_err("twice");
    assert_eq!(listed(&error), [("name".to_owned(), "\"same\"".to_owned())]);
}

#[test]
fn a_policy_names_every_problem_too() {
    let policy = Policy::new()
        .retry(Retry::new(1).factor(0.5))
        .timeout(ZERO)
        .circuit_breaker(CircuitBreaker::consecutive(0))
        .retry_budget(RetryBudget::new(ZERO, 0, 0.5))
        .rate_limit(RateLimit::new().max_concurrent(0));
    let error = policy.check().expect_err("it is wrong");
    let fields: Vec<_> = error.problems().iter().map(|problem| problem.field.as_str()).collect();
    let expected = [
        "retry.factor",
        "timeout",
        "circuit_breaker.tripping.consecutive",
        "retry_budget.window",
        "rate_limit.max_concurrent",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn settings_in_files_are_plain_and_reject_the_unknown() {
    let retry: Retry =
        serde_json::from_str(r#"{"max_retries": 4, "base_delay": "200ms", "jitter": "full"}"#).expect("read");
    assert_eq!(retry, Retry::new(4).base_delay(ms(200)).jitter(steadfast::resilience::Jitter::Full));
    assert_eq!(serde_json::from_str::<Retry>("{}").ok(), Some(Retry::default()));
    for wrong in [r#"{"max_retry": 1}"#, r#"{"base_delay": 200}"#, r#"{"max_retries": -1}"#, r#"{"jitter": "none!"}"#] {
        assert!(serde_json::from_str::<Retry>(wrong).is_err(), "{wrong}");
    }
    let budget: RetryBudget =
        serde_json::from_str(r#"{"window": "60s", "min_calls": 10, "retry_ratio": 0.1}"#).expect("read");
    assert_eq!(budget, RetryBudget::new(secs(60), 10, 0.1));
    assert!(
        serde_json::from_str::<RetryBudget>(r#"{"window": "60s", "min_calls": 10, "retry_ratio": 0.1, "x": 1}"#)
            .is_err()
    );
    assert!(serde_json::from_str::<CircuitBreaker>(r#"{"tripping": {"consecutive": 3}, "cooldwn": "1s"}"#).is_err());
}
