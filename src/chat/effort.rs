//! How hard a model is to think, in words and in tokens.

use super::Effort;
use serde::{Deserialize, Serialize};

/// What each effort is worth in tokens: how an adapter turns one form of [`Reasoning`](super::Reasoning) into the other,
/// where a model knows only that one.
///
/// Defaults: 1,024 for [`Minimal`](Effort::Minimal), 4,096 for [`Low`](Effort::Low), 16,000 for
/// [`Medium`](Effort::Medium), 32,000 for [`High`](Effort::High) and beyond. Adapters that convert take a table of your own.
///
/// ```
/// use steadfast::chat::{Effort, EffortBudgets};
/// let budgets = EffortBudgets::default();
/// assert_eq!(budgets.tokens(Effort::Medium), 16_000);
/// assert_eq!(budgets.effort(20_000), Effort::Medium);
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EffortBudgets {
    /// Tokens of [`Effort::Minimal`].
    pub minimal: u32,
    /// Tokens of [`Effort::Low`].
    pub low: u32,
    /// Tokens of [`Effort::Medium`].
    pub medium: u32,
    /// Tokens of [`Effort::High`] and every higher one.
    pub high: u32,
}

impl EffortBudgets {
    /// A table. The numbers have to rise.
    pub const fn new(minimal: u32, low: u32, medium: u32, high: u32) -> Self {
        Self { minimal, low, medium, high }
    }

    /// What an effort is worth.
    pub const fn tokens(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Minimal => self.minimal,
            Effort::Low => self.low,
            Effort::Medium => self.medium,
            Effort::High | Effort::XHigh | Effort::Max => self.high,
        }
    }

    /// The highest effort that is worth at most so many tokens, or the least.
    pub const fn effort(&self, tokens: u32) -> Effort {
        if tokens >= self.high {
            Effort::High
        } else if tokens >= self.medium {
            Effort::Medium
        } else if tokens >= self.low {
            Effort::Low
        } else {
            Effort::Minimal
        }
    }
}

impl Default for EffortBudgets {
    fn default() -> Self {
        Self::new(1_024, 4_096, 16_000, 32_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_form_becomes_the_other() {
        let budgets = EffortBudgets::default();
        for (effort, tokens) in
            [(Effort::Minimal, 1_024), (Effort::Low, 4_096), (Effort::Medium, 16_000), (Effort::High, 32_000)]
        {
            assert_eq!((budgets.tokens(effort), budgets.effort(tokens)), (tokens, effort));
        }
        assert_eq!((budgets.tokens(Effort::XHigh), budgets.tokens(Effort::Max)), (32_000, 32_000));
        assert_eq!(
            [0, 4_095, 31_999, u32::MAX].map(|tokens| budgets.effort(tokens)),
            [Effort::Minimal, Effort::Minimal, Effort::Medium, Effort::High]
        );
    }
}
