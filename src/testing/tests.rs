//! Each fault, as a client sees it on its socket.

use super::{Answer, FakeProvider, Fault, Piece};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

const ASKED: &str = r#"{"model":"m-1","messages":[{"role":"user","content":"What is up?"}]}"#;

/// A client that shows every byte.
struct Client(TcpStream);

/// What came back, up to the end of the body or of the connection.
#[derive(Debug)]
struct Seen {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// How the connection ended, when it did before the body was complete.
    broken: Option<io::ErrorKind>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    async fn connect(fake: &FakeProvider) -> io::Result<Self> {
        TcpStream::connect(fake.address()).await.map(Self)
    }

    async fn send(&mut self, path: &str, body: &str) -> io::Result<()> {
        let head = format!("POST {path} HTTP/1.1\r\nhost: fake\r\ncontent-length: {}\r\n\r\n", body.len());
        self.0.write_all(format!("{head}{body}").as_bytes()).await
    }

    async fn ask(&mut self) -> io::Result<Seen> {
        self.send("/v1/chat/completions", ASKED).await?;
        self.read().await
    }

    /// Reads one response; fails when not even its head comes.
    async fn read(&mut self) -> io::Result<Seen> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = find(&bytes, b"\r\n\r\n") {
                break at;
            }
            self.more(&mut bytes).await?;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let mut seen = Seen { status, head, body: bytes.split_off(end + 4), broken: None };
        let length = seen.header("content-length").map(|length| length.parse::<usize>().unwrap_or_default());
        let chunked = seen.header("transfer-encoding").is_some();
        let complete =
            |body: &[u8]| if chunked { body.ends_with(b"0\r\n\r\n") } else { length.is_none_or(|n| body.len() >= n) };
        while !complete(&seen.body) {
            if let Err(error) = self.more(&mut seen.body).await {
                seen.broken = Some(error.kind());
                break;
            }
        }
        Ok(seen)
    }

    async fn more(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self.0.read_buf(bytes).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// How the connection ends, once the server has said all.
    async fn end(&mut self) -> io::ErrorKind {
        let mut rest = Vec::new();
        match self.more(&mut rest).await {
            Ok(()) => panic!("more came: {:?}", String::from_utf8_lossy(&rest)),
            Err(error) => error.kind(),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The answer to one request on a fresh connection.
async fn ask_once(answer: Answer) -> io::Result<Seen> {
    let fake = FakeProvider::openai().then(answer).start().await?;
    Client::connect(&fake).await?.ask().await
}

#[tokio::test]
async fn a_text_is_a_completion_of_the_model_asked_for() -> io::Result<()> {
    let seen = ask_once(Answer::text("Hello there.")).await?;
    let body = seen.json();
    assert_eq!((seen.status, seen.broken), (200, None));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "{}", seen.head);
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["model"], "m-1");
    assert_eq!(body["choices"][0]["message"]["content"], "Hello there.");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["prompt_tokens"], 6);
    assert_eq!(body["usage"]["completion_tokens"], 3);
    assert_eq!(body["usage"]["total_tokens"], 9);
    Ok(())
}

#[tokio::test]
async fn what_a_reply_reports_can_be_chosen() -> io::Result<()> {
    let answer =
        Answer::text("Hel").finish_reason("length").usage(70, 30).model("m-1-2026").header("x-request-id", "r");
    let seen = ask_once(answer).await?;
    let body = seen.json();
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["usage"]["total_tokens"], 100);
    assert_eq!(body["model"], "m-1-2026");
    assert_eq!(seen.head.matches("x-request-id").count(), 1);
    Ok(())
}

#[tokio::test]
async fn without_a_script_it_repeats_what_was_asked() -> io::Result<()> {
    let fake = FakeProvider::openai().start().await?;
    let mut client = Client::connect(&fake).await?;
    let (first, second) = (client.ask().await?, client.ask().await?);
    assert_eq!(first.json()["choices"][0]["message"]["content"], "What is up?");
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
    assert_ne!(first.json()["id"], second.json()["id"]);
    Ok(())
}

#[tokio::test]
async fn failures_speak_the_providers_words() -> io::Result<()> {
    for (fault, status, kind, code) in [
        (Fault::status(503), 503, "server_error", Value::Null),
        (Fault::status(404), 404, "invalid_request_error", json!("model_not_found")),
        (Fault::overloaded(), 503, "service_unavailable_error", json!("server_is_overloaded")),
        (Fault::quota_exhausted(), 429, "insufficient_quota", json!("insufficient_quota")),
        (Fault::unauthorized(), 401, "invalid_request_error", json!("invalid_api_key")),
        (Fault::bad_request("no"), 400, "invalid_request_error", Value::Null),
        (Fault::rate_limited(Duration::from_millis(50)), 429, "requests", json!("rate_limit_exceeded")),
        (Fault::error_in_200("busy", "later"), 200, "server_error", json!("busy")),
    ] {
        let name = fault.to_string();
        let seen = ask_once(fault).await?;
        let error = &seen.json()["error"];
        assert_eq!((seen.status, &error["type"], &error["code"]), (status, &json!(kind), &code), "{name}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{name}");
        assert_eq!(seen.header("retry-after-ms").is_some(), name.starts_with("rate limited"), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_wrong_is_refused_instead_of_answered() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Answer::text("Hi").then_close()).then(Fault::status(503)).start().await?;
    let mut client = Client::connect(&fake).await?;
    client.send("/v1/chat/completions", "{").await?;
    assert_eq!(client.read().await?.json()["error"]["type"], "invalid_request_error");
    client.send("/v1/nowhere", ASKED).await?;
    assert_eq!(client.read().await?.status, 503);
    client.send("/v1/nowhere", ASKED).await?;
    assert_eq!(client.read().await?.status, 404);
    let answered: Vec<_> = fake.journal().into_iter().map(|received| received.answered).collect();
    assert_eq!(answered, ["400 in place of 200 \"Hi\", then closed", "503", "404 in place of 200 echo"]);
    Ok(())
}

#[tokio::test]
async fn raw_answers_are_sent_as_they_are() -> io::Result<()> {
    let seen = ask_once(Answer::raw(299).header("X-Odd", "a").header("x-odd", "b").body("<raw>")).await?;
    assert_eq!((seen.status, seen.text().as_str()), (299, "<raw>"));
    assert_eq!(seen.head, "HTTP/1.1 299 Status\r\nX-Odd: a\r\nx-odd: b\r\ncontent-length: 5");
    let seen = ask_once(Answer::raw(418).json(json!({"a": 1}))).await?;
    assert_eq!((seen.header("content-type"), seen.text().as_str()), (Some("application/json"), r#"{"a":1}"#));
    assert_eq!(ask_once(Answer::raw(204)).await?.head, "HTTP/1.1 204 No Content");
    let seen = ask_once(Fault::html(502)).await?;
    assert_eq!((seen.status, seen.header("content-type")), (502, Some("text/html")));
    let seen = ask_once(Fault::empty()).await?;
    assert_eq!((seen.status, seen.header("content-length")), (200, Some("0")));
    Ok(())
}

#[tokio::test]
async fn the_script_is_played_in_order_over_all_connections() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Fault::status(500)).then(Fault::status(503)).times(2);
    let fake = fake.otherwise(Answer::raw(204)).start().await?;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(Client::connect(&fake).await?.ask().await?.status);
    }
    fake.push(Fault::status(502));
    statuses.push(Client::connect(&fake).await?.ask().await?.status);
    fake.set_otherwise(Answer::raw(504));
    statuses.push(Client::connect(&fake).await?.ask().await?.status);
    assert_eq!(statuses, [500, 503, 503, 204, 502, 504]);
    Ok(())
}

#[tokio::test]
async fn a_rule_answers_by_what_arrived() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Answer::raw(500)).otherwise_with(|received| {
        let fields = (received.path.as_str(), received.reused, received.connection);
        Answer::raw(if fields == ("/ok", true, 1) { 200 } else { 418 })
    });
    let fake = fake.start().await?;
    let mut client = Client::connect(&fake).await?;
    let mut statuses = Vec::new();
    for path in ["/ok", "/ok", "/other"] {
        client.send(path, "").await?;
        statuses.push(client.read().await?.status);
    }
    assert_eq!(statuses, [500, 200, 418]);
    assert_eq!(fake.journal()[1].answered, "200");
    Ok(())
}

#[tokio::test]
async fn the_journal_keeps_what_arrived() -> io::Result<()> {
    let fake = FakeProvider::http().start().await?;
    let mut client = Client::connect(&fake).await?;
    client.send("/a?key=k", r#"{"n":1}"#).await?;
    client.read().await?;
    let chunks = b"PUT /b HTTP/1.1\r\nX-Key: v\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n4;x=y\r\n two\r\n0\r\nt: 1\r\n\r\n";
    for half in chunks.chunks(50) {
        client.0.write_all(half).await?;
    }
    client.read().await?;
    Client::connect(&fake).await?.ask().await?;
    let journal = fake.journal();
    let connections: Vec<_> = journal.iter().map(|received| (received.connection, received.reused)).collect();
    assert_eq!(connections, [(1, false), (1, true), (2, false)]);
    assert_eq!((journal[0].method.as_str(), journal[0].path.as_str()), ("POST", "/a?key=k"));
    assert_eq!(journal[0].json().ok(), Some(json!({"n": 1})));
    assert_eq!((journal[1].method.as_str(), &journal[1].body[..]), ("PUT", &b"one two"[..]));
    assert_eq!(journal[1].header("x-key"), Some("v"));
    assert!(journal[0].at <= journal[1].at && journal[1].at <= journal[2].at);
    assert_eq!(fake.requests(), 3);
    Ok(())
}

#[tokio::test]
async fn delay_comes_before_the_head() -> io::Result<()> {
    let start = Instant::now();
    assert_eq!(ask_once(Fault::delay(Duration::from_millis(40))).await?.status, 200);
    assert!(start.elapsed() >= Duration::from_millis(40));
    Ok(())
}

#[tokio::test]
async fn hang_never_answers() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Fault::hang()).start().await?;
    let mut client = Client::connect(&fake).await?;
    assert!(timeout(Duration::from_millis(30), client.ask()).await.is_err());
    drop(client);
    fake.wait_until_disconnected().await;
    Ok(())
}

#[tokio::test]
async fn reset_before_head_sends_nothing() -> io::Result<()> {
    let error = ask_once(Fault::reset_before_head()).await.err();
    assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::ConnectionReset));
    Ok(())
}

#[tokio::test]
async fn reset_in_body_comes_after_half_of_it() -> io::Result<()> {
    let seen = ask_once(Fault::reset_in_body()).await?;
    assert_eq!(seen.broken, Some(io::ErrorKind::ConnectionReset));
    let announced = seen.header("content-length").and_then(|length| length.parse::<usize>().ok());
    assert_eq!(announced.map(|length| length / 2), Some(seen.body.len()));
    Ok(())
}

#[tokio::test]
async fn truncated_body_ends_after_half_of_it() -> io::Result<()> {
    let seen = ask_once(Fault::truncated_body()).await?;
    assert_eq!(seen.broken, Some(io::ErrorKind::UnexpectedEof));
    assert!(seen.text().starts_with('{'));
    let seen = ask_once(Answer::raw(200).body("0123456789").cut_after(3).chunked()).await?;
    assert_eq!((seen.text().as_str(), seen.broken), ("3\r\n012\r\n", Some(io::ErrorKind::UnexpectedEof)));
    Ok(())
}

#[tokio::test]
async fn an_announced_length_need_not_be_kept() -> io::Result<()> {
    let seen = ask_once(Answer::raw(200).body("short").announce_length(400).then_close()).await?;
    assert_eq!((seen.header("content-length"), seen.text().as_str()), (Some("400"), "short"));
    assert_eq!(seen.broken, Some(io::ErrorKind::UnexpectedEof));
    Ok(())
}

#[tokio::test]
async fn close_on_reuse_closes_a_connection_that_has_served() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Fault::status(500)).then(Fault::close_on_reuse()).start().await?;
    let mut client = Client::connect(&fake).await?;
    assert_eq!(client.ask().await?.status, 500);
    assert_eq!(client.ask().await.err().map(|error| error.kind()), Some(io::ErrorKind::UnexpectedEof));
    assert_eq!(Client::connect(&fake).await?.ask().await?.status, 200);
    assert_eq!(fake.journal()[1].answered, "closed on reuse");
    Ok(())
}

#[tokio::test]
async fn slow_drip_arrives_a_few_bytes_at_a_time() -> io::Result<()> {
    let fake = FakeProvider::http().then(Answer::raw(200).body("0123456789").drip(4, Duration::from_millis(15)));
    let fake = fake.start().await?;
    let start = Instant::now();
    let seen = Client::connect(&fake).await?.ask().await?;
    assert_eq!((seen.text().as_str(), seen.header("content-length")), ("0123456789", Some("10")));
    assert!(start.elapsed() >= Duration::from_millis(30), "two ticks before the last bytes");
    assert_eq!(ask_once(Fault::slow_drip(100, Duration::from_millis(1))).await?.json()["object"], "chat.completion");
    Ok(())
}

#[tokio::test]
async fn pieces_are_written_one_by_one() -> io::Result<()> {
    let pieces = [Piece::from("a"), Piece::pause(Duration::from_millis(20)), Piece::from("bc")];
    let start = Instant::now();
    let seen = ask_once(Answer::raw(200).pieces(pieces.clone()).chunked()).await?;
    assert_eq!(seen.text(), "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n");
    assert!(start.elapsed() >= Duration::from_millis(20));
    let seen = ask_once(Answer::raw(200).pieces(pieces)).await?;
    assert_eq!((seen.header("content-length"), seen.text().as_str()), (Some("3"), "abc"));
    Ok(())
}

#[tokio::test]
async fn endings() -> io::Result<()> {
    let chunked = || Answer::raw(200).body("abc").chunked();
    for (answer, body, broken, end) in [
        (chunked().then_close(), "3\r\nabc\r\n0\r\n\r\n", None, io::ErrorKind::UnexpectedEof),
        (
            chunked().close_without_terminator(),
            "3\r\nabc\r\n",
            Some(io::ErrorKind::UnexpectedEof),
            io::ErrorKind::UnexpectedEof,
        ),
        (chunked().then_reset(), "3\r\nabc\r\n", Some(io::ErrorKind::ConnectionReset), io::ErrorKind::UnexpectedEof),
    ] {
        let name = answer.to_string();
        let fake = FakeProvider::http().then(answer).start().await?;
        let mut client = Client::connect(&fake).await?;
        let seen = client.ask().await?;
        assert_eq!((seen.text().as_str(), seen.broken), (body, broken), "{name}");
        assert_eq!(client.end().await, end, "{name}");
    }
    let fake = FakeProvider::http().then(chunked().then_hang()).start().await?;
    let mut client = Client::connect(&fake).await?;
    client.send("/", "").await?;
    assert!(timeout(Duration::from_millis(30), client.read()).await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_connection() -> io::Result<()> {
    let slow = Duration::from_secs(60);
    let pieces = [Piece::from("a"), Piece::pause(slow)];
    for answer in [
        Fault::hang(),
        Fault::delay(slow),
        Fault::slow_drip(1, slow),
        Answer::raw(200).pieces(pieces),
        Answer::raw(200).then_hang(),
    ] {
        let fake = FakeProvider::openai().then(answer).start().await?;
        let mut client = Client::connect(&fake).await?;
        client.send("/v1/chat/completions", ASKED).await?;
        fake.wait_for_requests(1).await;
        assert_eq!(fake.connections_open(), 1);
        drop(client);
        fake.wait_until_idle().await;
        assert_eq!(fake.connections_open(), 0);
    }
    Ok(())
}

#[tokio::test]
async fn idle_is_not_disconnected() -> io::Result<()> {
    let fake = FakeProvider::openai().start().await?;
    let mut client = Client::connect(&fake).await?;
    client.ask().await?;
    fake.wait_until_idle().await;
    assert_eq!(fake.connections_open(), 1);
    drop(client);
    fake.wait_until_disconnected().await;
    Ok(())
}

#[tokio::test]
async fn a_client_may_ask_for_an_end_of_the_connection() -> io::Result<()> {
    let fake = FakeProvider::http().start().await?;
    let mut client = Client::connect(&fake).await?;
    client.0.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await?;
    assert_eq!(client.read().await?.status, 404);
    assert_eq!(client.end().await, io::ErrorKind::UnexpectedEof);
    Ok(())
}

#[tokio::test]
async fn a_client_may_wait_for_leave_to_send_its_body() -> io::Result<()> {
    let fake = FakeProvider::http().start().await?;
    let mut client = Client::connect(&fake).await?;
    client.0.write_all(b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n").await?;
    assert_eq!(client.read().await?.status, 100);
    client.0.write_all(b"hi").await?;
    assert_eq!(client.read().await?.status, 404);
    assert_eq!(fake.journal()[0].body, "hi");
    Ok(())
}

#[tokio::test]
async fn what_is_not_http_or_too_large_is_refused() -> io::Result<()> {
    let fake = FakeProvider::openai().start().await?;
    let endless = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(200_000));
    for (sent, status) in [
        ("hello\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: 67108865\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n", 413),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
        (endless.as_str(), 431),
    ] {
        let mut client = Client::connect(&fake).await?;
        client.0.write_all(sent.as_bytes()).await?;
        assert_eq!(client.read().await?.status, status, "{}", &sent[..20.min(sent.len())]);
    }
    assert_eq!(fake.requests(), 0);
    Ok(())
}

#[tokio::test]
async fn a_refused_port_refuses_until_it_listens() -> io::Result<()> {
    let down = FakeProvider::http().then(Answer::raw(201)).refused()?;
    let address = down.origin().replace("http://", "");
    let refused = TcpStream::connect(&address).await.err().map(|error| error.kind());
    assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
    let up = down.listen().await?;
    assert_eq!(Client::connect(&up).await?.ask().await?.status, 201);
    Ok(())
}

#[tokio::test]
async fn stop_frees_the_port_and_closes_what_is_open() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Fault::hang()).start().await?;
    let address = fake.address();
    let mut client = Client::connect(&fake).await?;
    client.send("/", "").await?;
    fake.wait_for_requests(1).await;
    fake.stop().await;
    assert_eq!(client.end().await, io::ErrorKind::UnexpectedEof);
    let refused = TcpStream::connect(address).await.err().map(|error| error.kind());
    assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
    Ok(())
}

#[tokio::test]
async fn it_ends_when_it_is_dropped() -> io::Result<()> {
    let fake = FakeProvider::openai().then(Fault::hang()).start().await?;
    let mut client = Client::connect(&fake).await?;
    client.send("/", "").await?;
    fake.wait_for_requests(1).await;
    drop(fake);
    assert_eq!(client.end().await, io::ErrorKind::UnexpectedEof);
    Ok(())
}

#[test]
fn it_runs_on_a_thread_of_its_own() -> io::Result<()> {
    use std::io::{Read, Write};
    let fake = FakeProvider::openai().start_blocking()?;
    let mut stream = std::net::TcpStream::connect(fake.address())?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    assert_eq!(&head, b"HTTP/1.1 404");
    drop(fake);
    // It closes what is open, so this ends.
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[tokio::test]
async fn anthropic_answers_and_fails_in_its_own_words() -> io::Result<()> {
    let fake = FakeProvider::anthropic().then(Answer::text("Hi").usage(7, 2)).then(Fault::overloaded()).start().await?;
    let asked = r#"{"model":"m-1","max_tokens":9,"messages":[{"role":"user","content":"What is up?"}]}"#;
    let mut client = Client::connect(&fake).await?;
    let head = "POST /v1/messages HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
    let mut seen = Vec::new();
    for _ in 0..3 {
        client.0.write_all(format!("{head}content-length: {}\r\n\r\n{asked}", asked.len()).as_bytes()).await?;
        seen.push(client.read().await?);
    }
    let body = seen[0].json();
    assert_eq!(
        (&body["type"], &body["model"], &body["stop_reason"]),
        (&json!("message"), &json!("m-1"), &json!("end_turn"))
    );
    assert_eq!(body["content"][0]["text"], "Hi");
    assert_eq!((&body["usage"]["input_tokens"], &body["usage"]["output_tokens"]), (&json!(7), &json!(2)));
    assert_eq!((seen[1].status, &seen[1].json()["error"]["type"]), (529, &json!("overloaded_error")));
    assert_eq!(seen[1].header("request-id"), seen[1].json()["request_id"].as_str());
    assert_eq!(seen[2].json()["content"][0]["text"], "What is up?");
    Ok(())
}

#[tokio::test]
async fn ollama_answers_and_fails_in_its_own_words() -> io::Result<()> {
    let fake = FakeProvider::ollama().then(Answer::text("Hi").finish_reason("length").usage(0, 2));
    let fake = fake.then(Fault::status(404)).then(Fault::error_in_200("", "not enough memory")).start().await?;
    let asked = r#"{"model":"m-1","stream":false,"messages":[{"role":"user","content":"What is up?"}]}"#;
    let mut client = Client::connect(&fake).await?;
    let mut seen = Vec::new();
    for _ in 0..4 {
        client.send("/api/chat", asked).await?;
        seen.push(client.read().await?.json());
    }
    assert_eq!((&seen[0]["message"]["content"], &seen[0]["done_reason"]), (&json!("Hi"), &json!("length")));
    assert_eq!((seen[0].get("prompt_eval_count"), &seen[0]["eval_count"]), (None, &json!(2)));
    assert_eq!(seen[1], json!({"error": "model 'm-1' not found"}));
    assert_eq!(seen[2], json!({"error": "not enough memory"}));
    assert_eq!(seen[3]["message"]["content"], "What is up?");
    Ok(())
}

#[tokio::test]
async fn responses_are_answered_and_fail_in_their_own_words() -> io::Result<()> {
    let fake = FakeProvider::responses().then(Answer::text("Hi").usage(7, 2));
    let fake = fake.then(Answer::text("H").finish_reason("max_output_tokens"));
    let fake = fake.then(Fault::error_in_200("server_error", "lost")).then(Fault::status(503)).start().await?;
    let list = r#"{"model":"m-1","input":[{"role":"assistant","content":[]},{"role":"user","content":"What?"}]}"#;
    let mut client = Client::connect(&fake).await?;
    let mut seen = Vec::new();
    for asked in [list, list, list, list, r#"{"model":"m-1","input":"What is up?"}"#, r#"{"model":"m-1"}"#] {
        client.send("/v1/responses", asked).await?;
        seen.push(client.read().await?);
    }
    let [hi, cut, failed, down, echo, refused] = &seen[..] else { unreachable!() };
    assert_eq!(hi.json()["output"][0]["content"][0]["text"], "Hi");
    assert_eq!((&hi.json()["status"], &hi.json()["usage"]["total_tokens"]), (&json!("completed"), &json!(9)));
    assert_eq!(
        (&cut.json()["status"], &cut.json()["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!((&failed.json()["status"], &failed.json()["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert_eq!((down.status, &down.json()["error"]["type"]), (503, &json!("server_error")));
    assert_eq!(echo.json()["output"][0]["content"][0]["text"], "What is up?");
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("input")));
    Ok(())
}

#[tokio::test]
async fn azure_wants_credentials_and_a_version_on_the_path_of_a_deployment() -> io::Result<()> {
    let fake = FakeProvider::azure().start().await?;
    let asked = r#"{"model":"m-1","messages":[{"role":"user","content":"What is up?"}]}"#;
    let (v1, deployment) = ("/openai/v1/chat/completions", "/openai/deployments/my%20own/chat/completions");
    let versioned = format!("{deployment}?api-version=2024-10-21");
    let mut client = Client::connect(&fake).await?;
    for (path, header, status, expected) in [
        (v1, "api-key: k", 200, "m-1"),
        (v1, "authorization: Bearer t", 200, "m-1"),
        (v1, "x-nothing: 1", 401, ""),
        (&versioned, "api-key: k", 200, "my own"),
        (deployment, "api-key: k", 404, ""),
        ("/v1/chat/completions", "api-key: k", 404, ""),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\n{header}\r\ncontent-length: {}\r\n\r\n{asked}", asked.len());
        client.0.write_all(head.as_bytes()).await?;
        let seen = client.read().await?;
        assert_eq!(
            (seen.status, seen.json()["model"].as_str().unwrap_or_default()),
            (status, expected),
            "{path} {header}"
        );
        assert!(seen.header("apim-request-id").is_some() && seen.header("x-request-id").is_none(), "{path}");
    }
    fake.push(Fault::rate_limited(Duration::from_millis(1_500)));
    let head = format!("POST {v1} HTTP/1.1\r\napi-key: k\r\ncontent-length: {}\r\n\r\n{asked}", asked.len());
    client.0.write_all(head.as_bytes()).await?;
    let limited = client.read().await?;
    assert_eq!((limited.status, limited.header("retry-after-ms")), (429, Some("1500")));
    assert_eq!(limited.json()["error"]["code"], "429");
    Ok(())
}
