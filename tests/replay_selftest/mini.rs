//! A small honest client of nothing in particular: the body is the text. It retries, falls back, keeps a connection,
//! and follows redirects with its key.

use crate::replay::subject::{CallSpec, Client, Failure, NotConfigured, Outcome, Reason, Setup, Subject};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

pub(crate) struct Mini;

pub(crate) struct MiniClient {
    setup: Setup,
    kept: Mutex<Option<TcpStream>>,
}

impl Subject for Mini {
    type Client = MiniClient;

    fn configure(&self, setup: &Setup) -> Result<MiniClient, NotConfigured> {
        Ok(MiniClient { setup: setup.clone(), kept: Mutex::new(None) })
    }
}

impl Client for MiniClient {
    async fn call(&self, call: CallSpec) -> Outcome {
        let Some(after) = call.cancel_after else { return self.walk().await };
        let cancelled = || Outcome {
            error: Some(Failure { kind: "aborted".to_owned(), ..Failure::default() }),
            ..Outcome::default()
        };
        if after.is_zero() {
            return cancelled();
        }
        timeout(after, self.walk()).await.unwrap_or_else(|_| cancelled())
    }
}

/// A response, as far as it came.
#[derive(Default)]
struct Got {
    status: Option<u16>,
    location: Option<String>,
    body: Vec<u8>,
}

impl MiniClient {
    async fn walk(&self) -> Outcome {
        let mut last = Outcome::default();
        for target in &self.setup.targets {
            last = self.retry(&target.base_url).await;
            if last.ok {
                break;
            }
        }
        last
    }

    async fn retry(&self, base_url: &str) -> Outcome {
        let mut attempts = Vec::new();
        for _ in 0..=self.setup.config.max_retries {
            if !attempts.is_empty() {
                sleep(Duration::from_millis(self.setup.config.base_delay_ms)).await;
            }
            let mut got = Got::default();
            let limit = Duration::from_millis(self.setup.config.timeout_ms);
            let ended = timeout(limit, self.send(base_url, &mut got)).await;
            let text = String::from_utf8_lossy(&got.body).into_owned();
            let code = match (&ended, got.status) {
                (Err(_), _) => "request_timeout",
                (Ok(Err(error)), _) if error.kind() == io::ErrorKind::ConnectionRefused => "connection_failed",
                (Ok(Err(_)), _) => "connection_interrupted",
                (Ok(Ok(())), Some(200)) => {
                    return Outcome { ok: true, delivered_text: text.clone(), text: Some(text), ..Outcome::default() };
                }
                (Ok(Ok(())), _) => "server_error",
            };
            let (status, code) = (got.status.filter(|status| *status != 200), Some(code.to_owned()));
            attempts.push(Outcome {
                delivered_text: text.clone(),
                partial_text: Some(text.clone()),
                error: Some(Failure { code, status, provider_message: Some(text), ..Failure::default() }),
                ..Outcome::default()
            });
        }
        let count = attempts.len();
        let mut last = attempts.pop().unwrap_or_default();
        if let Some(error) = &mut last.error {
            error.attempts = vec![Reason::default(); count];
        }
        last
    }

    async fn send(&self, base_url: &str, got: &mut Got) -> io::Result<()> {
        let kept = self.kept.lock().await.take();
        let mut stream = match kept {
            Some(stream) => stream,
            None => TcpStream::connect(base_url.trim_start_matches("http://")).await?,
        };
        self.exchange(&mut stream, "/", got).await?;
        if let Some((origin, path)) = got.location.take().as_deref().and_then(|url| url[7..].split_once('/')) {
            let mut second = TcpStream::connect(origin).await?;
            return self.exchange(&mut second, &format!("/{path}"), got).await;
        }
        if self.setup.targets.len() == 1 {
            *self.kept.lock().await = Some(stream);
        }
        Ok(())
    }

    async fn exchange(&self, stream: &mut TcpStream, path: &str, got: &mut Got) -> io::Result<()> {
        let key = &self.setup.api_key;
        let request = format!("POST {path} HTTP/1.1\r\nauthorization: {key}\r\ncontent-length: 2\r\n\r\n{{}}");
        stream.write_all(request.as_bytes()).await?;
        let head = until(stream, b"\r\n\r\n").await?;
        got.status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        got.location = header("location").map(str::to_owned);
        if header("transfer-encoding").is_none() {
            let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            return take(stream, length, &mut got.body).await;
        }
        loop {
            let size = usize::from_str_radix(until(stream, b"\r\n").await?.trim(), 16).map_err(io::Error::other)?;
            take(stream, size, &mut got.body).await?;
            until(stream, b"\r\n").await?;
            if size == 0 {
                return Ok(());
            }
        }
    }
}

async fn until(stream: &mut TcpStream, end: &[u8]) -> io::Result<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        take(stream, 1, &mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn take(stream: &mut TcpStream, length: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    let end = bytes.len() + length;
    while bytes.len() < end {
        let mut rest = stream.take(u64::try_from(end - bytes.len()).unwrap_or(u64::MAX));
        if rest.read_buf(bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
