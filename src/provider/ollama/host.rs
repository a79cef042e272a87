//! `OLLAMA_HOST`: made for servers, which listen on it, and read by clients too.

use std::net::{Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Ollama's port.
const PORT: u16 = 11_434;

/// The base URL that a value of `OLLAMA_HOST` means to a client; none where it cannot be read.
pub(super) fn base_url(host: &str) -> Option<String> {
    let host = host.trim().trim_matches(['"', '\'']);
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let authority = match authority.strip_prefix(':') {
        Some(port) if !port.starts_with(':') => format!("{}:{port}", Ipv4Addr::LOCALHOST),
        _ if authority.parse::<Ipv6Addr>().is_ok() => format!("[{authority}]"),
        _ if authority.is_empty() => Ipv4Addr::LOCALHOST.to_string(),
        _ => authority.to_owned(),
    };
    // A URL has the port of its scheme; what is none has Ollama's.
    let has_port = !authority.ends_with(']') && authority.rsplit_once(':').is_some_and(|(_, p)| is_port(p));
    let port = if has_port || host.contains("://") { String::new() } else { format!(":{PORT}") };
    let mut url = Url::parse(&format!("{scheme}://{authority}{port}{path}")).ok()?;
    let everywhere = match url.host()? {
        Host::Ipv4(ip) => ip.is_unspecified().then_some(Ipv4Addr::LOCALHOST.into()),
        Host::Ipv6(ip) => ip.is_unspecified().then_some(Ipv6Addr::LOCALHOST.into()),
        Host::Domain(_) => None,
    };
    if let Some(here) = everywhere {
        url.set_ip_host(here).ok()?;
    }
    Some(url.into())
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_ollamas_own_clients_do() {
        for (host, url) in [
            ("localhost", Some("http://localhost:11434/")),
            ("10.0.0.9", Some("http://10.0.0.9:11434/")),
            ("10.0.0.9:80", Some("http://10.0.0.9/")),
            ("example.com:8080", Some("http://example.com:8080/")),
            (" \"example.com\" ", Some("http://example.com:11434/")),
            (":8080", Some("http://127.0.0.1:8080/")),
            ("", Some("http://127.0.0.1:11434/")),
            ("0.0.0.0", Some("http://127.0.0.1:11434/")),
            ("0.0.0.0:8080", Some("http://127.0.0.1:8080/")),
            ("http://0.0.0.0:11434", Some("http://127.0.0.1:11434/")),
            ("::", Some("http://[::1]:11434/")),
            ("[::]:8080", Some("http://[::1]:8080/")),
            ("[::1]", Some("http://[::1]:11434/")),
            ("http://example.com", Some("http://example.com/")),
            ("https://example.com", Some("https://example.com/")),
            ("https://example.com/ollama", Some("https://example.com/ollama")),
            ("example.com/ollama", Some("http://example.com:11434/ollama")),
            ("a b", None),
            ("example.com:port", None),
        ] {
            assert_eq!(base_url(host).as_deref(), url, "{host}");
        }
    }
}
