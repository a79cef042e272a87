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

    /// Whether both are the same shared map, not merely equal ones.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_one_request_adds_the_others_do_not_see() {
        let mut map = HeaderMap::new();
        for value in ["a", "b"] {
            map.append("x-more", HeaderValue::from_static(value));
        }
        let shared = Headers::from(map);
        let mut own = shared.clone();
        own.insert("authorization", HeaderValue::from_static("k"));
        let read = |headers: &Headers| headers.get_all("x-more").iter().cloned().collect::<Vec<_>>();
        assert_eq!((shared.len(), own.len()), (2, 3));
        assert_eq!(read(&own), ["a", "b"], "values of one name keep their order");
        assert_eq!((shared.clone(), shared.contains_key("authorization")), (shared, false));
        assert_eq!(own.into_map()["authorization"], "k");
    }
}
