//! One connection: bytes in and out, and an eye on the peer while nothing is written.

use super::http1::{self, Framing, MAX_BODY, MAX_HEAD, Request, Unreadable};
use bytes::{Buf, Bytes, BytesMut};
use http::header;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What was written gets so long to arrive before a reset overtakes it.
const BEFORE_RESET: Duration = Duration::from_millis(20);
/// A refused request is read on for so long, so that the refusal is not lost to a reset.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// Read, not yet used.
    buffer: BytesMut,
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum NoRequest {
    Gone,
    Unreadable(Unreadable),
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<Unreadable> for NoRequest {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable(unreadable)
    }
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Each write is to travel by itself. Where the option is refused, it still arrives.
        let _ = stream.set_nodelay(true);
        Self { stream, buffer: BytesMut::new() }
    }

    /// Waits until a request begins to arrive.
    pub(super) async fn first_byte(&mut self) -> io::Result<()> {
        while self.buffer.is_empty() {
            self.fill().await?;
        }
        Ok(())
    }

    /// Reads one request, whole.
    pub(super) async fn request(&mut self) -> Result<Request, NoRequest> {
        let head = self.until(b"\r\n\r\n", Unreadable { status: 431, why: "the head is too large" }).await?;
        let (mut request, framing) = http1::parse_head(&head)?;
        if request.headers.get(header::EXPECT).is_some_and(|expect| expect.as_bytes() == b"100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        request.body = match framing {
            Framing::Length(length) => self.take(length).await?,
            Framing::Chunked => self.chunks().await?,
        };
        Ok(request)
    }

    async fn chunks(&mut self) -> Result<Bytes, NoRequest> {
        let long = Unreadable { status: 400, why: "a line of the chunked body is too long" };
        let mut body = BytesMut::new();
        loop {
            let size = http1::parse_chunk_size(&self.until(b"\r\n", long).await?)?;
            if size == 0 {
                break;
            }
            if body.len() + size > MAX_BODY {
                return Err(Unreadable::too_large("the body is too large").into());
            }
            body.extend_from_slice(&self.take(size).await?);
            if !self.until(b"\r\n", long).await?.is_empty() {
                return Err(Unreadable { status: 400, why: "a chunk is longer than it said" }.into());
            }
        }
        let mut trailers = 0;
        loop {
            let line = self.until(b"\r\n", long).await?;
            trailers += line.len();
            if line.is_empty() {
                return Ok(body.freeze());
            }
            if trailers > MAX_HEAD {
                return Err(long.into());
            }
        }
    }

    /// The bytes before `end`, which is used up too.
    async fn until(&mut self, end: &[u8], too_long: Unreadable) -> Result<Bytes, NoRequest> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.buffer[searched..].windows(end.len()).position(|window| window == end) {
                let found = self.buffer.split_to(searched + at).freeze();
                self.buffer.advance(end.len());
                return Ok(found);
            }
            searched = self.buffer.len().saturating_sub(end.len() - 1);
            if searched > MAX_HEAD {
                return Err(too_long.into());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Bytes> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(16 * 1024);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Waits, unless the peer goes away first: then it fails at once.
    pub(super) async fn pause(&mut self, duration: Duration) -> io::Result<()> {
        if duration.is_zero() {
            return Ok(());
        }
        match timeout(duration, self.gone()).await {
            Ok(()) => Err(io::ErrorKind::ConnectionReset.into()),
            Err(_) => Ok(()),
        }
    }

    /// Waits until the peer goes away.
    pub(super) async fn gone(&mut self) {
        while self.buffer.len() < MAX_HEAD {
            if self.fill().await.is_err() {
                return;
            }
        }
        // It sends ahead of its turn, more than is worth keeping: nothing is read until it is its turn.
        std::future::pending::<()>().await;
    }

    /// Ends the connection in order.
    pub(super) async fn close(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Ends the connection in order although the peer may still be sending.
    pub(super) async fn close_unread(mut self) {
        let _ = self.stream.shutdown().await;
        let _ = timeout(LINGER, async {
            while let Ok(1..) = self.stream.read_buf(&mut self.buffer).await {
                self.buffer.clear();
            }
        })
        .await;
    }

    /// Ends the connection with a reset, at once.
    #[allow(deprecated)] // it may block for as long as it lingers, which is not at all; `set_zero_linger` is newer than our tokio
    pub(super) fn reset(self) {
        let _ = self.stream.set_linger(Some(Duration::ZERO));
    }

    /// Ends the connection with a reset that does not overtake what was written.
    pub(super) async fn reset_behind(mut self) {
        if self.pause(BEFORE_RESET).await.is_ok() {
            self.reset();
        }
    }
}
