//! No key, password or cookie reaches anything that can be printed.

use super::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bytes::Bytes;
use futures_core::future::BoxFuture;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use steadfast::chat::{Reply, Request};
use steadfast::http::{HeaderMap, StatusCode};
use steadfast::provider::{
    Anthropic, Auth, Authorize, Authorized, Credential, CredentialSource, EncodeContext, Failure, Gemini, Head,
    HttpRequest, Ollama, OpenAi, OpenAiCompatible, Provider, RulePack, TransportFault,
};
use steadfast::record::RequestSnapshot;
use steadfast::testing::{Answer, FakeProvider, Fault, MemoryTransport};
use steadfast::transport::{BoxFuture as Sending, Response, Transport, TransportError};
use steadfast::{Call, CaptureBodies, Client, LlmError, Target};

/// A key with characters that every encoding writes differently.
const KEY: &str = r#"sk-live/A+b\c"d~e%f=="#;

/// Every form in which it may be echoed.
fn forms(secret: &str) -> Vec<String> {
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let json = serde_json::Value::from(secret).to_string();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json).to_owned();
    vec![
        secret.to_owned(),
        json.replace('/', "\\/"),
        json,
        percent.replace("%2F", "%2f").replace("%2B", "%2b").replace("%5C", "%5c").replace("%3D", "%3d"),
        percent,
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        STANDARD.encode(secret).trim_end_matches('=').to_owned(),
        URL_SAFE.encode(secret).trim_end_matches('=').to_owned(),
    ]
}

/// That none of the secrets, in none of their forms, is in the text; not even a piece that one could go on from.
fn assert_clean(text: &str, secrets: &[&str], place: &str) {
    // JSON writes what is printed once more in its own words.
    let unescaped = text.replace("\\\\", "\\").replace("\\\"", "\"");
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        for text in [text, &unescaped] {
            if let Some(at) = text.find(&form) {
                panic!(
                    "{place}: {form} is in …{}…",
                    &text[at.saturating_sub(60)..(at + form.len() + 20).min(text.len())]
                );
            }
        }
    }
}

fn keyed(provider: &MemoryTransport) -> Target {
    Target::new(OpenAiCompatible::new(provider.base_url()).api_key(KEY), "model-1").name("keyed").retry(retries(1))
}

#[tokio::test(start_paused = true)]
async fn a_key_is_sent_and_not_told() {
    let provider = memory().otherwise(Fault::status(500));
    let error = failure(&client_of(&provider, keyed(&provider)), "hi").await;
    let sent = provider.journal()[0].header("authorization").map(str::to_owned);
    assert_eq!(sent, Some(format!("Bearer {KEY}")));
    assert_clean(&printed(&error), &[KEY], "an error");
    let headers = &error.request().expect("sent").headers;
    assert!(!headers.contains_key("authorization"), "{headers:?}");
    assert_eq!(headers.get("content-type").map(String::as_str), Some("application/json"));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_provider_echoes_is_taken_out_wherever_it_stands() {
    for form in forms(KEY) {
        let said = format!("Incorrect API key provided: {form}. You can find it in your account.");
        let error = |inner: serde_json::Value| Answer::raw(401).json(json!({ "error": inner }));
        let filtered = json!({"code": "content_filter", "message": "m", "metadata": {"reasons": [form.clone()]}});
        for (place, answer) in [
            ("the message", error(json!({"message": said}))),
            ("the code", error(json!({"message": "m", "code": form}))),
            ("the type", error(json!({"message": "m", "type": form}))),
            ("a filter's categories", error(filtered)),
            ("plain text", Answer::raw(401).header("content-type", "text/plain").body(said.clone())),
            ("a page", Answer::raw(502).header("content-type", "text/html").body(format!("<html>{said}</html>"))),
            ("a 200", Answer::raw(200).json(json!({"error": {"message": said, "code": form}}))),
            ("a 200 that is no JSON", Answer::raw(200).body(said.clone())),
            ("JSON of another shape", Answer::raw(200).json(json!({"choices": form}))),
            ("the request id", Fault::status(500).header("x-request-id", form.replace('\\', "%5C"))),
            ("a cookie", Fault::status(500).header("set-cookie", format!("session={form}"))),
            ("any header", Fault::status(500).header("x-echo", &form)),
            ("the media type", Answer::raw(500).header("content-type", format!("text/{form}")).body("<x>")),
            ("a redirect", Answer::raw(302).header("location", format!("http://elsewhere.invalid/?k={form}"))),
        ] {
            let provider = memory().otherwise(answer);
            let error = failure(&client_of(&provider, keyed(&provider)), "hi").await;
            assert_clean(&printed(&error), &[KEY], place);
            if place == "the message" {
                let says = error.provider_message().expect("a message");
                assert!(says.contains("REDACTED") && says.ends_with("in your account."), "{says}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_key_at_the_end_of_what_is_kept_is_taken_out_too() {
    for shift in 0..KEY.len() {
        // The kept message is 2,048 bytes long: the key lies across its end.
        let said = format!("{}{KEY}{}", "x".repeat(2_048 - shift), "y".repeat(500));
        for answer in [
            Answer::raw(500).json(json!({"error": {"message": said}})),
            Answer::raw(500).header("content-type", "text/plain").body(said.clone()),
        ] {
            let provider = memory().otherwise(answer);
            let error = failure(&client_of(&provider, keyed(&provider)), "hi").await;
            let text = printed(&error);
            assert!(!text.contains(&KEY[..8]), "{shift}: …{}", &text[text.find(&KEY[..8]).unwrap_or(0)..][..40]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_in_what_was_sent_is_taken_out_of_its_snapshot() {
    let provider = memory().otherwise(Fault::status(500));
    let client = client_of(&provider, keyed(&provider));
    let call = Call::user(format!("why is {KEY} wrong?")).extra(json!({"api_key": KEY, "nested": [{"k": KEY}]}));
    let error = failure(&client, call).await;
    assert!(String::from_utf8_lossy(&provider.journal()[0].body).contains("sk-live"), "it is sent as it is");
    assert_clean(&printed(&error), &[KEY], "a body");
    let body = error.request().and_then(RequestSnapshot::body_json).expect("still JSON");
    assert_eq!(
        (&body["api_key"], &body["messages"][0]["content"]),
        (&json!("REDACTED"), &json!("why is REDACTED wrong?"))
    );
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_call_are_as_secret_as_the_targets() {
    let secrets =
        ["own-authorization-1", "own-api-key-123456", "own-cookie-1234567", "own-token-12345678", "own-proxy-12345678"];
    let [authorization, api_key, cookie, token, proxy] = secrets;
    let echo = Fault::bad_request(format!("not accepted: {}", secrets.join(", ")));
    let provider = memory().otherwise(echo);
    let call = Call::user("hi")
        .header("authorization", format!("Bearer {authorization}"))
        .header("x-goog-api-key", api_key)
        .header("cookie", cookie)
        .header("x-amz-security-token", token)
        .header("proxy-authorization", format!("Basic {proxy}"))
        .header("x-tenant", "blue")
        .header("traceparent", "00-abc-def-01");
    assert_clean(&format!("{call:?}{call:#?}"), &secrets, "the call itself");
    let error = failure(&client_of(&provider, keyed(&provider)), call).await;
    let sent = &provider.journal()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer own-authorization-1"), "the call's own wins");
    assert_clean(&printed(&error), &[&secrets[..], &[KEY]].concat(), "an error");
    let headers = &error.request().expect("sent").headers;
    assert_eq!(headers.get("x-tenant").map(String::as_str), Some("REDACTED"), "a name outside the list");
    assert_eq!(headers.get("traceparent").map(String::as_str), Some("00-abc-def-01"));
    for absent in ["authorization", "x-goog-api-key", "cookie", "x-amz-security-token", "proxy-authorization"] {
        assert!(!headers.contains_key(absent), "{absent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_header_that_is_not_ascii_is_taken_out_of_echoes_too() {
    let secret = "schlüssel-geheim-1";
    let provider = memory().otherwise(Fault::bad_request(format!("not accepted: {secret}")));
    let call = Call::user("hi").header("x-api-key", secret);
    let error = failure(&client_of(&provider, keyed(&provider)), call).await;
    assert_clean(&printed(&error), &[secret], "an error");
}

#[tokio::test(start_paused = true)]
async fn user_info_and_query_values_of_a_url_are_taken_out() {
    let (password, query, signature) = ("p@ss-word-123", "query-key-12345", "signature-12345");
    let url = format!("http://someone:p%40ss-word-123@memory.invalid/v1?api_key={query}&sig={signature}&model=kept");
    let echo = format!(
        "called with {password}, {query}, {signature}, p%40ss-word-123, {}",
        STANDARD.encode(format!("someone:{password}"))
    );
    let provider = memory().otherwise(Fault::bad_request(echo));
    let adapter = OpenAiCompatible::new(&url);
    let secrets = [password, query, signature, "p%40ss-word-123", "someone:p@ss-word-123"];
    let client = client_of(&provider, Target::new(adapter, "m").retry(retries(0)));
    let error = failure(&client, "hi").await;
    assert_clean(&printed(&error), &secrets, "an error");
    let told = &error.request().expect("sent").url;
    assert!(told.contains("memory.invalid/v1/chat/completions") && told.contains("model=kept"), "{told}");
    assert!(told.contains("api_key=REDACTED") && told.contains("sig=REDACTED"), "{told}");
}

#[test]
fn nothing_that_holds_a_secret_prints_it() {
    let url = "http://someone:pass-word-123@memory.invalid/v1?api_key=query-key-12345";
    let secrets = [KEY, "pass-word-123", "query-key-12345", "header-key-1234"];
    let provider = || OpenAiCompatible::new(url).api_key(KEY).header("x-api-key", "header-key-1234");
    let openai = || OpenAi::new(KEY).base_url(url);
    let target = || Target::new(provider(), "m").name("keyed");
    let builder = || Client::builder(target()).fallback(Target::new(openai(), "gpt-5-mini"));
    let client = builder().transport(memory()).build().expect("right");
    let error =
        Client::builder(Target::new(OpenAi::new(format!("{KEY}\n")).base_url(&url.replace("http", "ftp")), "m"))
            .build()
            .expect_err("wrong");
    let auth = Auth::bearer(KEY.to_owned().into()).expect("a key");
    let query = Auth::query("key", KEY.to_owned().into()).expect("a key");
    let credential = Credential::new(KEY);
    let authorized = Authorized::new([KEY.to_owned().into()]);
    let mut out = String::new();
    macro_rules! print {
        ($($value:expr),+ $(,)?) => {$( _ = writeln!(out, "{:?}\n{:#?}", $value, $value); )+};
    }
    let (request, cx) = (Request::user(KEY), EncodeContext::new("m"));
    let mut http = provider().encode(&request, &cx).expect("encoded");
    http.headers.insert("authorization", format!("Bearer {KEY}").parse().expect("a value"));
    http.url.query_pairs_mut().append_pair("any-name", KEY);
    let mut cookies = HeaderMap::new();
    cookies.insert("set-cookie", format!("session={KEY}").parse().expect("a value"));
    let head = Head::new(StatusCode::OK, cookies);
    print!(http, head);
    print!(Anthropic::new(KEY).base_url(url), Gemini::new(KEY).base_url(url), Ollama::new().base_url(url));
    print!(
        provider(),
        openai(),
        target(),
        builder(),
        client,
        client.primary(),
        error,
        auth,
        query,
        credential,
        authorized
    );
    _ = writeln!(out, "{error}\n{}", LlmError::from(error.clone()));
    if let Auth::Header(header) = &auth {
        print!(header, header.value(), header.secret());
    }
    let clones = (client.clone(), provider().clone(), builder());
    print!(clones);
    assert_clean(&out, &secrets, "Debug");
    assert!(out.contains("memory.invalid"), "what is no secret is told");
}

#[tokio::test(start_paused = true)]
async fn a_chain_keeps_the_keys_of_all_its_targets() {
    let other = "another-key-98765";
    let (primary, fallback) = (primary(), fallback());
    for (provider, key) in [(&primary, KEY), (&fallback, other)] {
        provider.set_otherwise(Fault::bad_request(format!("bad key {key}")));
    }
    let second = Target::new(OpenAiCompatible::new(fallback.base_url()).api_key(other), "m").name("fallback");
    let first = Target::new(OpenAiCompatible::new(primary.base_url()).api_key(KEY), "m").name("primary");
    let error = failure(&built(chain(first, second, &primary, &fallback)), "hi").await;
    assert_eq!(error.targets().len(), 2);
    assert_clean(&printed(&error), &[KEY, other], "a chain");
}

#[tokio::test(start_paused = true)]
async fn events_and_replies_hold_no_key() {
    let log = Arc::new(Mutex::new(String::new()));
    let keep = Arc::clone(&log);
    let echo = || Fault::status(500).json(json!({"error": {"message": format!("bad key {KEY}")}}));
    let provider = memory().then(echo()).then(Answer::text("ok")).otherwise(echo());
    let client = built(Client::builder(keyed(&provider)).transport(provider.clone()).on_event(move |event| {
        let mut log = keep.lock().expect("not poisoned");
        _ = writeln!(log, "{event:?}\n{event:#?}\n{}", serde_json::to_string(event).expect("serializable"));
    }));
    let reply = reply(&client, "hi").await;
    assert_clean(&format!("{reply:?}{:?}", reply.attempts()), &[KEY], "a reply");
    assert_clean(&serde_json::to_string(&reply.attempts()).expect("serializable"), &[KEY], "its history");
    failure(&client, "hi").await;
    let log = log.lock().expect("not poisoned");
    assert!(log.contains("attempt_failed"), "{log}");
    assert_clean(&log, &[KEY], "events");
}

/// A transport whose errors speak of the key, three causes deep.
struct Indiscreet;

#[derive(Debug)]
struct Deep(String, Option<Box<Deep>>);

impl std::fmt::Display for Deep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Deep {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.1.as_deref().map(|deeper| deeper as _)
    }
}

impl Transport for Indiscreet {
    fn send(&self, _: HttpRequest) -> Sending<'_, Result<Response, TransportError>> {
        let deepest = Deep(format!("sent authorization: Bearer {KEY}"), None);
        let middle = Deep("the middle".into(), Some(Box::new(deepest)));
        let error = Deep(format!("POST http://h/?key={}", forms(KEY)[4]), Some(Box::new(middle)));
        Box::pin(async { Err(TransportError::new(TransportFault::Interrupted, error)) })
    }
}

#[tokio::test(start_paused = true)]
async fn causes_below_the_client_are_cleaned_to_their_bottom() {
    let target = Target::new(OpenAiCompatible::new("http://h/v1").api_key(KEY), "m").retry(retries(0));
    let error = failure(&built(Client::builder(target).transport(Indiscreet)), "hi").await;
    assert_eq!(code(&error), "connection_interrupted");
    let text = printed(&error);
    assert_clean(&text, &[KEY], "a cause");
    assert!(text.contains("the middle") && text.contains("sent authorization: Bearer REDACTED"), "{text}");
}

/// An adapter with other credentials.
struct With(OpenAiCompatible, Auth);

impl Provider for With {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn encode(&self, request: &Request, cx: &EncodeContext<'_>) -> Result<HttpRequest, LlmError> {
        self.0.encode(request, cx)
    }
    fn decode<'a>(&self, head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
        self.0.decode(head, body)
    }
    fn rules(&self) -> &RulePack {
        self.0.rules()
    }
    fn auth(&self) -> &Auth {
        &self.1
    }
}

struct Fetched;

impl CredentialSource for Fetched {
    fn fetch(&self) -> BoxFuture<'_, Result<Credential, LlmError>> {
        Box::pin(async { Ok(Credential::new(KEY)) })
    }
}

struct Signed;

impl Authorize for Signed {
    fn authorize<'a>(
        &'a self,
        request: &'a mut HttpRequest,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Authorized, LlmError>> {
        request.url.query_pairs_mut().append_pair("token", KEY);
        Box::pin(async { Ok(Authorized::new([KEY.to_owned().into()])) })
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_of_every_sort_are_sent_and_not_told() {
    let header = Auth::header("x-goog-api-key".parse().expect("a name"), KEY.to_owned().into()).expect("a key");
    for (sort, auth) in [
        ("a header", header),
        ("a query", Auth::query("key", KEY.to_owned().into()).expect("a key")),
        ("a source", Auth::bearer_from(Fetched)),
        ("a signature", Auth::Custom(Arc::new(Signed))),
    ] {
        let echo = forms(KEY).join(" and ");
        let provider = memory().otherwise(Fault::bad_request(format!("you sent {echo}")));
        let adapter = With(OpenAiCompatible::new(provider.base_url()), auth);
        let client = client_of(&provider, Target::new(adapter, "m").retry(retries(0)));
        let error = failure(&client, "hi").await;
        let seen = &provider.journal()[0];
        let values = seen.headers.values().filter_map(|value| value.to_str().ok());
        assert!(values.chain([seen.path.as_str()]).any(|text| text.contains("sk-live")), "{sort}: it was sent");
        assert_clean(&printed(&error), &[KEY], sort);
        assert_clean(&format!("{client:?}"), &[KEY], sort);
    }
}

#[tokio::test]
async fn what_a_socket_client_says_of_its_failures_holds_no_url() -> std::io::Result<()> {
    let down = FakeProvider::refused()?;
    let url = down.base_url().replace("http://", "http://someone:pass-word-123@");
    let adapter = OpenAiCompatible::new(format!("{url}?api_key=query-key-12345")).api_key(KEY);
    let error = failure(&built(Client::builder(Target::new(adapter, "m").retry(retries(0)))), "hi").await;
    assert_eq!(code(&error), "connection_failed");
    assert!(std::error::Error::source(&error).is_some());
    assert_clean(&printed(&error), &[KEY, "pass-word-123", "query-key-12345"], "a cause");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_short_key_is_not_searched_for() {
    let provider = memory().otherwise(Fault::bad_request("the list is EMPTY"));
    let target = Target::new(OpenAiCompatible::new(provider.base_url()).api_key("EMPTY"), "m").retry(retries(0));
    let error = failure(&client_of(&provider, target), "hi").await;
    assert_eq!(error.provider_message(), Some("the list is EMPTY"));
    assert!(!error.request().expect("sent").headers.contains_key("authorization"));
}

#[tokio::test(start_paused = true)]
async fn the_users_own_hook_sees_bodies_and_messages_before_they_are_kept() {
    let provider = memory().otherwise(Fault::bad_request("no such customer: Jane Doe"));
    let client = |panics: bool| {
        built(Client::builder(keyed(&provider)).transport(provider.clone()).redact(move |text| {
            assert!(!text.contains("sk-live"), "keys are out already");
            assert!(!panics, "a bug in the hook");
            *text = text.replace("Jane Doe", "[name]");
        }))
    };
    let error = failure(&client(false), format!("Who is Jane Doe? {KEY}").as_str()).await;
    let text = printed(&error);
    assert!(text.contains("no such customer: [name]") && text.contains("Who is [name]?"), "{text}");
    assert!(!text.contains("Jane Doe"), "{text}");
    let text = printed(&failure(&client(true), "Who is Jane Doe?").await);
    assert!(!text.contains("Jane Doe"), "what a hook that panics wanted to take out is not kept: {text}");
}

#[tokio::test(start_paused = true)]
async fn bodies_are_kept_up_to_a_cap_or_never() {
    let provider = memory().otherwise(Fault::status(500));
    let words = "é".repeat(100_000);
    let error = |builder: steadfast::ClientBuilder| {
        let (client, words) = (built(builder.transport(provider.clone())), words.clone());
        async move { failure(&client, words).await }
    };
    let kept = error(Client::builder(target(&provider))).await;
    let body = kept.request().and_then(|request| request.body.clone()).expect("kept");
    assert!(body.is_truncated() && (65_530..=65_536).contains(&body.bytes().len()), "{}", body.bytes().len());
    assert!(std::str::from_utf8(body.bytes()).is_ok(), "cut between two characters");
    assert_eq!(serde_json::to_value(&kept).expect("json")["request"]["body_truncated"], true);
    assert!(format!("{kept:?}").len() < 4_096, "Debug prints no body");
    assert!(!format!("{kept:?}{kept}").contains("éé"));

    let short = error(Client::builder(target(&provider)).capture_limit(10)).await;
    assert_eq!(short.request().and_then(|request| request.body.as_ref()).map(|body| body.bytes().len()), Some(10));
    let none = error(Client::builder(target(&provider)).capture_bodies(CaptureBodies::Never)).await;
    assert!(none.request().is_some_and(|request| request.body.is_none()));
}

#[tokio::test(start_paused = true)]
async fn the_user_may_add_to_the_headers_that_are_kept_but_not_secret_ones() {
    let provider = memory().otherwise(Fault::status(500));
    let builder = Client::builder(keyed(&provider)).capture_header("x-tenant").capture_header("authorization");
    let client = built(builder.transport(provider.clone()));
    let error = failure(&client, Call::user("hi").header("x-tenant", "blue").request_id("call-1")).await;
    let headers = &error.request().expect("sent").headers;
    assert_eq!(headers.get("x-tenant").map(String::as_str), Some("blue"));
    assert_eq!(headers.get("x-client-request-id").map(String::as_str), Some("call-1"));
    assert!(!headers.contains_key("authorization"));
}
