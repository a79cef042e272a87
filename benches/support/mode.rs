//! How a bench was asked to run.

/// `cargo bench` measures. `cargo test --benches` and `cargo bench -- --test` only see that everything still runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    Measure,
    Smoke,
}

impl Mode {
    /// Cargo says `--bench` to what it runs as a bench, and nothing to what it runs as a test.
    pub(crate) fn from_args(args: &[String]) -> Self {
        let has = |flag: &str| args.iter().any(|arg| arg == flag);
        if has("--bench") && !has("--test") { Self::Measure } else { Self::Smoke }
    }
}
