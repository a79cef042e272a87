//! What framing costs: allocations on the usual path, and memory that a huge event leaves behind.

use bytes::Bytes;
use counting_alloc::{CountingAlloc, count};
use steadfast::provider::Framing;
use steadfast::transport::framing::Framer;

#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

/// Reads pieces over and over. Returns allocations of a round, once the buffers have grown.
fn allocations(framing: Framing, pieces: &[&'static [u8]]) -> u64 {
    let mut framer = Framer::new(framing.clone());
    let mut round = || {
        let before = count();
        for piece in pieces {
            framer.push(Bytes::from_static(piece));
            while framer.next_frame().unwrap().is_some() {}
        }
        (count() - before).calls
    };
    round();
    round();
    round()
}

#[test]
fn events_cost_no_allocation_whole_or_cut_or_joined() {
    assert_eq!(allocations(Framing::Sse, &[b"data: whole\n\nevent: a\r\ndata: too\r\n\r\n: c\n\n"]), 0);
    assert_eq!(allocations(Framing::Sse, &[b"data: c", b"ut\n", b"\neve", b"nt: a\nda", b"ta: 1\r", b"\n\r\n"]), 0);
    assert_eq!(allocations(Framing::Sse, &[b"data: one\ndata: two\ndata: thr", b"ee\ndata: four\n\n"]), 0);
    assert_eq!(allocations(Framing::Ndjson, &[b"{}\r\n{\"a\":1}\n{\"b", b"\":2}\n"]), 0);
}

#[test]
fn a_huge_event_leaves_no_memory_behind() {
    for framing in [Framing::Sse, Framing::Ndjson] {
        let mut framer = Framer::new(framing.clone());
        let before = count();
        framer.push(Bytes::from_static(b"data: "));
        for _ in 0..64 {
            framer.push(Bytes::from_static(&[b'x'; 16 << 10]));
        }
        framer.push(Bytes::from_static(b"\n\nid\n\n")); // of lines of JSON, it is a second one
        let mut largest = 0;
        while let Some(frame) = framer.next_frame().unwrap() {
            largest = largest.max(frame.data.len());
        }
        assert!(largest >= 1 << 20);
        let grown = count() - before;
        let held = grown.bytes - grown.freed;
        assert!(held < 8 << 10, "{framing:?} holds {held} bytes");
    }
}
