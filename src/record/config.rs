//! What is wrong with a configuration, as data.

use std::fmt;

/// One setting that cannot be used: which, what it was, and what is allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The setting, as a path: `retry.factor`, `targets[1].rate_limit.burst`.
    pub field: String,
    /// The value that was given, as text. Never a secret.
    pub value: String,
    /// What the setting takes, as a sentence fragment: `a finite number of at least 1`.
    pub allowed: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; allowed: {}", self.field, self.value, self.allowed)
    }
}

/// A configuration that cannot work. Lists every problem found, not just the first.
///
/// ```
/// use steadfast::ConfigError;
/// let error = ConfigError::new("retry.factor", 0.5, "a finite number of at least 1");
/// assert_eq!(error.to_string(), "invalid configuration: retry.factor is 0.5; allowed: a finite number of at least 1");
/// assert_eq!(error.problems()[0].field, "retry.factor");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    problems: Vec<ConfigProblem>,
}

impl ConfigError {
    /// An error with one problem.
    pub fn new(field: impl Into<String>, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        let problem = ConfigProblem { field: field.into(), value: value.to_string(), allowed: allowed.into() };
        Self { problems: vec![problem] }
    }

    /// Every problem found, in the order of the settings. Never empty.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }

    /// The same problems, with `prefix` and a dot before each field.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        for problem in &mut self.problems {
            problem.field.insert(0, '.');
            problem.field.insert_str(0, prefix);
        }
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid configuration")?;
        for (i, problem) in self.problems.iter().enumerate() {
            write!(f, "{} {problem}", if i == 0 { ":" } else { " |" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Collects problems, so that one `build()` names them all.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<ConfigProblem>);

impl Problems {
    /// Notes a problem with `field` unless `ok`.
    pub(crate) fn require(&mut self, ok: bool, field: &str, value: impl fmt::Display, allowed: &str) {
        if !ok {
            self.add(ConfigError::new(field, value, allowed));
        }
    }

    /// Takes over the problems of another check.
    pub(crate) fn add(&mut self, error: ConfigError) {
        self.0.extend(error.problems);
    }

    /// Keeps the value of a check that succeeded, and the problems of one that did not.
    pub(crate) fn take<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// `Ok` when nothing was wrong.
    pub(crate) fn finish(self) -> Result<(), ConfigError> {
        if self.0.is_empty() { Ok(()) } else { Err(ConfigError { problems: self.0 }) }
    }
}
