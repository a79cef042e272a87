//! Replays cases of real failures against this crate: `cargo run --example replay_cases -- fixtures/cases`.
//!
//! Files or folders of JSON lines, in the format of `fixtures/cases/README.md`. Options: `--only TEXT` (a part of the
//! id), `--provider NAME`, `--theme NAME`, `--api NAME`, `--kind http|sequence|stream|note`, `-j N`, `--quiet`.

#[path = "../tests/replay/mod.rs"]
mod replay;

use replay::case::{Case, Kind, Line, load};
use replay::report::{Options, replay};
use replay::under_test::Steadfast;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, io};

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run(mut words: impl Iterator<Item = String>) -> Result<bool, String> {
    let (mut paths, mut filters, mut options) = (Vec::new(), Vec::new(), Options::default());
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--only" | "--provider" | "--theme" | "--api" | "--kind" => filters.push((word.clone(), value()?)),
            "-j" => options.jobs = value()?.parse().map_err(|error| format!("-j: {error}"))?,
            "--quiet" => options.quiet = true,
            option if option.starts_with('-') => return Err(format!("there is no option {option}")),
            path => paths.push(PathBuf::from(path)),
        }
    }
    if paths.is_empty() {
        return Err("give files of cases, or folders of them".to_owned());
    }
    let mut lines = Vec::new();
    for path in paths {
        lines.extend(load(&path).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    lines.retain(|line| is_wanted(line, &filters));
    let summary = replay(lines, &Arc::new(Steadfast), options, &mut io::stdout()).map_err(|error| error.to_string())?;
    Ok(summary.is_good())
}

/// A line that cannot be read is always wanted: it is to be seen.
fn is_wanted(line: &Line, filters: &[(String, String)]) -> bool {
    let Ok(Case { id, provider, theme, api, kind, .. }) = &line.case else { return true };
    let kind = match kind {
        Kind::Http => "http",
        Kind::Note => "note",
        Kind::Sequence => "sequence",
        Kind::Stream => "stream",
    };
    filters.iter().all(|(option, value)| match option.as_str() {
        "--only" => id.contains(value.as_str()),
        "--provider" => provider == value,
        "--theme" => theme == value,
        "--api" => api == value,
        _ => kind == value,
    })
}
