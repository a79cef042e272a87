use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn problems(settings: &CircuitBreaker) -> Vec<String> {
    let error = settings.build().expect_err("cannot be");
    error.problems().iter().map(|problem| problem.field.clone()).collect()
}

#[test]
fn defaults_are_those_of_the_table() {
    let CircuitBreaker {
        tripping,
        cooldown,
        cooldown_backoff,
        half_open_probes,
        half_open_success_ratio,
        recovery_ramp,
        isolate_by_model,
        recheck,
        hang_evidence,
    } = CircuitBreaker::default();
    assert!(matches!(tripping, Rule::Consecutive(5)));
    assert_eq!((cooldown, half_open_probes, half_open_success_ratio), (30 * SECOND, 1, 1.0));
    assert!(cooldown_backoff.is_none() && recovery_ramp.is_none() && hang_evidence.is_none());
    assert!(!isolate_by_model && !recheck);
}

#[test]
fn every_impossible_setting_is_named_at_once() {
    let settings = CircuitBreaker::rolling(Duration::ZERO, 0, 1.5)
        .cooldown(10 * SECOND)
        .cooldown_backoff(0.5, SECOND)
        .half_open_probes(0)
        .half_open_success_ratio(0.0)
        .recovery_ramp(Duration::ZERO)
        .hang_evidence(Duration::ZERO);
    let expected = [
        "tripping.rolling.window",
        "tripping.rolling.min_calls",
        "tripping.rolling.failure_ratio",
        "cooldown_backoff.multiplier",
        "cooldown_backoff.max",
        "half_open_probes",
        "half_open_success_ratio",
        "recovery_ramp",
        "hang_evidence",
    ];
    assert_eq!(problems(&settings), expected);
    assert_eq!(problems(&CircuitBreaker::consecutive(0)), ["tripping.consecutive"]);
}

#[test]
fn hang_evidence_is_any_time_but_none_at_all() {
    let error = CircuitBreaker::default().hang_evidence(Duration::ZERO).build().expect_err("everybody would trip it");
    let [problem] = error.problems() else { panic!("one: {error}") };
    assert_eq!(
        (&*problem.field, &*problem.value, &*problem.allowed),
        ("hang_evidence", "0s", "a time longer than 0, or none")
    );
    for time in [Duration::from_nanos(1), Duration::MAX] {
        assert!(CircuitBreaker::default().hang_evidence(time).build().is_ok(), "{time:?}");
    }
}

#[test]
fn a_ratio_is_more_than_zero_and_at_most_one() {
    for ratio in [-0.5, 0.0, 1.000_001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let rolling = CircuitBreaker::rolling(SECOND, 1, ratio);
        assert_eq!(problems(&rolling), ["tripping.rolling.failure_ratio"], "{ratio}");
        let half_open = CircuitBreaker::default().half_open_success_ratio(ratio);
        assert_eq!(problems(&half_open), ["half_open_success_ratio"], "{ratio}");
    }
    for ratio in [f64::MIN_POSITIVE, 0.5, 1.0] {
        assert!(CircuitBreaker::rolling(SECOND, 1, ratio).half_open_success_ratio(ratio).build().is_ok(), "{ratio}");
    }
}

#[test]
fn the_growth_of_the_cooldown_is_checked() {
    for multiplier in [0.99, -1.0, f64::NAN, f64::INFINITY] {
        let settings = CircuitBreaker::default().cooldown_backoff(multiplier, 60 * SECOND);
        assert_eq!(problems(&settings), ["cooldown_backoff.multiplier"], "{multiplier}");
    }
    let settings = CircuitBreaker::default().cooldown_backoff(2.0, 29 * SECOND);
    let error = settings.build().expect_err("shorter than the cooldown");
    assert_eq!(error.problems()[0].value, "29s");
    assert!(CircuitBreaker::default().cooldown_backoff(1.0, 30 * SECOND).build().is_ok());
}

#[test]
fn so_many_trials_must_succeed_as_are_the_share() {
    for (probes, ratio, expected) in [
        (1, 1.0, 1),
        (1, 0.01, 1),
        (3, 0.5, 2),
        (3, 0.6, 2),
        (3, 0.67, 3),
        (4, 0.5, 2),
        (10, 0.7, 7),
        (30, 0.1, 3),
        (100, 0.29, 29),
        (u32::MAX, 1.0, u32::MAX),
        (u32::MAX, f64::MIN_POSITIVE, 1),
    ] {
        assert_eq!(needed(probes, ratio), expected, "{ratio} of {probes}");
    }
}

#[test]
fn settings_are_read_from_files() {
    let read = |text: &str| serde_json::from_str::<CircuitBreaker>(text);
    let all = r#"{
        "tripping": {"rolling": {"window": "1m", "min_calls": 20, "failure_ratio": 0.5}}, "cooldown": "10s",
        "cooldown_backoff": {"multiplier": 2.0, "max": "5m"}, "half_open_probes": 3, "half_open_success_ratio": 0.6,
        "recovery_ramp": "20s", "isolate_by_model": true, "recheck": true, "hang_evidence": "2s"
    }"#;
    let expected = CircuitBreaker::rolling(60 * SECOND, 20, 0.5)
        .cooldown(10 * SECOND)
        .cooldown_backoff(2.0, 300 * SECOND)
        .half_open_probes(3)
        .half_open_success_ratio(0.6)
        .recovery_ramp(20 * SECOND)
        .isolate_by_model(true)
        .recheck(true)
        .hang_evidence(2 * SECOND);
    assert_eq!(format!("{:?}", read(all).expect("valid")), format!("{expected:?}"));
    let little = read(r#"{"tripping": {"consecutive": 2}}"#).expect("valid");
    assert_eq!(format!("{little:?}"), format!("{:?}", CircuitBreaker::consecutive(2)));
    let nothing = read("{}").expect("valid");
    assert_eq!(format!("{nothing:?}"), format!("{:?}", CircuitBreaker::default()));
}

#[test]
fn unknown_settings_are_rejected() {
    for text in [
        r#"{"cool_down": "10s"}"#,
        r#"{"tripping": {"custom": {}}}"#,
        r#"{"tripping": {"rolling": {"window": "1m", "min_calls": 20, "failure_ratio": 0.5, "more": 1}}}"#,
        r#"{"cooldown_backoff": {"multiplier": 2.0, "max": "5m", "jitter": 1}}"#,
    ] {
        assert!(serde_json::from_str::<CircuitBreaker>(text).is_err(), "{text}");
    }
}
