//! This crate's own client, as the runner sees it. Thin: it configures, calls, and prints what came back.

use super::subject::{
    CallSpec, Client, Failure, NotConfigured, Outcome, Reason, Setup, Subject, TargetSetup, ToolCall, ToolSpec, Usage,
};
use serde_json::Value;
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;
use steadfast::chat::{Output, Reply, Request, Tool};
use steadfast::provider::{Anthropic, AzureOpenAi, Gemini, Ollama, OpenAi, OpenAiCompatible};
use steadfast::resilience::{CircuitBreaker, Jitter, RateLimit, Retry};
use steadfast::{Call, LlmError, Target};
use tokio_util::sync::CancellationToken;

/// Makes clients of this crate.
#[derive(Debug)]
pub(crate) struct Steadfast;

/// A client of this crate, made for one case.
#[derive(Debug)]
pub(crate) struct SteadfastClient(steadfast::Client);

impl Subject for Steadfast {
    type Client = SteadfastClient;

    fn configure(&self, setup: &Setup) -> Result<SteadfastClient, NotConfigured> {
        let config = &setup.config;
        let mut targets = setup.targets.iter().map(|target| guarded(setup, target));
        let primary = targets.next().ok_or_else(|| NotConfigured::Failed("no target".to_owned()))??;
        let mut builder = steadfast::Client::builder(primary)
            .connect_timeout(millis(config.connect_timeout_ms))
            .idle_timeout(millis(config.idle_timeout_ms))
            .deadline(config.deadline_ms.map(millis));
        if let Some(bytes) = config.max_event_bytes {
            builder = builder.max_event_bytes(bytes);
        }
        for target in targets {
            builder = builder.fallback(target?);
        }
        if let Some(retries) = config.default_max_retries {
            builder = builder.retry(Retry::new(retries));
        }
        builder.build().map(SteadfastClient).map_err(|error| NotConfigured::Failed(error.to_string()))
    }
}

fn guarded(setup: &Setup, at: &TargetSetup) -> Result<Target, NotConfigured> {
    let config = &setup.config;
    let jitter = match config.jitter.as_str() {
        "none" => Jitter::None,
        "equal" => Jitter::Equal,
        "full" => Jitter::Full,
        other => return Err(NotConfigured::unsupported(format!("jitter {other}"))),
    };
    let retry = Retry::new(config.max_retries)
        .base_delay(millis(config.base_delay_ms))
        .max_delay(millis(config.max_delay_ms))
        .jitter(jitter)
        .max_retry_after(millis(config.max_retry_after_ms));
    let mut target = adapter(setup, at)?.retry(retry).timeout(millis(config.timeout_ms));
    if let Some(breaker) = &config.breaker {
        target = target.circuit_breaker(
            CircuitBreaker::consecutive(breaker.consecutive)
                .cooldown(millis(breaker.cooldown_ms))
                .half_open_probes(breaker.half_open_probes.unwrap_or(1)),
        );
    }
    if let Some(limiter) = &config.limiter {
        let mut limit = RateLimit::new();
        if let Some(most) = limiter.max_concurrent {
            limit = limit.max_concurrent(u32::try_from(most).unwrap_or(u32::MAX));
        }
        if let Some(tokens) = limiter.tokens_per_minute {
            limit = limit.tokens_per_minute(tokens);
        }
        if let Some(time) = limiter.max_queue_time_ms {
            limit = limit.max_queue_time(millis(time));
        }
        target = target.rate_limit(limit);
    }
    Ok(target)
}

fn adapter(setup: &Setup, at: &TargetSetup) -> Result<Target, NotConfigured> {
    let key = setup.api_key.as_str();
    let base = at.base_url.trim_end_matches('/');
    match (setup.api.as_str(), setup.preset.as_deref()) {
        ("openai_chat", None) => Ok(Target::new(OpenAi::new(key).base_url(&format!("{base}/v1")), &at.model)),
        ("azure_chat", _) => Ok(Target::new(AzureOpenAi::new(base).api_key(key), &at.model)),
        ("openai_chat", Some(preset)) => {
            let server =
                OpenAiCompatible::preset(preset).map_err(|_| NotConfigured::unsupported(format!("preset {preset}")))?;
            Ok(Target::new(server.api_key(key).base_url(&format!("{base}/v1")), &at.model))
        }
        ("anthropic_messages", None) => Ok(Target::new(Anthropic::new(key).base_url(base), &at.model)),
        ("gemini_generate", None) => Ok(Target::new(Gemini::new(key).base_url(base), &at.model)),
        #[cfg(feature = "bedrock")]
        ("bedrock_converse", None) => Ok(Target::new(bedrock(setup).base_url(base), &at.model)),
        ("ollama_chat", None) => Ok(Target::new(Ollama::new().api_key(key).base_url(base), &at.model)),
        (api, _) => Err(NotConfigured::unsupported(api)),
    }
}

#[cfg(feature = "bedrock")]
fn bedrock(setup: &Setup) -> steadfast::provider::Bedrock {
    use steadfast::provider::Bedrock;
    match &setup.aws {
        Some(keys) => Bedrock::with_credentials(
            &keys.region,
            &keys.access_key_id,
            keys.secret_access_key.as_str(),
            keys.session_token.clone().map(Into::into),
        ),
        None => Bedrock::bearer("us-east-1", setup.api_key.as_str()),
    }
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Client for SteadfastClient {
    async fn call(&self, spec: CallSpec) -> Outcome {
        let mut request = Request::user(spec.prompt);
        let tool = |tool: ToolSpec| Tool::new(tool.name, tool.description).parameters(tool.parameters);
        request.tools = spec.tools.into_iter().map(tool).collect();
        if spec.json {
            request.output = Output::Json;
        }
        let mut call = Call::from(request);
        if let Some(tokens) = spec.estimated_tokens {
            call = call.estimated_tokens(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        let token = CancellationToken::new();
        let _canceller = spec.cancel_after.map(|after| {
            if after.is_zero() {
                token.cancel();
            }
            let token = token.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                token.cancel();
            })
        });
        let call = call.cancel_on(token);
        if spec.stream {
            return self.stream(call, spec.drop_after_first_chunk).await;
        }
        match self.0.call(call).await {
            Ok(reply) => answered(&reply),
            Err(error) => failed(&error),
        }
    }
}

impl SteadfastClient {
    async fn stream(&self, call: Call, drop_after_first_chunk: bool) -> Outcome {
        let mut stream = match self.0.stream(call).await {
            Ok(stream) => stream,
            Err(error) => return failed(&error),
        };
        let mut delivered = String::new();
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(chunk) => delivered.push_str(chunk.text()),
                Err(error) => return Outcome { delivered_text: delivered, ..failed(&error) },
            }
            if drop_after_first_chunk && !delivered.is_empty() {
                return Outcome::dropped();
            }
        }
        match stream.into_reply().await {
            Ok(reply) => Outcome { delivered_text: delivered, ..answered(&reply) },
            Err(error) => Outcome { delivered_text: delivered, ..failed(&error) },
        }
    }
}

fn failed(error: &LlmError) -> Outcome {
    let partial = error.partial();
    Outcome {
        error: Some(failure(error)),
        partial_text: partial.map(|reply| reply.text().to_owned()),
        tool_calls: partial.map_or(Vec::new(), calls),
        ..Outcome::default()
    }
}

fn calls(reply: &Reply) -> Vec<ToolCall> {
    let call = |call: &steadfast::chat::ToolCall| ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    reply.tool_calls().iter().map(call).collect()
}

/// The signature of a signed thought, wherever its protocol puts it.
fn signature(reply: &Reply) -> Option<String> {
    fn find(value: &Value) -> Option<&str> {
        let named =
            ["signature", "thoughtSignature", "encrypted_content"].iter().find_map(|name| value.get(name)?.as_str());
        named.or_else(|| value.as_object()?.values().find_map(find)).or_else(|| value.as_array()?.iter().find_map(find))
    }
    reply.opaque().iter().find_map(|block| find(&block.data)).map(str::to_owned)
}

fn answered(reply: &Reply) -> Outcome {
    let finish = serde_json::to_value(reply.finish_reason()).ok();
    Outcome {
        ok: true,
        text: Some(reply.text().to_owned()),
        finish_reason: finish.and_then(|finish| finish.as_str().map(str::to_owned)),
        tool_calls: calls(reply),
        usage: reply.usage().map(|usage| Usage {
            input: Some(usage.input),
            output: Some(usage.output),
            total: Some(usage.total),
            cached_input: usage.cached_input,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
        }),
        reasoning: reply.reasoning().map(str::to_owned),
        reasoning_signature: signature(reply),
        refusal: reply.refusal().map(str::to_owned),
        ..Outcome::default()
    }
}

/// All that can be printed of an error, its attempts and its sources.
fn failure(error: &LlmError) -> Failure {
    let mut debug = format!("{error:?}\n{error:#?}");
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(debug, "\n{cause}\n{cause:?}\n{cause:#?}");
        source = cause.source();
    }
    let reason = |kind: steadfast::ErrorKind, code: Option<steadfast::ErrorCode>, status| Reason {
        kind: kind.to_string(),
        code: code.map(|code| code.to_string()),
        status,
    };
    let mut attempts: Vec<_> =
        error.attempts().iter().map(|a| reason(a.error.kind, a.error.code, a.error.status)).collect();
    if attempts.is_empty() && error.request().is_some() {
        attempts.push(reason(error.kind(), error.code(), error.status()));
    }
    Failure {
        kind: error.kind().to_string(),
        code: error.code().map(|code| code.to_string()),
        status: error.status(),
        retryable: error.is_retryable(),
        retry_after_ms: error.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        provider_message: error.provider_message().map(str::to_owned),
        message: error.to_string(),
        debug,
        json: serde_json::to_value(error).unwrap_or(Value::Null),
        attempts,
        targets: error.targets().iter().map(|t| reason(t.error.kind, t.error.code, t.error.status)).collect(),
    }
}
