//! The cases of `fixtures/cases`: real failures, and what this crate makes of them.

#[path = "replay/mod.rs"]
mod replay;

use replay::case::load;
use replay::report::{Options, replay};
use replay::under_test::Steadfast;
use std::io;
use std::path::Path;
use std::sync::Arc;

#[test]
fn every_case_ends_as_it_should() -> io::Result<()> {
    let lines = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases"))?;
    let mut out = Vec::new();
    let summary = replay(lines, &Arc::new(Steadfast), Options { quiet: true, ..Options::default() }, &mut out)?;
    assert!(summary.is_good(), "{}", String::from_utf8_lossy(&out));
    Ok(())
}
