//! Answers in JSON: how they are asked for, held to their schema, and asked for again.

use super::support::*;
use serde_json::{Value, json};
use std::time::Duration;
use steadfast::chat::{Effort, FinishReason, Media, Part, Reasoning, Reply, Request, Tool, ToolChoice, Turn, Usage};
use steadfast::provider::Capabilities;
use steadfast::record::{Issues, Next};
use steadfast::resilience::{RateLimit, RetryBudget};
use steadfast::testing::{Answer, Fault, MemoryTransport};
use steadfast::{Call, ErrorKind, FallbackDecision};

fn place() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
        "required": ["city"],
    })
}

fn where_is_it() -> Call {
    Call::user("Where is it?").schema("place", place())
}

fn sent(provider: &MemoryTransport, number: usize) -> Request {
    serde_json::from_slice(&provider.journal()[number].body).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_json_is_parsed_once_and_read_as_any_type() {
    let (_, client) = answering([Reply::new(" {\"city\": \"Oslo\", \"zip\": null}"), Reply::new("[1, 2]")]);
    let answer = reply(&client, where_is_it()).await;
    assert_eq!(answer.json_value(), Some(&json!({"city": "Oslo"})), "null stands for what is left out");
    assert_eq!(answer.json::<std::collections::HashMap<String, String>>().expect("a map")["city"], "Oslo");
    let answer = reply(&client, Call::user("Two numbers").json()).await;
    assert_eq!(answer.json::<Vec<u8>>().expect("numbers"), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_json_fails_with_its_place_and_is_not_retried() {
    let cut = Reply::new("{\"city\": \"Os").with_finish_reason(FinishReason::Length).with_usage(Usage::new(7, 3));
    let (provider, client) = answering([Reply::new("Sure: {}"), cut]);
    let error = failure(&client, where_is_it().max_retries(3)).await;
    assert_eq!((error.kind(), code(&error), error.status()), (ErrorKind::Parse, "json_parse_failed", Some(200)));
    assert!(!error.is_retryable() && !error.counts_toward_breaker());
    let head = "Sure: {}".to_owned();
    assert_eq!(error.issues(), Some(&Issues::Json { text_head: head, line: 1, column: 1, cut_by_length: false }));
    assert!(error.request().is_some());
    assert_eq!(provider.requests(), 1);

    let error = failure(&client, where_is_it()).await;
    assert!(matches!(error.issues(), Some(Issues::Json { cut_by_length: true, .. })));
    assert!(error.to_string().ends_with("it was cut by the token limit: raise `max_tokens`"), "{error}");
    let partial = error.partial().expect("the reply is not lost");
    assert_eq!((partial.text(), partial.usage().map(|usage| usage.total)), ("{\"city\": \"Os", Some(10)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_its_schema_fails_with_every_place() {
    let (_, client) = answering([Reply::new("{\"zip\": 4}")]);
    let error = failure(&client, where_is_it()).await;
    assert_eq!((error.kind(), code(&error)), (ErrorKind::Validation, "schema_mismatch"));
    assert_eq!(error.to_string(), "primary: schema mismatch: lacks \"city\"; /zip is number, must be string");
    let Some(Issues::Schema { mismatches }) = error.issues() else { panic!("{:?}", error.issues()) };
    let places: Vec<_> = mismatches.iter().map(|fault| (&*fault.path, &*fault.message)).collect();
    assert_eq!(places, [("", "lacks \"city\""), ("/zip", "is number, must be string")]);
}

#[tokio::test(start_paused = true)]
async fn what_breaks_the_contract_stops_the_chain_and_leaves_the_circuit_alone() {
    use steadfast::resilience::CircuitBreaker;
    let (primary, fallback) = (MemoryTransport::http().host("primary.invalid"), fallback());
    primary.set_otherwise(plainly(&Reply::new("no JSON")));
    let first = able(&primary).circuit_breaker(CircuitBreaker::consecutive(1));
    let client = built(chain(first, target(&fallback), &primary, &fallback));
    for _ in 0..2 {
        assert_eq!(code(&failure(&client, where_is_it()).await), "json_parse_failed");
    }
    assert_eq!((primary.requests(), fallback.requests()), (2, 0));
    // Unless it is told to go on.
    let any = |_: &_, _: &_| FallbackDecision::Next;
    let client = built(chain(able(&primary), able(&primary).name("again"), &primary, &fallback).fallback_on(any));
    assert_eq!(target_codes(&failure(&client, where_is_it()).await), ["json_parse_failed", "json_parse_failed"]);
}

#[tokio::test(start_paused = true)]
async fn lenient_json_takes_one_fenced_block_or_words_around_one_value() {
    let fenced = "Here:\n```json\n{\"city\": \"Oslo\"}\n```";
    let twice = "{\"city\": \"Oslo\"} or {\"city\": \"Rome\"}";
    let (_, client) = answering([fenced, "It is {\"city\": \"Oslo\"}.", twice, fenced].map(Reply::new));
    for _ in 0..2 {
        let answer = reply(&client, where_is_it().lenient_json(true)).await;
        assert_eq!(answer.json_value(), Some(&json!({"city": "Oslo"})));
    }
    assert_eq!(code(&failure(&client, where_is_it().lenient_json(true)).await), "json_parse_failed");
    assert_eq!(code(&failure(&client, where_is_it()).await), "json_parse_failed");
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_check_and_parser_have_their_say() {
    let (_, client) = answering(["{\"city\": \"Rome\"}", "city=Oslo", "city"].map(Reply::new));
    let only_oslo = |value: &Value| if value["city"] == "Oslo" { Ok(()) } else { Err("only Oslo".to_owned()) };
    let error = failure(&client, where_is_it().validate(only_oslo)).await;
    assert_eq!(error.to_string(), "primary: schema mismatch: only Oslo");
    let pairs = |text: &str| {
        let (name, value) = text.split_once('=').ok_or("no pair")?;
        Ok(json!({name: value}))
    };
    assert_eq!(reply(&client, where_is_it().parse_json(pairs)).await.json_value(), Some(&json!({"city": "Oslo"})));
    let error = failure(&client, where_is_it().parse_json(pairs)).await;
    assert_eq!(code(&error), "json_parse_failed");
    assert!(error.to_string().ends_with("the answer is not JSON: no pair"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_output_that_cannot_be_meant_is_found_before_anything_is_sent() {
    let (provider, client) = answering([]);
    let long = "n".repeat(65);
    for (call, says) in [
        (Call::user("hi").schema("", place()), "is called \"\"; a name takes 1 to 64 letters"),
        (Call::user("hi").schema("my place", place()), "is called \"my place\""),
        (Call::user("hi").schema(long, place()), "a name takes 1 to 64 letters, digits, `_` or `-`"),
        (Call::user("hi").schema("place", json!([])), "\"place\" is not a JSON object"),
        (
            Call::user("hi").schema("place", json!({"items": {"$ref": "#/$defs/x"}})),
            "\"place\" cannot be used: \"#/$defs/x\" refers to nothing",
        ),
        (Call::user("hi").validate(|_| Ok(())), "validate reads JSON, but the answer is to be text"),
        (Call::user("hi").parse_json(|_| Ok(json!(1))), "parse_json reads JSON, but the answer is to be text"),
    ] {
        let error = failure(&client, call).await;
        assert_eq!(code(&error), "invalid_call", "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(provider.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_model_cannot_do_is_refused_before_anything_is_sent() {
    let picture = |source: Media| Call::user(vec![Part::text("?"), Part::Image(source)]);
    let tool = || Tool::new("t", "");
    for (call, capability) in [
        (Call::user("hi").json(), "json"),
        (where_is_it(), "schema"),
        (Call::user("hi").reasoning(Effort::High), "reasoning"),
        (Call::user("hi").tool(tool()), "tools"),
        (picture(Media::bytes("image/png", b"x")), "images"),
        (picture(Media::url("https://example.com/cat.png")), "image_urls"),
        (Call::user(Part::document("d", Media::bytes("application/pdf", b"x"))), "documents"),
        (Call::user(Part::Audio(Media::bytes("audio/wav", b"x"))), "audio"),
        (
            Call::default().history([
                Turn::user("hi"),
                Turn::assistant_tool_calls([steadfast::chat::ToolCall::new("1", "t", json!({}))]),
                Turn::tool_results([steadfast::chat::ToolResult::new("1", "r")]),
            ]),
            "tools",
        ),
    ] {
        let provider = MemoryTransport::http().host("primary.invalid");
        let client = client_of(&provider, able_of(&provider, Capabilities::text()));
        let error = failure(&client, call).await;
        assert_eq!((error.kind(), code(&error)), (ErrorKind::InvalidParams, "unsupported_capability"));
        let (capability, model) = (capability.to_owned(), "model-1".to_owned());
        assert!(error.to_string().starts_with(&format!("plain: model-1 does not take {capability}; ")), "{error}");
        assert_eq!(error.issues(), Some(&Issues::Capability { capability, model }));
        assert_eq!(provider.requests(), 0);
    }
    let mut with_tools = Capabilities::text();
    with_tools.tools = true;
    for (call, capability) in [
        (Call::user("hi").tool(tool()).tool_choice(ToolChoice::Required), "tool_choice"),
        (Call::user("hi").tool(tool()).parallel_tool_calls(false), "parallel_tool_calls"),
    ] {
        let provider = MemoryTransport::http().host("primary.invalid");
        let client = client_of(&provider, able_of(&provider, with_tools));
        let error = failure(&client, call).await;
        assert!(error.to_string().contains(&format!("does not take {capability}; ")), "{error}");
    }
    // A model that cannot think does not think.
    let provider = MemoryTransport::http().otherwise(plainly(&Reply::new("Hi.")));
    let client = client_of(&provider, able_of(&provider, Capabilities::text()));
    reply(&client, Call::user("hi").reasoning(Reasoning::Off)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_an_adapter_cannot_read_is_refused_before_anything_is_sent() {
    use steadfast::provider::Custom;
    let provider = MemoryTransport::http();
    let mute =
        Custom::new("mute", provider.base_url()).encode(|_, _| Ok(json!({}))).decode(|_, _| Ok(Reply::new("Hi.")));
    let client = client_of(&provider, steadfast::Target::new(mute, "model-1"));
    let error = client.stream("hi").await.expect_err("no streams");
    assert_eq!((code(&error), provider.requests()), ("unsupported_capability", 0));
    assert_eq!(error.to_string(), "mute: model-1 does not take stream; call it without a stream");
}

#[tokio::test(start_paused = true)]
async fn another_target_is_asked_for_what_the_first_cannot_do() {
    let (primary, fallback) =
        (MemoryTransport::http().host("primary.invalid"), MemoryTransport::http().host("second.invalid"));
    fallback.set_otherwise(plainly(&Reply::new("{\"city\": \"Oslo\"}")));
    let first = able_of(&primary, Capabilities::text());
    let client = built(chain(first, able(&fallback), &primary, &fallback));
    let answer = reply(&client, where_is_it()).await;
    assert_eq!((answer.target().index, primary.requests()), (1, 0));
    let client = built(chain(
        able_of(&primary, Capabilities::text()),
        able_of(&fallback, Capabilities::text()),
        &primary,
        &fallback,
    ));
    let error = failure(&client, where_is_it()).await;
    assert_eq!(target_codes(&error), ["unsupported_capability", "unsupported_capability"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_held_to_the_same_contract_when_it_ends() {
    let provider = MemoryTransport::http();
    provider.push(Answer::raw(200).header("content-type", "text/event-stream").body("data: {\"zip\": 4}\n\n"));
    provider.push(Answer::raw(200).header("content-type", "text/event-stream").body("data: {\"city\": \"Oslo\"}\n\n"));
    let client = client_of(&provider, able(&provider));
    let stream = client.stream(where_is_it().reask(2)).await.expect("open");
    let error = stream.into_reply().await.expect_err("it does not fit");
    assert_eq!(code(&error), "schema_mismatch");
    assert_eq!(error.partial().map(Reply::text), Some("{\"zip\": 4}"));
    let answer = client.stream(where_is_it()).await.expect("open").into_reply().await.expect("it fits");
    assert_eq!(answer.json_value(), Some(&json!({"city": "Oslo"})));
    assert_eq!(provider.requests(), 2, "what was shown is not asked for again");
}

#[tokio::test(start_paused = true)]
async fn reask_tells_the_model_what_is_wrong_and_lists_what_failed() {
    let (provider, client) = answering(["{\"zip\": 4}", "Oslo, of course", "{\"city\": \"Oslo\"}"].map(Reply::new));
    let answer = reply(&client, where_is_it().reask(2)).await;
    assert_eq!(answer.json_value(), Some(&json!({"city": "Oslo"})));
    assert_eq!((answer.target().attempts, codes(answer.attempts())), (3, vec!["schema_mismatch", "json_parse_failed"]));
    let again = Next::Retried { after: Duration::ZERO, advised: false };
    assert_eq!(next_of(answer.attempts()), [again, again]);
    let indexes: Vec<_> = answer.attempts().iter().map(|attempt| attempt.index).collect();
    assert_eq!(indexes, [0, 1]);

    let second = sent(&provider, 1);
    assert_eq!(second.history, [Turn::user("Where is it?"), Turn::assistant("{\"zip\": 4}")]);
    assert_eq!(
        second.user.expect("words").text(),
        "Your answer cannot be used. It does not fit:\n- the whole: lacks \"city\"\n- /zip: is number, must be \
         string\n\nAnswer again: the corrected JSON and nothing else."
    );
    let third = sent(&provider, 2);
    assert_eq!(third.history.len(), 4, "the whole conversation");
    assert!(third.user.expect("words").text().contains("It is not JSON (line 1, column 1)."));
}

#[tokio::test(start_paused = true)]
async fn reask_ends_after_so_many_times_with_every_attempt_listed() {
    let (provider, client) = answering(std::iter::repeat_n(Reply::new("no"), 9));
    let error = failure(&client, where_is_it().reask(2)).await;
    assert_eq!((code(&error), provider.requests()), ("json_parse_failed", 3));
    assert_eq!(codes(error.attempts()), ["json_parse_failed"; 3]);
    assert!(error.to_string().contains("3 attempts over"), "{error}");
    // By default the model is not asked again.
    assert_eq!(failure(&client, where_is_it()).await.attempts().len(), 0);
    assert_eq!(provider.requests(), 4);
}

#[tokio::test(start_paused = true)]
async fn reask_takes_its_place_in_the_limiter_and_uses_neither_retries_nor_their_budget() {
    let provider = MemoryTransport::http().host("primary.invalid");
    provider.push(plainly(&Reply::new("no")));
    provider.push(Fault::status(503));
    provider.push(plainly(&Reply::new("{\"city\": \"Oslo\"}")));
    let target = able(&provider)
        .retry(retries(1))
        .retry_budget(RetryBudget::new(secs(60), 1, 0.5))
        .rate_limit(RateLimit::new().requests_per_minute(60).max_concurrent(1).burst(1));
    let client = client_of(&provider, target);
    let answer = reply(&client, where_is_it().reask(1)).await;
    assert_eq!(codes(answer.attempts()), ["json_parse_failed", "server_error"]);
    assert_eq!(answer.target().attempts, 3);
    let waits: Vec<_> = times(&provider).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.iter().all(|wait| *wait >= 1000), "one request a second: {waits:?}");
    let budget = client.primary().retry_budget().expect("a budget");
    assert_eq!((budget.attempts, budget.retries), (3, 1), "the one retry is that of the 503");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_is_not_asked_for_again() {
    let cut = Reply::new("{\"city\"").with_finish_reason(FinishReason::Length);
    let (provider, client) = answering([cut]);
    let error = failure(&client, where_is_it().reask(3)).await;
    assert_eq!((code(&error), provider.requests()), ("json_parse_failed", 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_model_repeats_is_not_printed() {
    let (_, client) = answering(["sk-the-plain-key", "\"sk-the-plain-key\""].map(Reply::new));
    let error = failure(&client, where_is_it()).await;
    assert!(!printed(&error).contains("sk-the-plain-key"), "{error:?}");
    let echo = |value: &Value| Err(format!("{value} will not do"));
    let error = failure(&client, Call::user("hi").json().validate(echo)).await;
    assert!(!printed(&error).contains("sk-the-plain-key"), "{error:?}");
}

#[cfg(feature = "schemars")]
mod extract {
    use super::*;
    use serde::Deserialize;
    use steadfast::schemars::{self, JsonSchema};

    /// An invoice.
    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Invoice {
        number: String,
        /// In cents.
        total: u32,
        #[serde(default)]
        note: Option<String>,
        #[serde(default)]
        lines: Vec<String>,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Shape {
        Circle { radius: f64 },
        Point,
    }

    async fn extracted<T>(client: &steadfast::Client) -> Result<T, steadfast::LlmError>
    where
        T: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
    {
        client.extract::<T>("Read this.").await.map(|extracted| extracted.value)
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_of_a_type_is_asked_for_by_its_schema_and_read() {
        let (provider, client) = answering([Reply::new("{\"number\": \"7\", \"total\": 1250, \"lines\": null}")]);
        let invoice: Invoice = extracted(&client).await.expect("an invoice");
        assert_eq!(invoice, Invoice { number: "7".into(), total: 1250, note: None, lines: Vec::new() });
        let steadfast::chat::Output::Schema(schema) = sent(&provider, 0).output else { panic!("a schema") };
        assert_eq!((&*schema.name, schema.description.as_deref()), ("Invoice", Some("An invoice.")));
        assert_eq!(schema.schema["properties"]["total"]["description"], "In cents.");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_or_an_enum_is_asked_for_within_an_object() {
        let shapes = "{\"value\": [{\"kind\": \"circle\", \"radius\": 2}, {\"kind\": \"point\"}]}";
        let (_, client) = answering([shapes, "{\"value\": {\"kind\": \"circle\"}}"].map(Reply::new));
        let shapes: Vec<Shape> = extracted(&client).await.expect("shapes");
        assert_eq!(shapes, [Shape::Circle { radius: 2.0 }, Shape::Point]);
        let error = extracted::<Shape>(&client).await.expect_err("a circle without a radius");
        assert_eq!(error.to_string(), "primary: schema mismatch: /value lacks \"radius\"");
    }

    #[tokio::test(start_paused = true)]
    async fn what_serde_cannot_read_and_a_refusal_are_mismatches_and_are_asked_for_again() {
        #[derive(Debug, JsonSchema)]
        struct Even(#[allow(dead_code)] u32);
        impl<'de> Deserialize<'de> for Even {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let number = u32::deserialize(from)?;
                let odd = || serde::de::Error::custom("it is odd");
                number.is_multiple_of(2).then_some(Self(number)).ok_or_else(odd)
            }
        }
        let odd = "{\"value\": 3}";
        let (provider, client) = answering([Reply::new(odd), Reply::new(odd), Reply::new("{\"value\": 4}")]);
        let error = extracted::<Even>(&client).await.expect_err("three is odd");
        assert_eq!(
            (code(&error), error.to_string()),
            ("schema_mismatch", "primary: schema mismatch: it is odd".into())
        );
        let even = client.extract::<Even>(Call::user("An even number").reask(1)).await.expect("four");
        assert_eq!((even.value.0, even.reply.target().attempts, provider.requests()), (4, 2, 3));

        let (_, client) = answering([Reply::new("").with_refusal("I cannot.".to_owned())]);
        let error = extracted::<Invoice>(&client).await.expect_err("a refusal");
        assert_eq!(error.to_string(), "primary: schema mismatch: the model declined: I cannot.");
    }
}
