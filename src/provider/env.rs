//! Settings from the environment. Only the `from_env` of an adapter comes here.

use crate::record::ConfigError;
use secrecy::SecretString;

/// The value of an environment variable, unless it is unset or blank.
pub(super) fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The first of these environment variables that is set.
pub(super) fn env_key(names: &[&str]) -> Result<SecretString, ConfigError> {
    names
        .iter()
        .find_map(|name| env_var(name))
        .map(SecretString::from)
        .ok_or_else(|| ConfigError::new(names.join(" or "), "not set", "an API key in this environment variable"))
}
