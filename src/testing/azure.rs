//! Azure `OpenAI`: chat completions on deployments, behind a gateway with errors of its own.

use super::answer::{Failure, Reply};
use super::http1::Request;
use super::openai::{EVENT_STREAM, OpenAi, asked, chunks, completion, read};
use super::protocol::{Asked, Protocol, Rendered, seconds};
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

const V1: &str = "/openai/v1/chat/completions";
const DEPLOYMENTS: &str = "/openai/deployments/";

#[derive(Debug)]
pub(super) struct Azure;

impl Protocol for Azure {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn read(&self, request: &Request, id: &str) -> Result<Asked, Rendered> {
        let bearer = request.headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
        if !bearer && !request.headers.contains_key("api-key") {
            return Err(refusal(401, "401", "access denied: there is no valid key and no token", id));
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let deployment = path.strip_prefix(DEPLOYMENTS).and_then(|rest| rest.strip_suffix("/chat/completions"));
        let versioned = url::form_urlencoded::parse(query.as_bytes())
            .any(|(name, value)| name == "api-version" && !value.is_empty());
        let body = match deployment {
            Some(deployment) if versioned => {
                // The deployment is the model, whatever the body says.
                let mut request = request.clone();
                if let Ok(Value::Object(mut body)) = serde_json::from_slice(&request.body) {
                    body.insert("model".to_owned(), decoded(deployment).into());
                    request.body = Value::Object(body).to_string().into();
                }
                read(&request, path)
            }
            None if path == V1 => read(request, V1),
            _ => return Err(refusal(404, "404", "resource not found", id)),
        };
        body.and_then(|body| asked(&body)).map_err(|refused| of_azure(refused.render(id), id))
    }

    fn reply(&self, reply: &Reply, asked: &Asked, id: &str) -> Rendered {
        let harmless = json!({"hate": {"filtered": false, "severity": "safe"}});
        let prompt = json!([{"prompt_index": 0, "content_filter_results": harmless}]);
        if asked.stream {
            let first = json!({"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": prompt});
            let beside = format!(r#","content_filter_results":{harmless}"#);
            let pieces = chunks(reply, asked, id, &beside);
            let pieces = [format!("data: {first}\n\n").into()].into_iter().chain(pieces).collect();
            return of_azure(Rendered::stream(EVENT_STREAM, pieces), id);
        }
        let mut body = completion(reply, asked, id);
        body["choices"][0]["content_filter_results"] = harmless.clone();
        body["prompt_filter_results"] = prompt;
        of_azure(Rendered::json(200, &body), id)
    }

    fn failure(&self, failure: &Failure, model: Option<&str>, id: &str) -> Rendered {
        match failure {
            Failure::RateLimited(wait) => limited(*wait, id),
            Failure::Status(401) | Failure::Unauthorized => {
                refusal(401, "401", "access denied: the key or the token is not valid", id)
            }
            Failure::Status(404) => refusal(404, "DeploymentNotFound", "the deployment does not exist", id),
            failure => of_azure(OpenAi.failure(failure, model, id), id),
        }
    }
}

/// An error of the gateway: its code is the status, or a name.
fn refusal(status: u16, code: &str, message: &str, id: &str) -> Rendered {
    of_azure(Rendered::json(status, &json!({"error": {"code": code, "message": message}})), id)
}

/// The wait is in the message too, in whole seconds.
fn limited(wait: Duration, id: &str) -> Rendered {
    let whole = seconds(wait);
    refusal(429, "429", &format!("the rate limit is exceeded. Please retry after {whole} seconds."), id)
        .header("retry-after", whole)
        .header("retry-after-ms", wait.as_millis().to_string())
}

/// With Azure's id in place of `OpenAI`'s.
fn of_azure(mut rendered: Rendered, id: &str) -> Rendered {
    rendered.headers.retain(|(name, _)| *name != "x-request-id");
    rendered.header("apim-request-id", id).header("x-ms-region", "Nowhere East")
}

/// A segment of a path, decoded.
fn decoded(segment: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy()
}
