//! A stream that nobody reads, on a real socket: what is not read is not received.

use std::time::Duration;
use steadfast::provider::OpenAiCompatible;
use steadfast::{Client, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// What a server sends at most, if nobody holds it back: far more than two sockets of the system keep.
const ALL: usize = 512 << 20;
/// What the sockets of the system may keep between them, and the client ahead of its reader.
const KEPT: usize = 64 << 20;

/// Streams words without end to the first who asks. The bytes that it could send before it was held back for a while.
async fn talk(listener: TcpListener) -> std::io::Result<usize> {
    let (mut socket, _) = listener.accept().await?;
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && socket.read_buf(&mut request).await? > 0 {}
    socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await?;
    let words = "word ".repeat(4_000);
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n");
    let mut sent = 0;
    // In real time: no signal tells that a peer does not read.
    while sent < ALL && timeout(Duration::from_millis(500), socket.write_all(event.as_bytes())).await.is_ok() {
        sent += event.len();
    }
    Ok(sent)
}

#[tokio::test]
async fn a_reader_that_stops_holds_the_server_back_on_a_real_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let base = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
    let server = tokio::spawn(talk(listener));
    let client = Client::builder(Target::new(OpenAiCompatible::new(&base), "m")).build().expect("valid");
    let mut stream = client.stream("hi").await.expect("it opens");
    for _ in 0..3 {
        assert!(stream.next().await.expect("it goes on").is_ok());
    }
    let sent = server.await.expect("it does not panic").expect("the socket holds");
    assert!(sent < KEPT, "{sent} bytes went out to a reader that had stopped");
    assert!(stream.next().await.expect("what was sent is there").is_ok());
}
