//! The promises, each a function over any [`Subject`].

use crate::subject::{Asked, Raw, Subject};
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::chat::{FinishReason, Reply, Sampling, Turn, Usage};
use steadfast::observe::EventKind;
use steadfast::provider::Provider;
use steadfast::record::Issues;
use steadfast::resilience::Retry;
use steadfast::testing::{Answer, FakeProvider, FakeProviderBuilder, Fault};
use steadfast::{Call, Client, ErrorCode, ErrorKind, LlmError, Target};
use tokio_util::sync::CancellationToken;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Long enough for the redactor to look for it.
pub(crate) const KEY: &str = "key-conformance-0001";

/// A server with this script, and a client of it that tries again so many times.
pub(crate) async fn pair<S: Subject>(
    answers: impl IntoIterator<Item = Answer>,
    retries: u32,
) -> Result<(FakeProvider, Client), Box<dyn Error>> {
    let fake = answers.into_iter().fold(S::fake(), FakeProviderBuilder::then).start().await?;
    let adapter = S::adapter(&fake.base_url(), KEY);
    let retry = Retry::new(retries).base_delay(Duration::from_millis(1));
    let client = Client::builder(Target::new(adapter, S::MODEL).retry(retry)).build()?;
    Ok((fake, client))
}

/// What comes of one answer, without a retry.
async fn once<S: Subject>(answer: Answer) -> Result<Result<Reply, LlmError>, Box<dyn Error>> {
    let (_fake, client) = pair::<S>([answer], 0).await?;
    Ok(client.call("Hello").await)
}

/// What comes of an answer in the protocol's own words; none where the protocol has no such answer.
async fn raw<S: Subject>(raw: Raw) -> Result<Option<Result<Reply, LlmError>>, Box<dyn Error>> {
    Ok(match S::answer(raw) {
        Some(answer) => Some(once::<S>(answer).await?),
        None => None,
    })
}

/// What the server was asked by one call.
async fn asked<S: Subject>(call: Call) -> Result<Asked, Box<dyn Error>> {
    let (fake, client) = pair::<S>([], 0).await?;
    client.call(call).await?;
    Ok(S::asked(&fake.journal()[0]))
}

/// The error of a call that has to fail.
pub(crate) fn failure(outcome: Result<Reply, LlmError>) -> Result<LlmError, Box<dyn Error>> {
    match outcome {
        Ok(reply) => Err(format!("it succeeded: {reply:?}").into()),
        Err(error) => Ok(error),
    }
}

pub(crate) async fn a_text_comes_back_with_all_that_is_told_of_it<S: Subject>() -> Outcome {
    let reply = once::<S>(Answer::text("Hello there.").usage(7, 2).model("m-reported")).await??;
    assert_eq!((reply.text(), reply.finish_reason()), ("Hello there.", FinishReason::Stop));
    assert_eq!(reply.usage().map(|usage| (usage.input, usage.output, usage.total)), Some((7, 2, 9)));
    assert_eq!(reply.model(), S::MODEL_TOLD.then_some("m-reported"));
    assert_eq!((reply.reasoning(), reply.refusal()), (None, None));
    Ok(())
}

pub(crate) async fn a_request_is_identified<S: Subject>() -> Outcome {
    let (_fake, client) = pair::<S>([Answer::text("Hi"), Fault::status(500)], 0).await?;
    let reply = client.call("Hello").await?;
    let error = failure(client.call("Hello").await)?;
    let ids = [reply.provider_request_id(), error.request_id()];
    assert_eq!(ids.map(|id| id.is_some()), [S::REPLY_ID, S::ERROR_ID]);
    assert!(ids[0].is_none() || ids[0] != ids[1]);
    Ok(())
}

pub(crate) async fn everything_that_was_set_is_sent<S: Subject>() -> Outcome {
    let mut sampling = Sampling::new().temperature(0.5).top_p(0.9).max_tokens(64);
    sampling.seed = S::SEED.then_some(7);
    if S::STOP {
        sampling = sampling.stop(["END", "STOP"]);
    }
    let call = Call::user("Bye")
        .system("Be brief.")
        .history([Turn::user("Hi"), Turn::assistant("Hello")])
        .sampling(sampling.clone());
    let said = [(true, "Hi"), (false, "Hello"), (true, "Bye")];
    let expected = Asked {
        model: S::MODEL.to_owned(),
        system: Some("Be brief.".to_owned()),
        turns: said.map(|(user, text)| (user, text.to_owned())).into(),
        sampling,
    };
    assert_eq!(asked::<S>(call).await?, expected);
    Ok(())
}

pub(crate) async fn nothing_is_sent_that_was_not_set<S: Subject>() -> Outcome {
    let expected = Asked {
        model: S::MODEL.to_owned(),
        system: None,
        turns: vec![(true, "Hello".to_owned())],
        sampling: S::required(),
    };
    assert_eq!(asked::<S>(Call::user("Hello")).await?, expected);
    Ok(())
}

pub(crate) async fn turns_of_one_role_in_a_row_are_taken<S: Subject>() -> Outcome {
    let said = [(true, "One"), (true, "Two"), (false, "Three"), (false, "Four"), (true, "Five")];
    let turns = said[..4].iter().map(|(user, text)| if *user { Turn::user(*text) } else { Turn::assistant(*text) });
    let asked = asked::<S>(Call::user("Five").history(turns)).await?;
    assert_eq!(asked.turns, said.map(|(user, text)| (user, text.to_owned())));
    Ok(())
}

pub(crate) async fn extra_fields_come_last<S: Subject>() -> Outcome {
    let (fake, client) = pair::<S>([], 0).await?;
    client.call(Call::user("Hello").extra(S::extra())).await?;
    let body = fake.journal()[0].json()?;
    for (name, value) in S::extra().as_object().ok_or("extra is no object")? {
        assert_eq!(body.get(name), Some(value));
    }
    Ok(())
}

pub(crate) async fn every_finish_reason_has_a_neutral_word<S: Subject>() -> Outcome {
    let mut reasons = S::finish_reasons();
    reasons.push(("brand_new", FinishReason::Other));
    let (_fake, client) = pair::<S>(reasons.iter().map(|(word, _)| Answer::text("Hi").finish_reason(*word)), 0).await?;
    for (word, meant) in reasons {
        let reply = client.call("Hello").await?;
        assert_eq!((reply.text(), reply.finish_reason()), ("Hi", meant), "{word}");
    }
    Ok(())
}

pub(crate) async fn usage_holds_the_parts_within_the_totals<S: Subject>() -> Outcome {
    let Some(outcome) = raw::<S>(Raw::Usage).await? else { return Err("every protocol reports usage".into()) };
    let mut expected = Usage::new(120, 30);
    expected.cached_input = S::PARTS.cached_input.then_some(40);
    expected.cache_write = S::PARTS.cache_write.then_some(10);
    expected.reasoning = S::PARTS.reasoning.then_some(20);
    assert_eq!(outcome?.usage(), Some(&expected));
    Ok(())
}

pub(crate) async fn reasoning_is_kept_apart_from_the_text<S: Subject>() -> Outcome {
    if let Some(outcome) = raw::<S>(Raw::Reasoning).await? {
        let reply = outcome?;
        assert_eq!((reply.text(), reply.reasoning()), ("Done", Some("Hm")));
    }
    Ok(())
}

pub(crate) async fn a_refusal_is_an_answer<S: Subject>() -> Outcome {
    if let Some(outcome) = raw::<S>(Raw::Refusal).await? {
        let reply = outcome?;
        assert_eq!((reply.text(), reply.refusal()), ("", Some("I cannot help with that.")));
    }
    Ok(())
}

pub(crate) async fn a_filter_that_leaves_nothing_is_an_error<S: Subject>() -> Outcome {
    if let Some(outcome) = raw::<S>(Raw::Filtered).await? {
        let error = failure(outcome)?;
        assert_eq!((error.kind(), error.code()), (ErrorKind::Api, Some(ErrorCode::ContentFiltered)), "{error}");
        assert!(!error.is_retryable());
    }
    Ok(())
}

pub(crate) async fn a_filter_that_leaves_text_is_an_answer<S: Subject>() -> Outcome {
    if let Some(outcome) = raw::<S>(Raw::FilteredText).await? {
        let reply = outcome?;
        assert_eq!((reply.text(), reply.finish_reason()), ("Half", FinishReason::ContentFilter));
    }
    Ok(())
}

pub(crate) async fn an_empty_answer_is_an_error_that_is_retried<S: Subject>() -> Outcome {
    let Some(empty) = S::answer(Raw::Empty) else { return Err("every protocol can say nothing".into()) };
    for answer in [empty.clone(), Fault::empty()] {
        let error = failure(once::<S>(answer).await?)?;
        assert_eq!((error.kind(), error.code()), (ErrorKind::Api, Some(ErrorCode::EmptyResponse)), "{error}");
        assert_eq!((error.status(), error.is_retryable()), (Some(200), true));
    }
    let (fake, client) = pair::<S>([empty, Fault::empty(), Answer::text("Hi")], 2).await?;
    assert_eq!((client.call("Hello").await?.text(), fake.requests()), ("Hi", 3));
    Ok(())
}

pub(crate) async fn an_answer_cut_before_its_first_word_is_not_retried<S: Subject>() -> Outcome {
    let Some(cut) = S::answer(Raw::Cut) else { return Ok(()) };
    let (fake, client) = pair::<S>([cut], 2).await?;
    let reply = client.call("Hello").await?;
    assert_eq!((reply.text(), reply.finish_reason(), fake.requests()), ("", FinishReason::Length, 1));
    Ok(())
}

pub(crate) async fn unknown_fields_and_nulls_cost_nothing<S: Subject>() -> Outcome {
    let Some(outcome) = raw::<S>(Raw::Strange).await? else { return Err("every protocol may grow".into()) };
    assert_eq!(outcome?.text(), "Hi");
    Ok(())
}

pub(crate) async fn every_status_has_its_code<S: Subject>() -> Outcome {
    use ErrorCode as Code;
    let table = [
        (400, &[Code::InvalidRequest][..], false),
        (401, &[Code::Authentication], false),
        (403, &[Code::Authorization], false),
        (404, &[Code::NotFound], false),
        (408, &[Code::RequestTimeoutUpstream], true),
        (409, &[Code::Conflict], true),
        (413, &[Code::PayloadTooLarge], false),
        (422, &[Code::InvalidRequest], false),
        (429, &[Code::ProviderRateLimited], true),
        (500, &[Code::ServerError], true),
        (502, &[Code::ServerError], true),
        (503, &[Code::ServerError, Code::Overloaded], true),
        (504, &[Code::ServerError], true),
        (529, &[Code::Overloaded], true),
    ];
    let (_fake, client) = pair::<S>(table.iter().map(|(status, ..)| Fault::status(*status)), 0).await?;
    for (status, codes, retried) in table {
        let error = failure(client.call("Hello").await)?;
        assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(status)), "{error}");
        assert!(error.code().is_some_and(|code| codes.contains(&code)), "{status}: {error:?}");
        assert_eq!(error.is_retryable(), retried, "{status}");
        assert!(error.provider_message().is_some_and(|message| !message.is_empty()), "{status}");
        let snapshot = error.request().ok_or("no snapshot of the request")?;
        assert_eq!((&*snapshot.provider, &*snapshot.model), (S::adapter("http://h", KEY).name(), S::MODEL));
    }
    let error = failure(once::<S>(Fault::unauthorized()).await?)?;
    assert_eq!((error.code(), error.is_retryable()), (Some(S::BAD_KEY), false));
    let error = failure(once::<S>(Fault::bad_request("one of the fields is odd")).await?)?;
    assert_eq!(error.provider_message(), Some("one of the fields is odd"));
    Ok(())
}

pub(crate) async fn an_overload_is_retried<S: Subject>() -> Outcome {
    let (fake, client) = pair::<S>([Fault::overloaded(), Answer::text("Hi")], 1).await?;
    assert_eq!(client.call("Hello").await?.text(), "Hi");
    assert_eq!(fake.requests(), 2);
    Ok(())
}

pub(crate) async fn a_rate_limit_says_how_long_to_wait<S: Subject>() -> Outcome {
    let error = failure(once::<S>(Fault::rate_limited(Duration::from_secs(7))).await?)?;
    assert_eq!((error.code(), error.status()), (Some(ErrorCode::ProviderRateLimited), Some(429)));
    assert_eq!((error.retry_after(), error.is_retryable()), (Some(Duration::from_secs(7)), true));
    Ok(())
}

pub(crate) async fn a_used_up_quota_is_not_retried<S: Subject>() -> Outcome {
    let (fake, client) = pair::<S>([Fault::quota_exhausted()], 2).await?;
    let error = failure(client.call("Hello").await)?;
    assert_eq!((error.code(), error.is_retryable()), (Some(ErrorCode::ProviderQuotaExhausted), false), "{error}");
    assert!(matches!(error.issues(), Some(Issues::Quota { .. })));
    assert_eq!(fake.requests(), 1);
    Ok(())
}

pub(crate) async fn an_error_in_a_success_is_an_error<S: Subject>() -> Outcome {
    let error = failure(once::<S>(Fault::error_in_200(S::SERVER_ERROR, "the model went away")).await?)?;
    assert_eq!((error.kind(), error.code()), (ErrorKind::Api, Some(ErrorCode::ServerError)), "{error}");
    assert_eq!((error.status(), error.is_retryable()), (Some(200), true));
    assert_eq!(error.provider_message(), Some("the model went away"));
    Ok(())
}

pub(crate) async fn what_is_not_the_protocol_is_said_to_be_that<S: Subject>() -> Outcome {
    let error = failure(once::<S>(Fault::html(502)).await?)?;
    assert_eq!((error.code(), error.status()), (Some(ErrorCode::ServerError), Some(502)));
    let json = || Answer::raw(200).header("content-type", "application/json");
    for answer in [Fault::html(200), json().body(r#"{"a":{"b""#), json().body("data: {}\n\n"), json().body("7")] {
        let error = failure(once::<S>(answer).await?)?;
        assert_eq!((error.kind(), error.code()), (ErrorKind::Parse, Some(ErrorCode::ResponseInvalid)), "{error}");
    }
    let error = failure(once::<S>(Fault::truncated_body()).await?)?;
    assert_eq!(error.code(), Some(ErrorCode::ConnectionInterrupted), "{error}");
    Ok(())
}

pub(crate) async fn an_answer_over_the_cap_is_not_read_past_it<S: Subject>() -> Outcome {
    const CAP: u64 = 1_000;
    let text = || Answer::text("x".repeat(2_000));
    for (answer, how) in [
        (text(), "announced"),
        (text().chunked(), "unannounced"),
        // Of what is announced nothing is waited for, and of what is not no more than the cap.
        (Answer::raw(200).header("content-length", "2000").body("{").then_hang(), "announced, then nothing"),
        (Answer::raw(200).chunked().body("x".repeat(2_000)).then_hang(), "unannounced, without an end"),
    ] {
        let fake = S::fake().otherwise(answer).start().await?;
        let target = Target::new(S::adapter(&fake.base_url(), KEY), S::MODEL).retry(Retry::new(2));
        let client = Client::builder(target).max_response_bytes(CAP).build()?;
        let error = failure(client.call("Hello").await)?;
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Parse, Some(ErrorCode::ResponseTooLarge)),
            "{how}: {error}"
        );
        assert_eq!(error.issues(), Some(&Issues::TooLarge { limit: CAP }), "{how}");
        assert_eq!((error.is_retryable(), fake.requests()), (false, 1), "{how}");
        fake.wait_until_idle().await; // the connection is not kept for what is left of it
    }
    Ok(())
}

pub(crate) async fn no_redirect_takes_a_secret_to_another_origin<S: Subject>() -> Outcome {
    let other = FakeProvider::http().otherwise(Answer::raw(200).body("{}")).start().await?;
    for status in [301, 302, 303, 307, 308] {
        let away = Answer::raw(status).header("location", format!("{}/elsewhere", other.origin()));
        let (fake, client) = pair::<S>([away.clone()], 2).await?;
        let error = failure(client.call("Hello").await)?;
        assert_eq!((error.code(), error.status()), (Some(ErrorCode::UnexpectedStatus), Some(status)), "{error}");
        assert!(error.to_string().contains(&other.origin()), "{error}");
        assert_eq!((fake.requests(), other.requests()), (1, 0), "{status}");
    }

    // A client of the user's own may follow. That is told.
    let away = Answer::raw(307).header("location", format!("{}/elsewhere", other.origin()));
    let fake = S::fake().otherwise(away).start().await?;
    let target = Target::new(S::adapter(&fake.base_url(), KEY), S::MODEL).retry(Retry::new(0));
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let client = Client::builder(target)
        .http_client(reqwest::Client::new())
        .on_event(move |event| {
            if let EventKind::Redirected { to } = &event.kind {
                tell.lock().expect("not poisoned").push(to.clone());
            }
        })
        .build()?;
    failure(client.call("Hello").await)?;
    assert_eq!(other.requests(), 1);
    assert_eq!(*told.lock().expect("not poisoned"), [other.origin()]);
    Ok(())
}

pub(crate) async fn what_a_model_cannot_do_is_refused_before_anything_is_sent<S: Subject>() -> Outcome {
    let Some((model, call, capability)) = S::unsupported() else { return Ok(()) };
    let (fake, client) = pair::<S>([], 2).await?;
    let error = failure(client.call(call.model(model)).await)?;
    let expected = (ErrorKind::InvalidParams, Some(ErrorCode::UnsupportedCapability));
    assert_eq!((error.kind(), error.code()), expected, "{error}");
    let named = Issues::Capability { capability: capability.to_owned(), model: model.to_owned() };
    assert_eq!(error.issues(), Some(&named));
    assert!(error.to_string().contains(capability) && error.to_string().contains(model), "{error}");
    assert_eq!(fake.requests(), 0);
    Ok(())
}

pub(crate) async fn a_cancelled_call_leaves_no_connection<S: Subject>() -> Outcome {
    let (fake, client) = pair::<S>([Fault::hang()], 2).await?;
    let token = CancellationToken::new();
    let call = client.call(Call::user("Hello").cancel_on(token.clone()));
    let cancel = async {
        fake.wait_for_requests(1).await;
        token.cancel();
    };
    let (outcome, ()) = tokio::join!(call, cancel);
    assert_eq!(outcome.map_err(|error| error.kind()).err(), Some(ErrorKind::Aborted));
    fake.wait_until_idle().await;
    assert_eq!((fake.connections_open(), fake.requests()), (0, 1));
    Ok(())
}

pub(crate) async fn the_key_is_in_nothing_that_is_printed<S: Subject>() -> Outcome {
    let (fake, client) = pair::<S>([Fault::bad_request(format!("the key {KEY} is odd"))], 0).await?;
    let error = failure(client.call("Hello").await)?;
    let adapter = S::adapter(&fake.base_url(), KEY);
    let printed = [
        format!("{error} {error:?} {error:#?}"),
        serde_json::to_string(&error)?,
        format!("{adapter:?} {adapter:#?} {:?}", adapter.auth()),
        format!("{client:?} {client:#?}"),
    ];
    for printed in &printed {
        assert!(!printed.contains(KEY), "{printed}");
    }
    assert!(error.provider_message().is_some_and(|message| message.contains("REDACTED")), "{error}");
    Ok(())
}

/// Asynchronous like the others, so that one macro makes them all.
#[allow(clippy::unused_async)]
pub(crate) async fn a_bad_base_url_is_found_before_the_first_call<S: Subject>() -> Outcome {
    for url in ["nonsense", "ftp://host", "http://user:pass-word@"] {
        let target = Target::new(S::adapter(url, KEY), S::MODEL);
        let told = Client::builder(target).build().err().ok_or("it was built")?.to_string();
        assert!(told.contains("base_url") && !told.contains("pass-word"), "{told}");
    }
    Ok(())
}
