//! A body of server-sent events.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast::provider::Framing;
use steadfast_fuzz::read_everywhere;

fuzz_target!(|body: &[u8]| {
    let outcome = read_everywhere(&Framing::Sse, body);
    for frame in outcome.frames {
        assert!(!frame.data.contains(&b'\r'), "a CR ends a line");
        assert!(!frame.event.contains(['\r', '\n']), "a name is within a line");
    }
});
