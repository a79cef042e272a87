//! Instructions, counted by valgrind: the same today and tomorrow, whatever else the machine does.

use crate::load::{Load, Work};
use crate::process::{Core, client_args, this_program};
use crate::subject::NOTHING;
use std::error::Error;

const NOWHERE: &str = "/dev/null";

/// Instructions a call. Twice the calls against once the calls, so that start-up and warm-up cancel out.
pub(crate) fn per_call(subject: &str, server: &str, load: Load) -> Result<f64, Box<dyn Error>> {
    let once = collect(subject, server, load, NOWHERE)?;
    let twice = collect(subject, server, Load { times: 2 * load.times, ..load }, NOWHERE)?;
    Ok((twice - once) / f64::from(load.times))
}

/// Instructions a word, of streams that are as many and differ in length alone.
pub(crate) fn per_word(
    subject: &str,
    server: &str,
    load: Load,
    [short, long]: [u32; 2],
) -> Result<f64, Box<dyn Error>> {
    let short_ones = collect(subject, server, Load { work: Work::Stream { words: short }, ..load }, NOWHERE)?;
    let long_ones = collect(subject, server, Load { work: Work::Stream { words: long }, ..load }, NOWHERE)?;
    // The streams that warm up are as long as the others.
    let streams = f64::from(load.times + 4 * load.at_a_time);
    Ok((long_ones - short_ones) / streams / f64::from(long - short))
}

/// Instructions to make a client and call once, over a process that does neither.
pub(crate) fn first_call(subject: &str, server: &str) -> Result<f64, Box<dyn Error>> {
    Ok(collect(subject, server, Load::FIRST, NOWHERE)? - collect(NOTHING, server, Load::FIRST, NOWHERE)?)
}

/// Runs `subject` under callgrind, leaves its profile in `profile`, and returns the instructions of the whole process.
pub(crate) fn collect(subject: &str, server: &str, load: Load, profile: &str) -> Result<f64, Box<dyn Error>> {
    let profile = format!("--callgrind-out-file={profile}");
    let output = this_program(Core::Client, &["valgrind", "--tool=callgrind", &profile])?
        .args(client_args(subject, server, load))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // ==4711== Collected : 123456789
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match collected {
        Some(instructions) if output.status.success() => Ok(instructions),
        _ => Err(format!("callgrind did not count {subject}:\n{said}").into()),
    }
}
