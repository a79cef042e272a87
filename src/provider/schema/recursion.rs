//! Types that refer to themselves.

use super::Inexpressible;
use super::dialect::{Dialect, Recursion};
use std::collections::BTreeSet;

/// A reference from one definition to another.
pub(super) struct Link {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) optional: bool,
    pub(super) at: String,
}

/// Refuses a type that refers to itself in a way that the provider does not take.
pub(super) fn check_recursion(dialect: &Dialect, links: &[Link]) -> Result<(), Inexpressible> {
    let counts = |link: &Link| match dialect.recursion {
        Recursion::Any => false,
        Recursion::None => true,
        Recursion::Optional => !link.optional,
    };
    for link in links.iter().filter(|link| counts(link)) {
        // Whether the way on from there leads back.
        let (mut seen, mut ahead) = (BTreeSet::new(), vec![&*link.to]);
        while let Some(here) = ahead.pop() {
            if here == link.from {
                let cure = match dialect.recursion {
                    Recursion::Optional => "make a property on the way back optional",
                    _ => "limit the depth, with a type for each level",
                };
                return Err(Inexpressible {
                    at: link.at.clone(),
                    what: format!("a type that refers to itself cannot be expressed for {}; {cure}", dialect.who),
                });
            }
            if seen.insert(here) {
                ahead.extend(links.iter().filter(|l| l.from == here && counts(l)).map(|l| &*l.to));
            }
        }
    }
    Ok(())
}
