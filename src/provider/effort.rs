//! Between efforts and budgets: some models take one, some the other.

use crate::chat::Effort;

/// How many tokens of thinking an effort stands for, and which effort a budget.
///
/// A model that takes budgets is given the tokens of an effort; one that takes efforts is given the least effort that stands
/// for at least as many tokens as the budget. An adapter that needs the table takes another one.
///
/// | effort | tokens |
/// |---|---|
/// | `Minimal`, `Low` | 1,024 |
/// | `Medium` | 4,096 |
/// | `High` | 16,000 |
/// | `XHigh`, `Max` | 32,000 |
///
/// ```
/// use steadfast::chat::Effort;
/// use steadfast::provider::EffortTokens;
///
/// let table = EffortTokens::default();
/// assert_eq!((table.tokens(Effort::High), table.effort(5_000)), (16_000, Effort::High));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EffortTokens {
    /// Of `Minimal` and `Low`.
    pub low: u32,
    /// Of `Medium`.
    pub medium: u32,
    /// Of `High`.
    pub high: u32,
    /// Of `XHigh` and `Max`.
    pub max: u32,
}

impl Default for EffortTokens {
    fn default() -> Self {
        Self::new(1_024, 4_096, 16_000, 32_000)
    }
}

impl EffortTokens {
    /// A table of your own, from the least to the most.
    pub const fn new(low: u32, medium: u32, high: u32, max: u32) -> Self {
        Self { low, medium, high, max }
    }

    /// The tokens of an effort.
    pub const fn tokens(self, effort: Effort) -> u32 {
        match effort {
            Effort::Minimal | Effort::Low => self.low,
            Effort::Medium => self.medium,
            Effort::High => self.high,
            Effort::XHigh | Effort::Max => self.max,
        }
    }

    /// The effort of a budget: `Low`, `Medium`, `High` or `Max`.
    pub const fn effort(self, budget: u32) -> Effort {
        match budget {
            tokens if tokens <= self.low => Effort::Low,
            tokens if tokens <= self.medium => Effort::Medium,
            tokens if tokens <= self.high => Effort::High,
            _ => Effort::Max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_and_its_tokens_stand_for_each_other() {
        let table = EffortTokens::default();
        for effort in [Effort::Low, Effort::Medium, Effort::High, Effort::Max] {
            assert_eq!(table.effort(table.tokens(effort)), effort);
        }
        assert_eq!(
            (table.effort(0), table.effort(1_025), table.effort(u32::MAX)),
            (Effort::Low, Effort::Medium, Effort::Max)
        );
        let mine = EffortTokens::new(1, 2, 3, 4);
        assert_eq!((mine.tokens(Effort::Minimal), mine.tokens(Effort::XHigh), mine.effort(3)), (1, 4, Effort::High));
    }
}
