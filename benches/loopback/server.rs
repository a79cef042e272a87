//! The provider: a responder that costs little and always gives the same answers.
//!
//! It runs as a process of its own, so that what is counted in the client's process is the client's. What it answers is
//! said by the address: see [`Work`].

use crate::load::Work;
use std::io::{self, Read, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the model says, over and over.
const SENTENCE: &str = r#"Two of the nine invoices are overdue: \"A-17\" by four days, and B-3 by eleven.\n"#;
/// What it says in a chunk of a stream.
pub(crate) const WORD: &str = " overdue";

/// A completion as `OpenAI` writes it, 1 KB of it.
fn completion() -> String {
    let head = r#"{"id":"chatcmpl-CH7Zk2vTq0dFJXbXg5uWmL9s","object":"chat.completion","created":1760000000,"model":"gpt-4.1-mini-2025-04-14","choices":[{"index":0,"message":{"role":"assistant","content":""#;
    let tail = r#"","refusal":null,"annotations":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":31,"completion_tokens":107,"total_tokens":138,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":null}"#;
    let room = 1024 - head.len() - tail.len();
    let text = SENTENCE.repeat(room / SENTENCE.len()) + &".".repeat(room % SENTENCE.len());
    [head, &text, tail].concat()
}

/// The length of the text in a completion, as a client reads it: without its escapes.
pub(crate) fn text_len() -> usize {
    let body: serde_json::Value = serde_json::from_str(&completion()).expect("the answer is JSON");
    body["choices"][0]["message"]["content"].as_str().map_or(0, str::len)
}

/// A whole answer, head and body.
fn answer() -> String {
    let body = completion();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_7d1f\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// A streamed answer of so many words, each an event of some 300 bytes and an HTTP chunk of its own. Without an end, it
/// stops after the words.
fn stream(words: u32, end: bool) -> String {
    let event = |data: &str| format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8);
    let chunk = |choices: &str, usage: &str| {
        event(&format!(
            r#"{{"id":"chatcmpl-CH7Zk2vTq0dFJXbXg5uWmL9s","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4.1-mini-2025-04-14","service_tier":"default","system_fingerprint":null,"choices":[{choices}],"usage":{usage},"obfuscation":"kB2xQm7"}}"#
        ))
    };
    let choice = |delta: &str, finish: &str| format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#);
    let role = choice(r#"{"role":"assistant","content":"","refusal":null}"#, "null");
    let word = choice(&format!(r#"{{"content":"{WORD}"}}"#), "null");

    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_7d1f\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut stream = head.to_owned() + &chunk(&role, "null");
    stream += &chunk(&word, "null").repeat(words as usize);
    if end {
        stream += &chunk(&choice("{}", "\"stop\""), "null");
        stream += &chunk("", r#"{"prompt_tokens":31,"completion_tokens":107,"total_tokens":138}"#);
        stream += &event("[DONE]");
        stream += "0\r\n\r\n";
    }
    stream
}

/// Serves on a free port, written to standard output, until standard input ends: when the bench dies, so does this.
pub(crate) fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        io::stdout().flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(answer_all(stream));
        }
    })
}

/// Answers each request of a connection until the client closes it. All of them ask for the same work.
async fn answer_all(mut connection: TcpStream) -> io::Result<()> {
    let mut received = Vec::with_capacity(4096);
    let mut answer_bytes = None;
    loop {
        match request_len(&received) {
            Some(length) if length <= received.len() => {
                let bytes = answer_bytes.get_or_insert_with(|| match Work::of_request(&received) {
                    Work::First | Work::Call => answer(),
                    Work::Hold => stream(1, false),
                    Work::Stream { words } => stream(words, true),
                });
                received.drain(..length);
                connection.write_all(bytes.as_bytes()).await?;
            }
            _ if connection.read_buf(&mut received).await? == 0 => return Ok(()),
            _ => {}
        }
    }
}

/// The length of the first request in `received`, once its head is complete.
fn request_len(received: &[u8]) -> Option<usize> {
    let head = received.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let body = received[..head]
        .split(|&byte| byte == b'\n')
        .filter_map(|line| str::from_utf8(line).ok()?.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    Some(head + body)
}
