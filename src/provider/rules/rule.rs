//! What a provider's dialect is made of: rules as data, and what they are asked of.

use super::body::Spoken;
use super::limits::Bucket;
use super::{generic, wait};
use crate::provider::Failure;
use crate::record::{ErrorCode, QuotaScope};
use std::iter::successors;
use std::time::Duration;

/// What one provider does differently from the dialect that it stands over. All of it is data.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The name of the pack.
    pub(super) name: &'static str,
    /// Other names that find it.
    pub(super) aliases: &'static [&'static str],
    /// The dialect whose rules come after its own.
    pub(super) over: Option<&'static Dialect>,
    /// Its own rules. The first that holds decides; where none does, the status does.
    pub(super) rules: &'static [Rule],
    /// Its rate-limit headers; none means those of the dialect below.
    pub(super) limits: &'static [Bucket],
    /// Whether waits are read from the text of messages, here and in every dialect over it.
    pub(super) hints: bool,
}

impl Dialect {
    /// A dialect that does nothing differently.
    pub(super) const fn over(name: &'static str, over: &'static Dialect) -> Self {
        Self { name, aliases: &[], over: Some(over), rules: &[], limits: &[], hints: false }
    }

    /// This dialect, and those below it.
    fn stack(&'static self) -> impl Iterator<Item = &'static Self> {
        successors(Some(self), |dialect| dialect.over)
    }

    /// The headers in which it tells its limits.
    pub(super) fn buckets(&'static self) -> &'static [Bucket] {
        self.stack().map(|dialect| dialect.limits).find(|limits| !limits.is_empty()).unwrap_or_default()
    }

    /// Whether waits are read from the text of messages.
    pub(super) fn reads_hints(&'static self) -> bool {
        self.stack().any(|dialect| dialect.hints)
    }

    /// What the first rule that holds says.
    pub(super) fn decide(&'static self, evidence: &Evidence<'_>) -> Option<&'static Then> {
        self.stack().flat_map(|dialect| dialect.rules).find(|rule| rule.holds(evidence)).map(|rule| &rule.then)
    }
}

/// One rule: where the status is one of these and all conditions hold, then this.
#[derive(Debug)]
pub(super) struct Rule {
    /// Statuses that it is for; empty: any. An error object without a status of its own is subject to every rule that has
    /// conditions.
    on: &'static [u16],
    all: &'static [When],
    then: Then,
}

impl Rule {
    /// For errors with one of these statuses.
    pub(super) const fn on(on: &'static [u16], all: &'static [When], then: Then) -> Self {
        Self { on, all, then }
    }

    /// For errors of any status.
    pub(super) const fn any(all: &'static [When], then: Then) -> Self {
        Self::on(&[], all, then)
    }

    fn holds(&self, evidence: &Evidence<'_>) -> bool {
        let on = self.on.is_empty() || evidence.status.map_or(!self.all.is_empty(), |status| self.on.contains(&status));
        on && self.all.iter().all(|when| when.holds(evidence))
    }
}

/// A condition.
#[derive(Debug)]
pub(super) enum When {
    /// One of the words for machines (code, type, status, reason, ..) is one of these; case and separators do not count.
    Word(&'static [&'static str]),
    /// One of them has one of these in it.
    WordPart(&'static [&'static str]),
    /// The message, in lower case, has one of these in it.
    Says(&'static [&'static str]),
    /// It has none of these in it.
    SaysNone(&'static [&'static str]),
    /// There is something at one of these JSON pointers.
    Field(&'static [&'static str]),
    /// No wait is advised in any form.
    NoWait,
    /// What no table can say.
    Check(fn(&Evidence<'_>) -> bool),
}

impl When {
    fn holds(&self, evidence: &Evidence<'_>) -> bool {
        let spoken = &evidence.spoken;
        match self {
            Self::Word(words) => words.iter().any(|word| spoken.has_word(word)),
            Self::WordPart(parts) => parts.iter().any(|part| spoken.has_word_part(part)),
            Self::Says(texts) => texts.iter().any(|text| evidence.said.contains(text)),
            Self::SaysNone(texts) => !texts.iter().any(|text| evidence.said.contains(text)),
            Self::Field(pointers) => pointers.iter().any(|at| spoken.has_field(at)),
            Self::NoWait => evidence.wait.is_none(),
            Self::Check(check) => check(evidence),
        }
    }
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Then {
    /// It is this, and retried if this is.
    Is(ErrorCode),
    /// It is this, and worth another try although this in general is not.
    Again(ErrorCode),
    /// It is this, and not worth another try although this in general is.
    Final(ErrorCode),
    /// A quota is used up.
    Quota(QuotaScope),
}

/// What the rules are asked of.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) failure: &'a Failure<'a>,
    /// The status to judge by: what arrived, or for an error in a success what its object names or its words imply.
    pub(super) status: Option<u16>,
    pub(super) spoken: Spoken,
    /// The message in lower case.
    pub(super) said: String,
    /// The advised wait.
    pub(super) wait: Option<Duration>,
}

impl<'a> Evidence<'a> {
    pub(super) fn gather(dialect: &'static Dialect, failure: &'a Failure<'a>) -> Self {
        let spoken = Spoken::read(failure);
        let said = spoken.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        let arrived = failure.status.filter(|status| !(200..300).contains(status));
        let status = arrived.or(spoken.status).or_else(|| generic::implied_status(&spoken, &said));
        let mut evidence = Self { failure, status, spoken, said, wait: None };
        evidence.wait = wait::advised(dialect, &evidence);
        evidence
    }
}
