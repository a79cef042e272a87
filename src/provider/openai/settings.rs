//! The settings of an account at OpenAI, the same for both of its protocols.

use super::super::env::{env_key, env_var};
use super::Place;
use crate::record::ConfigError;
use secrecy::SecretString;

/// The key of the environment, and what else it says about the account.
pub(in crate::provider) fn from_account() -> Result<(SecretString, impl FnOnce(Place) -> Place), ConfigError> {
    let key = env_key(&["OPENAI_API_KEY"])?;
    Ok((key, |mut place: Place| {
        if let Some(url) = env_var("OPENAI_BASE_URL") {
            place = place.base_url(&url);
        }
        for (variable, header) in [("OPENAI_ORG_ID", "openai-organization"), ("OPENAI_PROJECT_ID", "openai-project")] {
            if let Some(value) = env_var(variable) {
                place = place.header(header, &value);
            }
        }
        place
    }))
}

/// Gives an adapter for OpenAI its settings. It has a `new` that takes a key, and an `at` that changes its [`Place`].
macro_rules! account_settings {
    ($adapter:ident) => {
        impl $adapter {
            /// OpenAI with the key of `OPENAI_API_KEY`, and with `OPENAI_BASE_URL`, `OPENAI_ORG_ID` and
            /// `OPENAI_PROJECT_ID` where they are set.
            ///
            /// # Errors
            ///
            /// When `OPENAI_API_KEY` is not set; the error names it.
            pub fn from_env() -> Result<Self, $crate::record::ConfigError> {
                let (key, rest) = $crate::provider::openai::from_account()?;
                Ok(Self::new(key).at(rest))
            }

            /// Another place than `https://api.openai.com/v1`, such as a residency host or a proxy. Its path is kept.
            #[must_use]
            pub fn base_url(self, url: &str) -> Self {
                self.at(|place| place.base_url(url))
            }

            /// The organization to bill (`OpenAI-Organization`).
            #[must_use]
            pub fn organization(self, organization: &str) -> Self {
                self.at(|place| place.header("openai-organization", organization))
            }

            /// The project to bill (`OpenAI-Project`).
            #[must_use]
            pub fn project(self, project: &str) -> Self {
                self.at(|place| place.header("openai-project", project))
            }

            /// What models take, instead of the built-in table: models change faster than releases.
            #[must_use]
            pub fn families(self, families: impl Into<Vec<$crate::provider::ModelFamily>>) -> Self {
                self.at(|place| place.with_families(families.into()))
            }

            /// What efforts of reasoning are worth in tokens, where a call gives a budget and the protocol knows efforts
            /// alone.
            #[must_use]
            pub fn effort_budgets(self, budgets: $crate::chat::EffortBudgets) -> Self {
                self.at(|place| place.with_budgets(budgets))
            }

            /// What errors mean, instead of [`RulePack::openai`].
            #[must_use]
            pub fn rule_pack(self, rules: RulePack) -> Self {
                self.at(|place| place.with_rules(rules))
            }
        }
    };
}

pub(in crate::provider) use account_settings;
