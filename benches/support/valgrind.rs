//! Instructions, counted by valgrind: the same today and tomorrow, whatever else the machine does.

use std::error::Error;
use std::process::{Command, Stdio};

/// What a program's name and arguments are put behind. Its profile goes nowhere.
pub(crate) const CALLGRIND: [&str; 3] = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];

/// Whether a program can be run; it must know `--version`.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Runs a command that starts with [`CALLGRIND`]. Returns the instructions of the whole process, in user space.
pub(crate) fn collect(command: &mut Command) -> Result<f64, Box<dyn Error>> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // ==4711== Collected : 123456789
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match collected {
        Some(instructions) if output.status.success() => Ok(instructions),
        _ => Err(format!("callgrind did not count {command:?}:\n{said}").into()),
    }
}
