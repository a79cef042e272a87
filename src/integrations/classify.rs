//! Rule packs as judges of other libraries' errors.

use crate::provider::{Failure, RulePack};
use crate::resilience::clock::wall_now;
use crate::resilience::{Classify, Verdict};
use http::response::{Parts, Response};

/// Judges by status, headers and body. A body that is still to be read is no evidence: read it first, or judge the
/// [`Parts`] and accept that a spent quota is not told from a passing rate limit.
///
/// ```
/// use steadfast::http::Response;
/// use steadfast::provider::RulePack;
/// use steadfast::resilience::{Advice, Classify};
///
/// let spent = r#"{"error":{"code":"insufficient_quota","message":"no credit"}}"#;
/// let response = Response::builder().status(429).header("retry-after", "1").body(spent)?;
/// assert_eq!(Classify::classify(&RulePack::openai(), &response).retry, Advice::Never);
/// # Ok::<(), steadfast::http::Error>(())
/// ```
impl<B: AsRef<[u8]>> Classify<Response<B>> for RulePack {
    fn classify(&self, response: &Response<B>) -> Verdict {
        let body = response.body().as_ref();
        self.verdict(&Failure::answer(response.status().as_u16(), response.headers(), body).at(wall_now()))
    }
}

/// Judges by status and headers alone.
impl Classify<Parts> for RulePack {
    fn classify(&self, head: &Parts) -> Verdict {
        self.verdict(&Failure::answer(head.status.as_u16(), &head.headers, &[]).at(wall_now()))
    }
}

/// Judges what broke below HTTP; an error made of a response (`error_for_status`) by its status alone, which is all that it
/// has; a body that is not what it should be, and a redirect that leads nowhere, as an answer that is not the protocol.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use steadfast::provider::RulePack;
/// use steadfast::resilience::{Policy, Retry};
/// # use steadfast::testing::{Answer, FakeProvider, Fault};
/// # let fake = FakeProvider::http().then(Fault::reset_before_head()).then(Answer::text("pong")).start().await?;
/// # let url = fake.origin();
///
/// # let retry = Retry::new(2).base_delay(std::time::Duration::from_millis(1));
/// let policy = Policy::new().retry(retry).classify(RulePack::generic());
/// let http = reqwest::Client::new();
/// let text = policy.run(|_attempt| async { http.get(&url).send().await?.error_for_status()?.text().await }).await?;
/// assert_eq!(text, "pong");
/// # Ok(()) }
/// ```
#[cfg(feature = "reqwest")]
impl Classify<reqwest::Error> for RulePack {
    fn classify(&self, error: &reqwest::Error) -> Verdict {
        self.verdict(&evidence(error))
    }
}

/// What a `reqwest::Error` tells of.
#[cfg(feature = "reqwest")]
fn evidence(error: &reqwest::Error) -> Failure<'static> {
    use crate::provider::AnswerFault;
    use std::error::Error;

    if let Some(status) = error.status() {
        return Failure { status: Some(status.as_u16()), at: Some(wall_now()), ..Failure::default() };
    }
    // A body that breaks off is a decoding error too; only one that arrived and cannot be read is final.
    let unreadable = error.is_decode() && error.source().is_some_and(<dyn Error>::is::<serde_json::Error>);
    if unreadable || error.is_redirect() {
        return Failure::default().fault(AnswerFault::Invalid("not what was expected".to_owned()));
    }
    Failure::transport(crate::transport::sort(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resilience::{Advice, Health};
    use std::time::Duration;

    fn judge<E>(rules: &RulePack, error: &E) -> Verdict
    where
        RulePack: Classify<E>,
    {
        Classify::classify(rules, error)
    }

    #[test]
    fn an_advised_date_is_measured_from_now() {
        let date = httpdate::fmt_http_date(wall_now() + Duration::from_secs(30));
        let head = Response::builder().status(503).header("retry-after", date).body(()).expect("valid").into_parts().0;
        let Advice::After(wait) = judge(&RulePack::generic(), &head).retry else { panic!("no advice was read") };
        assert!((28..=30).contains(&wait.as_secs()), "{wait:?}");
    }

    #[test]
    fn a_head_alone_does_not_show_a_spent_quota() {
        let body = r#"{"error":{"code":"insufficient_quota"}}"#;
        let response = Response::builder().status(429).body(body).expect("valid");
        assert_eq!(judge(&RulePack::openai(), &response).retry, Advice::Never);
        assert_eq!(judge(&RulePack::openai(), &response.into_parts().0).retry, Advice::Backoff);
    }

    #[cfg(feature = "reqwest")]
    #[tokio::test]
    async fn errors_of_reqwest_are_told_apart() -> Result<(), Box<dyn std::error::Error>> {
        use crate::testing::{Answer, FakeProvider, Fault};

        let fake = FakeProvider::http()
            .then(Fault::reset_before_head())
            .then(Answer::raw(503))
            .then(Answer::raw(200).body("{"))
            .then(Answer::raw(200).body("[1, 2]").cut_after(2))
            .start()
            .await?;
        let client = crate::transport::default_client(None)?;
        let url = fake.origin();
        let send = || client.get(&url).send();
        let rules = RulePack::generic();

        let error = send().await.expect_err("it was reset");
        assert_eq!(judge(&rules, &error), Verdict::transient("connection_interrupted"));
        let error = send().await?.error_for_status().expect_err("503");
        assert_eq!(judge(&rules, &error), Verdict { tag: Some(503), ..Verdict::transient("server_error") });
        let error = send().await?.json::<u8>().await.expect_err("it is no number");
        assert_eq!((judge(&rules, &error).label, judge(&rules, &error).retry), ("response_invalid", Advice::Never));
        let error = send().await?.bytes().await.expect_err("it was cut");
        assert_eq!(judge(&rules, &error), Verdict::transient("connection_interrupted"));

        fake.set_otherwise(Answer::raw(302).header("location", "/"));
        let error = reqwest::get(&url).await.expect_err("it leads back to itself");
        assert_eq!((judge(&rules, &error).label, judge(&rules, &error).retry), ("response_invalid", Advice::Never));

        let refused = FakeProvider::refused()?;
        let error = client.get(refused.origin()).send().await.expect_err("it was refused");
        assert_eq!(judge(&rules, &error), Verdict::transient("connection_failed"));
        let error = client.get("no url").send().await.expect_err("it is no URL");
        let verdict = judge(&rules, &error);
        assert_eq!((verdict.retry, verdict.health), (Advice::Never, Health::Neutral));
        Ok(())
    }
}
