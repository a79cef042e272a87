//! The provider: a responder that costs little and always gives the same answer.
//!
//! It runs as a process of its own, so that what is counted in the client's process is the client's.

use std::io::{self, Read, Write};
use std::sync::LazyLock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the model says, over and over.
const SENTENCE: &str = "Two of the nine invoices are overdue: \\\"A-17\\\" by four days, and B-3 by eleven.\\n";

/// The answer's body: a completion as `OpenAI` writes it, 1 KB of it.
static BODY: LazyLock<String> = LazyLock::new(|| {
    let head = r#"{"id":"chatcmpl-CH7Zk2vTq0dFJXbXg5uWmL9s","object":"chat.completion","created":1760000000,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"message":{"role":"assistant","content":""#;
    let tail = r#"","refusal":null,"annotations":[]},"finish_reason":"stop"}],"usage":{"prompt_tokens":31,"completion_tokens":107,"total_tokens":138,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":null}"#;
    let room = 1024 - head.len() - tail.len();
    let text: String = SENTENCE.repeat(room / SENTENCE.len()) + &".".repeat(room % SENTENCE.len());
    [head, &text, tail].concat()
});

/// The length of the text in every answer, as a client reads it: without its escapes.
pub(crate) fn text_len() -> usize {
    let body: serde_json::Value = serde_json::from_str(&BODY).expect("the answer is JSON");
    body["choices"][0]["message"]["content"].as_str().map_or(0, str::len)
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
        println!("http://{}/v1/chat/completions", listener.local_addr()?);
        io::stdout().flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(answer_all(stream));
        }
    })
}

/// Answers each request of a connection until the client closes it.
async fn answer_all(mut stream: TcpStream) -> io::Result<()> {
    let length = BODY.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_7d1f\r\ncontent-length: {length}\r\n\r\n{}",
        *BODY
    );
    let mut received = Vec::with_capacity(4096);
    loop {
        match request_len(&received) {
            Some(length) if length <= received.len() => {
                received.drain(..length);
                stream.write_all(answer.as_bytes()).await?;
            }
            _ if stream.read_buf(&mut received).await? == 0 => return Ok(()),
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
