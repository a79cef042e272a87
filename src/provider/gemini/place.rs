//! Where models are: hosts, versions and paths, as Google documents them for the Developer API and for Vertex AI.

use crate::record::{ConfigError, Problems};
use url::Url;

/// A place that serves models.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// The Developer API.
    Developer,
    /// Vertex AI.
    Vertex {
        /// The project whose models they are.
        project: String,
        /// A region, a multi-region, or `global`.
        location: String,
    },
}

impl Place {
    /// Vertex AI, unless the project or the location cannot be one: both end up in the URL, and the location in its host,
    /// which gets the token.
    pub(super) fn vertex(project: &str, location: &str) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let made_of = |text: &str, also: &str| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
        };
        // Ids of projects in a domain look like `example.com:id`.
        problems.require(
            made_of(project, "-.:_"),
            "project",
            format_args!("`{project}`"),
            "the id or the number of a project",
        );
        problems.require(
            made_of(location, "-"),
            "location",
            format_args!("`{location}`"),
            "a region such as `europe-west4`, `eu`, `us` or `global`",
        );
        problems.finish()?;
        Ok(Self::Vertex { project: project.to_owned(), location: location.to_owned() })
    }

    /// The host, without a version.
    pub(super) fn base_url(&self) -> String {
        let Self::Vertex { location, .. } = self else {
            return "https://generativelanguage.googleapis.com".to_owned();
        };
        match location.as_str() {
            "global" => "https://aiplatform.googleapis.com".to_owned(),
            "eu" | "us" => format!("https://aiplatform.{location}.rep.googleapis.com"),
            region => format!("https://{region}-aiplatform.googleapis.com"),
        }
    }

    /// The version that is asked where none is set. On the Developer API preview models are in `v1beta` alone.
    fn version(&self) -> &'static str {
        match self {
            Self::Developer => "v1beta",
            Self::Vertex { .. } => "v1",
        }
    }

    /// The URL of a method of a model. A name is one segment of the path whatever is in it, so it leads nowhere else.
    pub(super) fn url(&self, mut base: Url, version: Option<&str>, model: &str, method: &str) -> Url {
        let is_versioned = base.path().trim_end_matches('/').rsplit('/').next().is_some_and(is_version);
        let Ok(mut path) = base.path_segments_mut() else {
            return base; // no http URL is without a path
        };
        path.pop_if_empty();
        match (is_versioned, version) {
            (true, None) => {}
            (true, Some(version)) => {
                path.pop().push(version);
            }
            (false, version) => {
                path.push(version.unwrap_or(self.version()));
            }
        }
        let (collection, name) = self.collection(model);
        if let Self::Vertex { project, location } = self {
            path.extend(["projects", project, "locations", location]);
        }
        path.extend(collection).push(&format!("{name}:{method}"));
        drop(path);
        base
    }

    /// The collection that a model is in, and its name there.
    fn collection<'a>(&self, model: &'a str) -> (&'static [&'static str], &'a str) {
        match self {
            Self::Developer => match model.strip_prefix("tunedModels/") {
                Some(name) => (&["tunedModels"], name),
                None => (&["models"], name_of(model)),
            },
            // A tuned model is served by an endpoint of its own.
            Self::Vertex { .. } => match model.strip_prefix("endpoints/") {
                Some(name) => (&["endpoints"], name),
                None => (&["publishers", "google", "models"], name_of(model)),
            },
        }
    }
}

/// The name of a model that may be given as the API lists it.
pub(super) fn name_of(model: &str) -> &str {
    let model = model.strip_prefix("publishers/google/").unwrap_or(model);
    model.strip_prefix("models/").unwrap_or(model)
}

/// Whether this is a version of the API: `v1`, `v1beta`, `v1beta1`.
pub(super) fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit()) && rest.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(place: &Place, base: &str, version: Option<&str>, model: &str) -> String {
        place.url(Url::parse(base).unwrap(), version, model, "generateContent").into()
    }

    #[test]
    fn a_model_is_found_under_any_base_url_and_version() {
        let google = "https://generativelanguage.googleapis.com";
        assert_eq!(Place::Developer.base_url(), google);
        for (base, version, expected) in [
            (google, None, format!("{google}/v1beta/models/m:generateContent")),
            (google, Some("v1"), format!("{google}/v1/models/m:generateContent")),
            ("http://h/v1", None, "http://h/v1/models/m:generateContent".to_owned()),
            ("http://h/v1/", Some("v1alpha"), "http://h/v1alpha/models/m:generateContent".to_owned()),
            ("http://h/google/", None, "http://h/google/v1beta/models/m:generateContent".to_owned()),
            ("http://h/x?a=b", None, "http://h/x/v1beta/models/m:generateContent?a=b".to_owned()),
        ] {
            assert_eq!(url(&Place::Developer, base, version, "m"), expected, "{base} {version:?}");
        }
    }

    #[test]
    fn the_name_of_a_model_leads_nowhere_else() {
        for (model, path) in [
            ("models/gemini-x", "models/gemini-x"),
            ("tunedModels/mine", "tunedModels/mine"),
            ("../../v1/files", "models/..%2F..%2Fv1%2Ffiles"),
            ("models/../x", "models/..%2Fx"),
            ("..", "models/.."),
            ("a?key=b#c", "models/a%3Fkey=b%23c"),
            ("a%2e b\\c", "models/a%252e%20b%5Cc"),
            ("gemini-ü", "models/gemini-%C3%BC"),
            ("endpoints/1", "models/endpoints%2F1"),
        ] {
            let expected = format!("http://h/v1/{path}:generateContent");
            assert_eq!(url(&Place::Developer, "http://h/v1", None, model), expected, "{model}");
        }
    }

    #[test]
    fn vertex_has_a_host_for_each_location() {
        for (location, host) in [
            ("europe-west4", "https://europe-west4-aiplatform.googleapis.com"),
            ("global", "https://aiplatform.googleapis.com"),
            ("eu", "https://aiplatform.eu.rep.googleapis.com"),
            ("us", "https://aiplatform.us.rep.googleapis.com"),
        ] {
            let place = Place::vertex("example.com:p-1", location).unwrap();
            assert_eq!(place.base_url(), host);
            for (model, path) in [
                ("gemini-x", "publishers/google/models/gemini-x"),
                ("publishers/google/models/gemini-x", "publishers/google/models/gemini-x"),
                ("endpoints/123", "endpoints/123"),
            ] {
                let expected =
                    format!("{host}/v1/projects/example.com:p-1/locations/{location}/{path}:generateContent");
                assert_eq!(url(&place, host, None, model), expected);
            }
        }
    }

    #[test]
    fn a_location_cannot_name_another_host() {
        for (project, location, named) in [
            ("p", "evil.example/", "location"),
            ("p", "", "location"),
            ("p", "user@host", "location"),
            ("..", "eu", "project"),
            ("a/b", "eu", "project"),
            ("", "eu", "project"),
        ] {
            let problems = Place::vertex(project, location).unwrap_err().problems().to_vec();
            assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [named]);
        }
    }
}
