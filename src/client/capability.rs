//! What a call asks for, held against what a model can do.

use crate::LlmError;
use crate::chat::{Content, Media, MediaSource, Output, Part, Reasoning, Request, ToolChoice, TurnRef};
use crate::provider::{Capabilities, Provider, unsupported};

/// Refuses what cannot be asked of this model, before anything is sent. Another target may be able to.
pub(super) fn check(request: &Request, provider: &dyn Provider, model: &str, stream: bool) -> Result<(), LlmError> {
    let wanted = Wanted::of(request, stream);
    if wanted == Wanted::default() {
        return Ok(());
    }
    match wanted.beyond(&provider.capabilities(model)) {
        Some((capability, cure)) => Err(unsupported(provider.name(), model, capability, cure)),
        None => Ok(()),
    }
}

/// What a call asks for beyond text, in the words of [`Capabilities`].
#[derive(Default, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // as those of the capabilities
struct Wanted {
    audio: bool,
    documents: bool,
    images: bool,
    image_urls: bool,
    json: bool,
    parallel_tool_calls: bool,
    reasoning: bool,
    schema: bool,
    stream: bool,
    tool_choice: bool,
    tools: bool,
}

impl Wanted {
    fn of(request: &Request, stream: bool) -> Self {
        let has_tools = !request.tools.is_empty();
        let mut wanted = Self {
            json: request.output == Output::Json,
            schema: matches!(request.output, Output::Schema(_)),
            // A model that cannot think does not think.
            reasoning: request.reasoning.is_some_and(|reasoning| reasoning != Reasoning::Off),
            stream,
            tools: has_tools,
            parallel_tool_calls: has_tools && request.parallel_tool_calls.is_some(),
            tool_choice: matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_)),
            ..Self::default()
        };
        for turn in request.turns() {
            match turn {
                TurnRef::Assistant(_, calls) => wanted.tools |= !calls.is_empty(),
                TurnRef::Tool(results) => {
                    wanted.tools = true;
                    for result in results {
                        wanted.look_at(&result.content);
                    }
                }
                TurnRef::User(content) => wanted.look_at(content),
            }
        }
        wanted
    }

    fn look_at(&mut self, content: &Content) {
        for part in content.parts() {
            match part {
                Part::Audio(_) => self.audio = true,
                Part::Document(_) => self.documents = true,
                Part::Image(Media { source: MediaSource::Base64(_), .. }) => self.images = true,
                Part::Image(Media { source: MediaSource::Url(_), .. }) => self.image_urls = true,
                Part::Reasoning(_) | Part::Text { .. } => {}
            }
        }
    }

    /// The first of these that the model cannot do, and what to do instead.
    fn beyond(&self, can: &Capabilities) -> Option<(&'static str, &'static str)> {
        const ANOTHER: &str = "choose another model or provider";
        [
            (self.stream && !can.stream, "stream", "call it without a stream"),
            (self.tools && !can.tools, "tools", ANOTHER),
            (
                self.tool_choice && !can.tool_choice,
                "tool_choice",
                "leave the choice to the model, or choose another model or provider",
            ),
            (self.parallel_tool_calls && !can.parallel_tool_calls, "parallel_tool_calls", "leave it out"),
            (
                self.schema && !can.schema,
                "schema",
                "ask for JSON with the schema in the prompt, or choose another model or provider",
            ),
            (self.json && !can.json, "json", "ask for it in the prompt, or choose another model or provider"),
            (self.reasoning && !can.reasoning, "reasoning", "leave it out, or choose another model"),
            (self.images && !can.images, "images", ANOTHER),
            (
                self.image_urls && !can.image_urls,
                "image_urls",
                "give the picture's bytes where the model takes them, or choose another model or provider",
            ),
            (self.documents && !can.documents, "documents", "give their text, or choose another model or provider"),
            (self.audio && !can.audio, "audio", ANOTHER),
        ]
        .into_iter()
        .find_map(|(is_beyond, capability, cure)| is_beyond.then_some((capability, cure)))
    }
}
