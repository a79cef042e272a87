//! An AWS event stream: the bytes as they are, and the bytes as messages whose lengths and checksums are right, since chance
//! never finds those.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast::provider::Framing;
use steadfast_fuzz::read_everywhere;

fuzz_target!(|body: &[u8]| {
    let _ = read_everywhere(&Framing::AwsEventStream, body);
    let _ = read_everywhere(&Framing::AwsEventStream, &repaired(body));
});

/// Takes the bytes for messages, by their lengths where those make sense, and repairs what a receiver checks first.
fn repaired(mut rest: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let Some(length) = rest.first_chunk::<4>() {
        let length = (u32::from_be_bytes(*length) as usize).clamp(16, 1024).min(rest.len());
        let (message, after) = rest.split_at(length);
        rest = after;
        if length < 16 {
            stream.extend_from_slice(message);
            break;
        }
        let start = stream.len();
        stream.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        stream.extend_from_slice(&message[4..8]);
        stream.extend_from_slice(&crc32fast::hash(&stream[start..]).to_be_bytes());
        stream.extend_from_slice(&message[12..length - 4]);
        stream.extend_from_slice(&crc32fast::hash(&stream[start..]).to_be_bytes());
    }
    stream
}
