//! A body of JSON values, one a line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast::provider::Framing;
use steadfast_fuzz::read_everywhere;

fuzz_target!(|body: &[u8]| {
    let outcome = read_everywhere(&Framing::Ndjson, body);
    let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    assert!(outcome.frames.iter().map(|frame| &frame.data[..]).eq(lines));
});
