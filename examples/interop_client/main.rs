//! Plays scenarios against servers that this project did not write, for `interop/run.sh`:
//!
//! ```text
//! interop_client SERVER --provider NAME --base-url URL [--model MODEL] [--key KEY]
//! ```
//!
//! A scenario is a call, and how it should end. One that does is a line of JSON; of any other it is said, after `FAIL`, what
//! is not as it should be, and the program ends with 1.

mod adapter;
mod aimock;
mod expected;
mod litellm;
mod llmock;
mod model;
mod report;
mod tools;
mod way;

use adapter::Subject;
use report::Report;
use std::env;
use std::error::Error;
use std::process::ExitCode;

/// Why nothing could be played.
type Fault = Box<dyn Error + Send + Sync>;

const USAGE: &str =
    "interop_client aimock|litellm|llmock|model --provider NAME --base-url URL [--model MODEL] [--key KEY]";

#[tokio::main]
async fn main() -> Result<ExitCode, Fault> {
    let mut arguments = env::args().skip(1);
    let server = arguments.next().ok_or(USAGE)?;
    let subject = subject(arguments)?;
    let mut report = Report::new(&server, &subject.provider);
    match server.as_str() {
        "aimock" => aimock::play(&subject, &mut report).await?,
        "litellm" => litellm::play(&subject, &mut report).await?,
        "llmock" => llmock::play(&subject, &mut report).await?,
        "model" => model::play(&subject, &mut report).await?,
        _ => return Err(USAGE.into()),
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Who is asked, from `--NAME VALUE` pairs.
fn subject(mut arguments: impl Iterator<Item = String>) -> Result<Subject, Fault> {
    let mut subject = Subject { model: "any-model".to_owned(), key: "local-key".to_owned(), ..Subject::default() };
    while let Some(name) = arguments.next() {
        let field = match name.as_str() {
            "--base-url" => &mut subject.base_url,
            "--key" => &mut subject.key,
            "--model" => &mut subject.model,
            "--provider" => &mut subject.provider,
            _ => return Err(format!("there is no {name}: {USAGE}").into()),
        };
        *field = arguments.next().ok_or_else(|| format!("{name} needs a value: {USAGE}"))?;
    }
    if subject.provider.is_empty() || subject.base_url.is_empty() {
        return Err(USAGE.into());
    }
    Ok(subject)
}
