//! The bench in other processes: the server, and one for each measurement.

use crate::load::{Load, Sample};
use crate::valgrind::is_installed;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The first argument of a process that serves.
pub(crate) const SERVE: &str = "--as-server";
/// The first argument of a process that calls.
pub(crate) const CALL: &str = "--as-client";

/// Clients have a core of their own, and so has the server, where there are two and `taskset` can give them away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Core {
    Client,
    Server,
}

/// Whether processes are pinned to their [`Core`].
pub(crate) fn pins() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) && is_installed("taskset")
}

/// A command that runs this very program on `core`, under the program and arguments of `tool` if there are any.
pub(crate) fn this_program(core: Core, tool: &[&str]) -> std::io::Result<Command> {
    let this = std::env::current_exe()?;
    let mut words: Vec<&std::ffi::OsStr> = Vec::new();
    if pins() {
        let core = match core {
            Core::Client => "0",
            Core::Server => "1",
        };
        words.extend(["taskset", "-c", core].map(std::ffi::OsStr::new));
    }
    words.extend(tool.iter().map(std::ffi::OsStr::new));
    words.push(this.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    Ok(command)
}

/// The arguments of a client process: what [`parse_client_args`] reads.
pub(crate) fn client_args(subject: &str, server: &str, Load { work, times, at_a_time }: Load) -> Vec<String> {
    let base = format!("{server}/{work}/v1");
    vec![CALL.to_owned(), subject.to_owned(), base, work.to_string(), times.to_string(), at_a_time.to_string()]
}

/// The subject, the address it calls, and what it has to do.
pub(crate) fn parse_client_args(args: &[String]) -> Option<(&str, &str, Load)> {
    match args {
        [role, subject, base, work, times, at_a_time] if role == CALL => {
            let load =
                Load { work: work.parse().ok()?, times: times.parse().ok()?, at_a_time: at_a_time.parse().ok()? };
            Some((subject, base, load))
        }
        _ => None,
    }
}

/// Measures `subject` in a process of its own.
pub(crate) fn sample(subject: &str, server: &str, load: Load) -> Result<Sample, Box<dyn Error>> {
    let output =
        this_program(Core::Client, &[])?.args(client_args(subject, server, load)).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{subject} did not get through {load:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// A running server. Dropping it stops it.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Result<Self, Box<dyn Error>> {
        let mut process =
            this_program(Core::Server, &[])?.arg(SERVE).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        let stdout = process.stdout.take().ok_or("the server has no output")?;
        BufReader::new(stdout).read_line(&mut url)?;
        url.truncate(url.trim_end().len());
        Ok(Self { process, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take()); // ends it
        let _ = self.process.wait();
    }
}
