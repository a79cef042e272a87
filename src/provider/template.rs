//! Base URLs with `{placeholders}` in them.

use super::endpoint::shown;
use crate::record::ConfigError;

/// Fills in one placeholder.
///
/// What is filled in stays what it is, a part of a host name or one segment of a path, so that a key cannot be led to
/// another place. Only a placeholder that the URL begins with takes a whole host, or an origin.
pub(super) fn fill(template: &str, name: &str, value: &str) -> Result<String, ConfigError> {
    let placeholder = format!("{{{name}}}");
    if !template.contains(&placeholder) {
        let known: Vec<_> = names(template).collect();
        let allowed = if known.is_empty() { "nothing: the base URL is whole".to_owned() } else { known.join(", ") };
        return Err(ConfigError::new("fill", format!("`{name}`"), allowed));
    }
    let value = value.trim();
    if template.starts_with(&placeholder) {
        let host = value.trim_end_matches('/');
        let is_unfit =
            host.is_empty() || host.contains(['@', '?', '#', '{', '}', '\\']) || host.contains(char::is_whitespace);
        if is_unfit {
            return Err(ConfigError::new(name, shown(value), "a host, or an http or https origin"));
        }
        let scheme = if host.contains("://") { "" } else { "https://" };
        return Ok(template.replace(&placeholder, &format!("{scheme}{host}")));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if value.is_empty() || value.starts_with('.') || !value.chars().all(is_plain) {
        return Err(ConfigError::new(name, shown(value), "ASCII letters, digits, dashes, underscores and dots"));
    }
    Ok(template.replace(&placeholder, value))
}

/// The names of the placeholders in a template.
pub(super) fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_filled_in_and_stays_a_part() {
        let template = "https://{resource}.example.com/{account}/v1";
        let half = fill(template, "resource", "my-res_1.eu").unwrap();
        assert_eq!(half, "https://my-res_1.eu.example.com/{account}/v1");
        assert_eq!(names(&half).collect::<Vec<_>>(), ["account"]);
        for value in ["", " ", "evil.test/", "a@b", "a b", "a?b", "{account}", "ü", "../up", "a:1"] {
            assert!(fill(template, "resource", value).is_err(), "{value}");
        }
        let error = fill(template, "region", "x").unwrap_err().to_string();
        assert!(error.contains("`region`; allowed: resource, account"), "{error}");
    }

    #[test]
    fn a_url_that_begins_with_one_takes_a_host_or_an_origin() {
        let template = "{host}/serving-endpoints";
        for value in ["adb-1.example.net", "https://adb-1.example.net", "https://adb-1.example.net/"] {
            assert_eq!(
                fill(template, "host", value).unwrap(),
                "https://adb-1.example.net/serving-endpoints",
                "{value}"
            );
        }
        for value in ["", "user:pass-word@host", "host?x"] {
            let error = fill(template, "host", value).unwrap_err().to_string();
            assert!(!error.contains("pass-word"), "{error}");
        }
    }
}
