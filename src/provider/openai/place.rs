//! What every door to OpenAI's protocols shares: a place, credentials, families of models and rules.

use super::family::{ModelFamily, find};
use crate::LlmError;
use crate::chat::{EffortBudgets, Reasoning, Request, Sampling};
use crate::provider::endpoint::Endpoint;
use crate::provider::refusal::{check_range, unsupported};
use crate::provider::{Auth, Headers, RulePack};
use crate::record::ConfigError;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::OnceLock;
use url::Url;

/// One place that speaks one of OpenAI's protocols.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Place {
    name: Cow<'static, str>,
    endpoint: Endpoint,
    families: Cow<'static, [ModelFamily]>,
    /// The model that was looked up first, and what is known of it: most targets ask one.
    first: OnceLock<(String, Option<ModelFamily>)>,
    rules: RulePack,
    budgets: EffortBudgets,
}

/// Where a body of one of the protocols says how hard to think: the names that lead there. Some models want reasoning off
/// beside sampling settings.
pub(in crate::provider) struct EffortField(pub(in crate::provider) &'static [&'static str]);

impl EffortField {
    /// Whether the call switches reasoning off, in neutral words or in the protocol's own.
    pub(in crate::provider) fn is_off(&self, request: &Request) -> bool {
        if request.reasoning == Some(Reasoning::Off) {
            return true;
        }
        let mut names = self.0.iter();
        let top = names.next().and_then(|name| request.extra.get(*name));
        names.fold(top, |at, name| at?.get(name)).and_then(Value::as_str) == Some("none")
    }
}

impl Place {
    pub(in crate::provider) fn new(
        name: impl Into<Cow<'static, str>>,
        endpoint: Endpoint,
        families: &'static [ModelFamily],
        rules: RulePack,
    ) -> Self {
        Self {
            name: name.into(),
            endpoint,
            families: Cow::Borrowed(families),
            first: OnceLock::new(),
            rules,
            budgets: EffortBudgets::default(),
        }
    }

    pub(in crate::provider) fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    pub(in crate::provider) fn base_url(mut self, base_url: &str) -> Self {
        self.endpoint = self.endpoint.base_url(base_url);
        self
    }

    /// With what is wrong with it.
    pub(in crate::provider) fn fault(mut self, fault: ConfigError) -> Self {
        self.endpoint = self.endpoint.fault(fault);
        self
    }

    pub(in crate::provider) fn with_auth(mut self, auth: Result<Auth, ConfigError>) -> Self {
        self.endpoint = self.endpoint.auth(auth);
        self
    }

    pub(in crate::provider) fn header(mut self, name: &str, value: &str) -> Self {
        self.endpoint = self.endpoint.header(name, value);
        self
    }

    pub(in crate::provider) fn with_families(mut self, families: impl Into<Cow<'static, [ModelFamily]>>) -> Self {
        (self.families, self.first) = (families.into(), OnceLock::new());
        self
    }

    pub(in crate::provider) fn with_rules(mut self, rules: RulePack) -> Self {
        self.rules = rules;
        self
    }

    pub(in crate::provider) fn with_budgets(mut self, budgets: EffortBudgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// What efforts are worth in tokens.
    pub(in crate::provider) fn budgets(&self) -> &EffortBudgets {
        &self.budgets
    }

    pub(in crate::provider) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::provider) fn rules(&self) -> &RulePack {
        &self.rules
    }

    pub(in crate::provider) fn auth(&self) -> &Auth {
        self.endpoint.credentials()
    }

    pub(in crate::provider) fn check(&self) -> Result<(), ConfigError> {
        self.endpoint.check()
    }

    /// The URL and the headers of a request.
    pub(in crate::provider) fn request_line(&self) -> Result<(Url, Headers), ConfigError> {
        self.endpoint.request_line()
    }

    /// What is known of `model`.
    pub(in crate::provider) fn family(&self, model: &str) -> Option<&ModelFamily> {
        let look_up = || find(&self.families, model);
        let (first, known) = self.first.get_or_init(|| (model.to_owned(), look_up().cloned()));
        if first == model { known.as_ref() } else { look_up() }
    }

    /// Refuses, before anything is sent, values out of range and what models of this family are known not to take.
    pub(in crate::provider) fn check_sampling(
        &self,
        request: &Request,
        model: &str,
        family: &ModelFamily,
        max_temperature: f64,
        effort: &EffortField,
    ) -> Result<(), LlmError> {
        let Sampling { temperature, top_p, .. } = request.sampling;
        check_range(self.name(), "temperature", temperature, max_temperature)?;
        check_range(self.name(), "top_p", top_p, 1.0)?;
        match family.refused(&request.sampling, effort.is_off(request)) {
            Some((setting, true)) => {
                let cure = "leave it out, or switch reasoning off (`Reasoning::Off`)";
                Err(unsupported(self.name(), model, setting, cure))
            }
            Some((setting, false)) => {
                Err(unsupported(self.name(), model, setting, "leave it out, or choose another model"))
            }
            None => Ok(()),
        }
    }
}
