//! The table, in the groups and the order of its sources: documentation and SDKs of the vendors; where those say nothing,
//! the provider tables of other clients, as of 2026-11.
//!
//! A row says what is documented and read by some code; what is unknown is left to the protocol, so that requests stay
//! minimal. Where a server takes either token field, `max_tokens` is sent.

use super::{Placeholder, Preset};
use crate::chat::{Effort, Setting};
use crate::provider::{ForcedTools, Quirks, ReasoningEcho, ReasoningForm, RulePack, TokenField, ToolIds};

/// Takes `max_completion_tokens`.
const MCT: Quirks = Quirks::none().token_field(TokenField::MaxCompletionTokens);
/// Serves OpenAI's models under their own names.
const AS_MODEL: Quirks = Quirks::openai();
/// Takes messages and tools, and nothing else.
const BARE: Quirks = Quirks::none()
    .refuses(&[Setting::MaxTokens, Setting::Seed, Setting::Stop, Setting::Temperature, Setting::TopP])
    .without_parallel_tool_calls()
    .without_json()
    .without_schema()
    .reasoning(ReasoningForm::None)
    .without_stream_options();
/// Refuses fields that it does not know, and reports usage in every stream.
const MISTRALS: Quirks = Quirks::none()
    .seed_field("random_seed")
    .required("any")
    .tool_ids(ToolIds::Nine)
    .reasoning(ReasoningForm::Effort {
        efforts: &[Effort::Low, Effort::Medium, Effort::High, Effort::XHigh],
        off: true,
    })
    .without_stream_options();
/// Has no `json_schema`.
const NO_SCHEMA: Quirks = Quirks::none().without_schema();
/// Cannot be told to call a tool.
const UNFORCED: Quirks = Quirks::none().forced_tools(ForcedTools::Never);
/// Ignores `tool_choice`.
const OLLAMAS: Quirks = UNFORCED.reasoning(LOW_TO_HIGH_OR_NONE);

const LOW_TO_HIGH: ReasoningForm =
    ReasoningForm::Effort { efforts: &[Effort::Low, Effort::Medium, Effort::High], off: false };
const LOW_TO_HIGH_OR_NONE: ReasoningForm =
    ReasoningForm::Effort { efforts: &[Effort::Low, Effort::Medium, Effort::High], off: true };
const MINIMAL_TO_HIGH: &[Effort] = &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
/// Thinks or does not.
const THINKING: ReasoningForm = ReasoningForm::Thinking { efforts: &[] };

const fn part(name: &'static str, variables: &'static [&'static str]) -> Placeholder {
    Placeholder { name, variables }
}

/// Makes a constant of each row, and a list of all.
macro_rules! presets {
    ($(
        $(#[$note:meta])*
        $constant:ident = $kind:ident($name:literal, $url:literal, $keys:expr $(,)?) $(.$set:ident($value:expr $(,)?))*;
    )*) => {
        impl Preset {
            $(
                #[doc = concat!("`", $name, "`, at `", $url, "`.")]
                $(#[$note])*
                pub const $constant: Self = Self::$kind($name, $url, &$keys)$(.$set($value))*;
            )*

            /// Every preset.
            pub const ALL: &'static [&'static Self] = &[$(&Self::$constant),*];
        }
    };
}

presets! {
    // Hosted: models of their own.

    OPENAI = hosted("openai", "https://api.openai.com/v1", ["OPENAI_API_KEY"]).quirks(AS_MODEL);
    ///
    /// The model is the name of a deployment; [`AzureOpenAi`](crate::provider::AzureOpenAi) knows more of them.
    AZURE_OPENAI = hosted(
        "azure-openai",
        "https://{resource}.openai.azure.com/openai/v1",
        ["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
    )
    .aliases(&["azure"])
    .alternates(&[("ai-services", "https://{resource}.services.ai.azure.com/openai/v1")])
    .placeholders(&[part("resource", &["AZURE_RESOURCE_NAME"])])
    .quirks(AS_MODEL.token_field(TokenField::MaxCompletionTokens).key_header("api-key"))
    .rules(RulePack::azure);
    GEMINI = hosted("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", ["GEMINI_API_KEY"])
        .quirks(Quirks::none().reasoning(ReasoningForm::Effort { efforts: MINIMAL_TO_HIGH, off: true }))
        .rules(RulePack::gemini);
    ///
    /// For tests of a change of provider; Anthropic's own protocol has more.
    ANTHROPIC = hosted("anthropic", "https://api.anthropic.com/v1", ["ANTHROPIC_API_KEY"])
        .quirks(NO_SCHEMA)
        .rules(RulePack::anthropic);
    MISTRAL = hosted("mistral", "https://api.mistral.ai/v1", ["MISTRAL_API_KEY"])
        .quirks(MISTRALS)
        .rules(RulePack::mistral);
    CODESTRAL = hosted("codestral", "https://codestral.mistral.ai/v1", ["CODESTRAL_API_KEY"])
        .quirks(MISTRALS)
        .rules(RulePack::mistral);
    DEEPSEEK = hosted("deepseek", "https://api.deepseek.com", ["DEEPSEEK_API_KEY"])
        .alternates(&[("beta", "https://api.deepseek.com/beta")])
        .quirks(
            NO_SCHEMA
                .reasoning(ReasoningForm::Thinking { efforts: &[Effort::Low, Effort::High, Effort::Max] })
                // Every turn of its present models has to have it; the model before them refuses it.
                .echo(ReasoningEcho::new("reasoning_content").always().not_for(&["deepseek-reasoner"])),
        )
        .rules(RulePack::deepseek);
    ///
    /// Counts the tokens of reasoning beside the output.
    XAI = hosted("xai", "https://api.x.ai/v1", ["XAI_API_KEY"])
        .quirks(MCT.reasoning_outside_output().reasoning(LOW_TO_HIGH))
        .rules(RulePack::xai);
    GROQ = hosted("groq", "https://api.groq.com/openai/v1", ["GROQ_API_KEY"])
        .quirks(MCT.max_stop(4).max_tools(128).without_json_beside_tools().reasoning(LOW_TO_HIGH_OR_NONE))
        .rules(RulePack::groq);
    ///
    /// Its limiter takes the whole token limit of a call in advance: set it modestly.
    CEREBRAS = hosted("cerebras", "https://api.cerebras.ai/v1", ["CEREBRAS_API_KEY"])
        .quirks(MCT.strict(true).reasoning(LOW_TO_HIGH_OR_NONE).echo(ReasoningEcho::new("reasoning")))
        .rules(RulePack::cerebras);
    PERPLEXITY = hosted("perplexity", "https://api.perplexity.ai", ["PERPLEXITY_API_KEY", "PERPLEXITYAI_API_KEY"])
        .quirks(
            Quirks::none()
                .without_tools()
                .without_json()
                .reasoning(ReasoningForm::Effort { efforts: MINIMAL_TO_HIGH, off: false })
                .without_stream_options(),
        )
        .rules(RulePack::perplexity);
    COHERE = hosted("cohere", "https://api.cohere.ai/compatibility/v1", ["COHERE_API_KEY", "CO_API_KEY"]);
    AI21 = hosted("ai21", "https://api.ai21.com/studio/v1", ["AI21_API_KEY"]).quirks(NO_SCHEMA);
    MOONSHOT = hosted("moonshot", "https://api.moonshot.ai/v1", ["MOONSHOT_API_KEY"])
        .alternates(&[("cn", "https://api.moonshot.cn/v1")])
        .quirks(UNFORCED);
    ZAI = hosted("zai", "https://api.z.ai/api/paas/v4", ["ZAI_API_KEY"])
        .alternates(&[("coding", "https://api.z.ai/api/coding/paas/v4"), ("cn", "https://open.bigmodel.cn/api/paas/v4")])
        .quirks(Quirks::none().reasoning(THINKING));
    DASHSCOPE = hosted("dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ["DASHSCOPE_API_KEY"])
        .alternates(&[("cn", "https://dashscope.aliyuncs.com/compatible-mode/v1")])
        .quirks(Quirks::none().reasoning(ReasoningForm::Switch));
    MINIMAX = hosted("minimax", "https://api.minimax.io/v1", ["MINIMAX_API_KEY"])
        .alternates(&[("cn", "https://api.minimaxi.com/v1")]);
    STEPFUN = hosted("stepfun", "https://api.stepfun.ai/v1", ["STEPFUN_API_KEY"]);
    ///
    /// Volcengine's Ark; the model may be the id of an endpoint.
    VOLCENGINE =
        hosted("volcengine", "https://ark.cn-beijing.volces.com/api/v3", ["ARK_API_KEY", "VOLCENGINE_API_KEY"])
            .aliases(&["ark"])
            .quirks(Quirks::none().reasoning(THINKING));
    TENCENT = hosted("tencent", "https://tokenhub-intl.tencentcloudmaas.com/v1", ["TENCENT_API_KEY"]);
    BAIDU_QIANFAN = hosted("baidu-qianfan", "https://qianfan.baidubce.com/v2", ["BAIDU_API_KEY"]);
    XIAOMI_MIMO = hosted("xiaomi-mimo", "https://api.xiaomimimo.com/v1", ["XIAOMI_MIMO_API_KEY"]);
    META = hosted("meta", "https://api.meta.ai/v1", ["META_API_KEY"]);
    META_LLAMA = hosted("meta-llama", "https://api.llama.com/compat/v1", ["LLAMA_API_KEY"]);
    INCEPTION = hosted("inception", "https://api.inceptionlabs.ai/v1", ["INCEPTION_API_KEY"])
        .quirks(Quirks::none().refuses(&[Setting::TopP]));
    AMAZON_NOVA = hosted("amazon-nova", "https://api.nova.amazon.com/v1", ["AMAZON_NOVA_API_KEY"]);
    BEDROCK_OPENAI =
        hosted("bedrock-openai", "https://bedrock-mantle.{region}.api.aws/openai/v1", ["AWS_BEARER_TOKEN_BEDROCK"])
            .placeholders(&[part("region", &["AWS_REGION", "AWS_DEFAULT_REGION"])])
            .quirks(MCT.reasoning(LOW_TO_HIGH));
    REKA = hosted("reka", "https://api.reka.ai/v1", ["REKA_API_KEY"]);
    SARVAM = hosted("sarvam", "https://api.sarvam.ai/v1", ["SARVAM_API_KEY"])
        .quirks(Quirks::none().key_header("api-subscription-key"));
    ///
    /// Its tokens are short-lived, so give it a `token_source`; its certificate is of a private authority, so give the client
    /// an HTTP client that knows it.
    GIGACHAT = hosted("gigachat", "https://gigachat.devices.sberbank.ru/api/v1", ["GIGACHAT_API_KEY"]);
    MORPH = hosted("morph", "https://api.morphllm.com/v1", ["MORPH_API_KEY"]);
    V0 = hosted("v0", "https://api.v0.dev/v1", ["V0_API_KEY"]).quirks(BARE);
    COGNITION = hosted("cognition", "https://api.cognition.ai/v1", ["COGNITION_API_KEY"]);
    ZERO_ONE_AI = hosted("01ai", "https://api.lingyiwanwu.com/v1", ["YI_API_KEY"]);

    // Hosted: models of many.

    ///
    /// Headers that name your application (`HTTP-Referer`, `X-Title`) are sent when you set them.
    OPENROUTER = hosted("openrouter", "https://openrouter.ai/api/v1", ["OPENROUTER_API_KEY"])
        .quirks(
            Quirks::none()
                .strict(true)
                .reasoning(ReasoningForm::Object)
                .echo(ReasoningEcho::new("reasoning_details")),
        )
        .rules(RulePack::openrouter);
    TOGETHER = hosted("together", "https://api.together.ai/v1", ["TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"])
        .alternates(&[("xyz", "https://api.together.xyz/v1")])
        .quirks(Quirks::none().reasoning(LOW_TO_HIGH))
        .rules(RulePack::together);
    FIREWORKS =
        hosted("fireworks", "https://api.fireworks.ai/inference/v1", ["FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"])
            .quirks(Quirks::none().reasoning(LOW_TO_HIGH_OR_NONE))
            .rules(RulePack::fireworks);
    DEEPINFRA = hosted("deepinfra", "https://api.deepinfra.com/v1/openai", ["DEEPINFRA_API_KEY"]);
    NVIDIA_NIM =
        hosted("nvidia-nim", "https://integrate.api.nvidia.com/v1", ["NVIDIA_NIM_API_KEY", "NVIDIA_API_KEY"]);
    SAMBANOVA = hosted("sambanova", "https://api.sambanova.ai/v1", ["SAMBANOVA_API_KEY"])
        .quirks(Quirks::none().refuses(&[Setting::Seed]));
    NEBIUS = hosted("nebius", "https://api.studio.nebius.ai/v1", ["NEBIUS_API_KEY"])
        .alternates(&[("token-factory", "https://api.tokenfactory.nebius.com/v1")]);
    NOVITA = hosted("novita", "https://api.novita.ai/v3/openai", ["NOVITA_API_KEY"]);
    HYPERBOLIC = hosted("hyperbolic", "https://api.hyperbolic.xyz/v1", ["HYPERBOLIC_API_KEY"]);
    SILICONFLOW = hosted("siliconflow", "https://api.siliconflow.com/v1", ["SILICONFLOW_API_KEY"])
        .alternates(&[("cn", "https://api.siliconflow.cn/v1")])
        .quirks(Quirks::none().reasoning(ReasoningForm::Switch));
    HUGGINGFACE = hosted("huggingface", "https://router.huggingface.co/v1", ["HF_TOKEN", "HUGGINGFACE_API_KEY"]);
    GITHUB_MODELS = hosted("github-models", "https://models.github.ai/inference", ["GITHUB_TOKEN", "GITHUB_API_KEY"])
        .alternates(&[("azure", "https://models.inference.ai.azure.com")])
        .quirks(AS_MODEL);
    VERCEL_AI_GATEWAY = hosted(
        "vercel-ai-gateway",
        "https://ai-gateway.vercel.sh/v1",
        ["VERCEL_AI_GATEWAY_API_KEY", "AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"],
    );
    HELICONE = hosted("helicone", "https://ai-gateway.helicone.ai", ["HELICONE_API_KEY"]).quirks(AS_MODEL);
    FRIENDLI = hosted("friendli", "https://api.friendli.ai/serverless/v1", ["FRIENDLI_TOKEN"]);
    FEATHERLESS =
        hosted("featherless", "https://api.featherless.ai/v1", ["FEATHERLESS_AI_API_KEY", "FEATHERLESS_API_KEY"])
            .quirks(UNFORCED);
    LAMBDA = hosted("lambda", "https://api.lambda.ai/v1", ["LAMBDA_API_KEY"]);
    BASETEN = hosted("baseten", "https://inference.baseten.co/v1", ["BASETEN_API_KEY"])
        .alternates(&[("dedicated", "https://model-{id}.api.baseten.co/environments/production/sync/v1")])
        .placeholders(&[part("id", &[])]);
    SCALEWAY = hosted("scaleway", "https://api.scaleway.ai/v1", ["SCW_SECRET_KEY"])
        .alternates(&[("project", "https://api.scaleway.ai/{project}/v1")])
        .placeholders(&[part("project", &["SCW_DEFAULT_PROJECT_ID"])]);
    WANDB = hosted("wandb", "https://api.inference.wandb.ai/v1", ["WANDB_API_KEY"]);
    VENICE = hosted("venice", "https://api.venice.ai/api/v1", ["VENICE_API_KEY", "VENICE_AI_API_KEY"]);
    CHUTES = hosted("chutes", "https://llm.chutes.ai/v1", ["CHUTES_API_KEY"]);
    POE = hosted("poe", "https://api.poe.com/v1", ["POE_API_KEY"]).quirks(NO_SCHEMA);
    GMI = hosted("gmi", "https://api.gmi-serving.com/v1", ["GMI_API_KEY"]);
    CRUSOE = hosted("crusoe", "https://api.inference.crusoecloud.com/v1", ["CRUSOE_API_KEY"]);
    NSCALE = hosted("nscale", "https://inference.api.nscale.com/v1", ["NSCALE_API_KEY"]).quirks(UNFORCED);
    OVHCLOUD =
        hosted("ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", ["OVHCLOUD_API_KEY", "OVH_API_KEY"]);
    DIGITALOCEAN =
        hosted("digitalocean", "https://inference.do-ai.run/v1", ["GRADIENT_AI_API_KEY", "DIGITALOCEAN_INFERENCE_KEY"]);
    CLOUDFLARE =
        hosted("cloudflare", "https://api.cloudflare.com/client/v4/accounts/{account_id}/ai/v1", ["CLOUDFLARE_API_KEY"])
            .placeholders(&[part("account_id", &["CLOUDFLARE_ACCOUNT_ID"])]);
    ///
    /// The model is the name of an endpoint.
    DATABRICKS = hosted("databricks", "{host}/serving-endpoints", ["DATABRICKS_API_KEY", "DATABRICKS_TOKEN"])
        .placeholders(&[part("host", &["DATABRICKS_HOST"])]);
    ///
    /// For a key-pair JWT; for another kind of token, set `X-Snowflake-Authorization-Token-Type` to it.
    SNOWFLAKE_CORTEX =
        hosted("snowflake-cortex", "https://{account}.snowflakecomputing.com/api/v2/cortex/v1", ["SNOWFLAKE_JWT"])
            .placeholders(&[part("account", &["SNOWFLAKE_ACCOUNT_ID"])])
            .headers(&[("x-snowflake-authorization-token-type", "KEYPAIR_JWT")])
            .quirks(MCT);
    ///
    /// The model is a URL.
    CLARIFAI =
        hosted("clarifai", "https://api.clarifai.com/v2/ext/openai/v1", ["CLARIFAI_API_KEY", "CLARIFAI_PAT"]);
    HEROKU = hosted("heroku", "https://us.inference.heroku.com/v1", ["HEROKU_API_KEY", "INFERENCE_KEY"]);
    PARASAIL = hosted("parasail", "https://api.parasail.io/v1", ["PARASAIL_API_KEY"]);
    PUBLICAI = hosted("publicai", "https://api.publicai.co/v1", ["PUBLICAI_API_KEY"]);
    SYNTHETIC = hosted("synthetic", "https://api.synthetic.new/openai/v1", ["SYNTHETIC_API_KEY"]);
    NANOGPT = hosted("nanogpt", "https://nano-gpt.com/api/v1", ["NANOGPT_API_KEY"]);
    AIHUBMIX = hosted("aihubmix", "https://aihubmix.com/v1", ["AIHUBMIX_API_KEY"]);
    AIMLAPI = hosted("aimlapi", "https://api.aimlapi.com/v1", ["AIML_API_KEY", "AIMLAPI_KEY"]);
    COMETAPI = hosted("cometapi", "https://api.cometapi.com/v1", ["COMETAPI_API_KEY", "COMETAPI_KEY"]);
    EDENAI = hosted("edenai", "https://api.edenai.run/v3", ["EDENAI_API_KEY"]);
    MODELSCOPE = hosted("modelscope", "https://api-inference.modelscope.cn/v1", ["MODELSCOPE_API_KEY"]);
    ATLASCLOUD = hosted("atlascloud", "https://api.atlascloud.ai/v1", ["ATLASCLOUD_API_KEY"]);
    OPENCODE_ZEN = hosted("opencode-zen", "https://opencode.ai/zen/v1", ["OPENCODE_API_KEY"])
        .alternates(&[("go", "https://opencode.ai/zen/go/v1")]);
    TENSORMESH = hosted("tensormesh", "https://serverless.tensormesh.ai/v1", ["TENSORMESH_INFERENCE_API_KEY"]);
    LIBERTAI = hosted("libertai", "https://api.libertai.io/v1", ["LIBERTAI_API_KEY"]);
    STREAMLAKE =
        hosted("streamlake", "https://vanchin.streamlake.ai/api/gateway/v1/endpoints", ["STREAMLAKE_API_KEY"])
            .quirks(MCT);
    SCX_AI = hosted("scx-ai", "https://api.scx.ai/v1", ["SCX_API_KEY"]).quirks(Quirks::none().max_temperature(1.99));
    HOSTINGER = hosted("hostinger", "https://router.hostinger.com/v1", ["HOSTINGER_ROUTER_API_KEY"]);
    COMPACTIFAI = hosted("compactifai", "https://api.compactif.ai/v1", ["COMPACTIFAI_API_KEY"]);
    OLLAMA_CLOUD =
        hosted("ollama-cloud", "https://ollama.com/v1", ["OLLAMA_API_KEY"]).quirks(OLLAMAS).rules(RulePack::ollama);

    // On this machine: no key unless they were started with one.

    ///
    /// Its own protocol takes more settings than this one.
    OLLAMA = local("ollama", "http://localhost:11434/v1", []).quirks(OLLAMAS).rules(RulePack::ollama);
    VLLM = local("vllm", "http://localhost:8000/v1", ["HOSTED_VLLM_API_KEY"]).rules(RulePack::vllm);
    ///
    /// It says that it keeps a connection for 5 s, and ends that of a streamed answer some 20 to 120 ms after it (seen in
    /// 2026-11): what is sent on it until then is lost. So each request has its own.
    LLAMA_CPP = local("llama.cpp", "http://localhost:8080/v1", [])
        .headers(&[("connection", "close")])
        .quirks(Quirks::none().forced_tools(ForcedTools::Required))
        .rules(RulePack::llama_cpp);
    LLAMAFILE = local("llamafile", "http://localhost:8080/v1", ["LLAMAFILE_API_KEY"]).rules(RulePack::llama_cpp);
    LM_STUDIO = local("lm-studio", "http://localhost:1234/v1", ["LM_API_TOKEN", "LM_STUDIO_API_KEY"])
        .quirks(Quirks::none().forced_tools(ForcedTools::Required).without_json().reasoning(LOW_TO_HIGH))
        .rules(RulePack::llama_cpp);
    LOCALAI = local("localai", "http://localhost:8080/v1", []).rules(RulePack::llama_cpp);
    SGLANG = local("sglang", "http://localhost:30000/v1", []).rules(RulePack::vllm);
    TGI = local("tgi", "http://localhost:8080/v1", []);
    XINFERENCE = local("xinference", "http://localhost:9997/v1", []);
    LEMONADE = local("lemonade", "http://localhost:8000/api/v1", ["LEMONADE_API_KEY"]).rules(RulePack::llama_cpp);
    DOCKER_MODEL_RUNNER = local("docker-model-runner", "http://localhost:12434/engines/v1", [])
        .alternates(&[("container", "http://model-runner.docker.internal/engines/v1")])
        .rules(RulePack::llama_cpp);
    OOBABOOGA = local("oobabooga", "http://localhost:5000/v1", []);
    LITELLM_PROXY = local("litellm-proxy", "http://localhost:4000/v1", ["LITELLM_PROXY_API_KEY"]);
}
