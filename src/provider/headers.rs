//! Headers that many requests share until one of them differs.

use http::HeaderMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A header map that is shared by its clones until one is changed. Reads and changes like a [`HeaderMap`].
///
/// An adapter sends the same headers with every request; only what is added to one attempt (its credentials) is a copy.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Headers(Arc<HeaderMap>);

impl Headers {
    /// The map, copied only where others share it.
    pub fn into_map(self) -> HeaderMap {
        Arc::unwrap_or_clone(self.0)
    }
}

impl From<HeaderMap> for Headers {
    fn from(map: HeaderMap) -> Self {
        Self(Arc::new(map))
    }
}

impl Deref for Headers {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        &self.0
    }
}

impl DerefMut for Headers {
    fn deref_mut(&mut self) -> &mut HeaderMap {
        Arc::make_mut(&mut self.0)
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a http::HeaderName, &'a http::HeaderValue);
    type IntoIter = http::header::Iter<'a, http::HeaderValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
