use super::*;

fn problems(settings: &Retry) -> Vec<String> {
    let error = settings.check().err();
    error.iter().flat_map(ConfigError::problems).map(ToString::to_string).collect()
}

#[test]
fn defaults_are_those_of_the_table() {
    let expected = Retry {
        max_retries: 1,
        base_delay: Duration::from_millis(500),
        max_delay: Duration::from_secs(10),
        factor: 2.0,
        jitter: Jitter::Equal,
        non_retryable_status: vec![],
        retry_status: vec![],
        idempotent: true,
        respect_retry_after: true,
        max_retry_after: Duration::from_secs(60),
        advised_jitter: 0.0,
        min_attempt_time: Duration::from_millis(250),
    };
    assert_eq!(Retry::default(), expected);
    assert_eq!(problems(&expected), [""; 0]);
    assert_eq!(Retry::new(4), Retry { max_retries: 4, ..expected.clone() });
    assert_eq!(Retry::none(), Retry { max_retries: 0, ..expected });
}

#[test]
fn each_setter_sets_its_own() {
    let second = Duration::from_secs(1);
    let set = Retry::new(9)
        .max_retries(3)
        .base_delay(2 * second)
        .max_delay(3 * second)
        .factor(4.0)
        .jitter(Jitter::Full)
        .non_retryable_status([500])
        .retry_status([418])
        .idempotent(false)
        .respect_retry_after(false)
        .max_retry_after(5 * second)
        .advised_jitter(0.5)
        .min_attempt_time(6 * second);
    let expected = Retry {
        max_retries: 3,
        base_delay: 2 * second,
        max_delay: 3 * second,
        factor: 4.0,
        jitter: Jitter::Full,
        non_retryable_status: vec![500],
        retry_status: vec![418],
        idempotent: false,
        respect_retry_after: false,
        max_retry_after: 5 * second,
        advised_jitter: 0.5,
        min_attempt_time: 6 * second,
    };
    assert_eq!(set, expected);
    assert_eq!(problems(&set), [""; 0]);
}

#[test]
fn every_impossible_setting_is_named_at_once() {
    let settings = Retry::new(1)
        .factor(0.99)
        .base_delay(Duration::from_secs(11))
        .advised_jitter(1.01)
        .non_retryable_status([100, 99])
        .retry_status([599, 600, 0]);
    let expected = [
        "factor is 0.99; allowed: a finite number of at least 1",
        "max_delay is 10s; allowed: at least base_delay (11s)",
        "advised_jitter is 1.01; allowed: a number from 0 to 1",
        "non_retryable_status is 99; allowed: HTTP statuses from 100 to 599",
        "retry_status is 600; allowed: HTTP statuses from 100 to 599",
        "retry_status is 0; allowed: HTTP statuses from 100 to 599",
    ];
    assert_eq!(problems(&settings), expected);
}

#[test]
fn bounds_belong_to_what_is_allowed() {
    let edge = Retry::new(u32::MAX)
        .factor(1.0)
        .base_delay(Duration::MAX)
        .max_delay(Duration::MAX)
        .advised_jitter(1.0)
        .max_retry_after(Duration::MAX)
        .min_attempt_time(Duration::MAX);
    assert_eq!(problems(&edge), [""; 0]);
    for factor in [f64::NAN, f64::INFINITY, -2.0] {
        assert_eq!(problems(&Retry::default().factor(factor)).len(), 1, "{factor}");
    }
    for share in [f64::NAN, f64::INFINITY, -0.01] {
        assert_eq!(problems(&Retry::default().advised_jitter(share)).len(), 1, "{share}");
    }
}

#[test]
fn files_say_only_what_differs_and_unknown_settings_are_an_error() -> Result<(), serde_json::Error> {
    assert_eq!(serde_json::from_str::<Retry>("{}")?, Retry::default());
    let text = r#"{ "max_retries": 3, "base_delay": "200ms", "jitter": "full", "max_retry_after": "5m" }"#;
    let expected = Retry::new(3)
        .base_delay(Duration::from_millis(200))
        .jitter(Jitter::Full)
        .max_retry_after(Duration::from_secs(300));
    assert_eq!(serde_json::from_str::<Retry>(text)?, expected);
    for (text, jitter) in [("\"none\"", Jitter::None), ("\"equal\"", Jitter::Equal)] {
        assert_eq!(serde_json::from_str::<Jitter>(text)?, jitter);
    }
    for wrong in [r#"{ "retries": 3 }"#, r#"{ "base_delay": 200 }"#, r#"{ "max_retries": -1 }"#] {
        assert!(serde_json::from_str::<Retry>(wrong).is_err(), "{wrong}");
    }
    Ok(())
}
