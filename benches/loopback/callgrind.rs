//! The instructions of a call, a word, and a first call.

use crate::load::{Load, Work};
use crate::process::{Core, client_args, this_program};
use crate::subject::NOTHING;
use crate::valgrind;
use std::error::Error;

/// Instructions a call. Twice the calls against once the calls, so that start-up and warm-up cancel out.
pub(crate) fn per_call(subject: &str, server: &str, load: Load) -> Result<f64, Box<dyn Error>> {
    let once = collect(subject, server, load)?;
    let twice = collect(subject, server, Load { times: 2 * load.times, ..load })?;
    Ok((twice - once) / f64::from(load.times))
}

/// Instructions a word, of streams that are as many and differ in length alone.
pub(crate) fn per_word(
    subject: &str,
    server: &str,
    load: Load,
    [short, long]: [u32; 2],
) -> Result<f64, Box<dyn Error>> {
    let short_ones = collect(subject, server, Load { work: Work::Stream { words: short }, ..load })?;
    let long_ones = collect(subject, server, Load { work: Work::Stream { words: long }, ..load })?;
    // The streams that warm up are as long as the others.
    let streams = f64::from(load.times + 4 * load.at_a_time);
    Ok((long_ones - short_ones) / streams / f64::from(long - short))
}

/// Instructions to make a client and call once, over a process that does neither.
pub(crate) fn first_call(subject: &str, server: &str) -> Result<f64, Box<dyn Error>> {
    Ok(collect(subject, server, Load::FIRST)? - collect(NOTHING, server, Load::FIRST)?)
}

/// The instructions of a whole process in which `subject` does the work.
fn collect(subject: &str, server: &str, load: Load) -> Result<f64, Box<dyn Error>> {
    valgrind::collect(this_program(Core::Client, &valgrind::CALLGRIND)?.args(client_args(subject, server, load)))
}

/// The same, leaving a profile.
pub(crate) fn profile(subject: &str, server: &str, load: Load, file: &str) -> Result<f64, Box<dyn Error>> {
    let file = format!("--callgrind-out-file={file}");
    let [valgrind, callgrind, _] = valgrind::CALLGRIND;
    let mut command = this_program(Core::Client, &[valgrind, callgrind, &file])?;
    valgrind::collect(command.args(client_args(subject, server, load)))
}
