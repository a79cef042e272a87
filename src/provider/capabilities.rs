//! What an adapter can ask of a model.

/// What an adapter can ask of a model. What a call asks for beyond it is refused before anything is sent, as
/// `unsupported_capability`.
///
/// It says what the protocol and this adapter can express, and what the model is known not to take; a model that nothing
/// is known of is taken to be able to do all that its protocol can.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is an answer of its own
#[non_exhaustive]
pub struct Capabilities {
    /// Sound in a turn of the user.
    pub audio: bool,
    /// Documents in a turn of the user.
    pub documents: bool,
    /// Pictures in a turn of the user, as bytes.
    pub images: bool,
    /// Pictures in a turn of the user, by their URL.
    pub image_urls: bool,
    /// An answer that is any JSON.
    pub json: bool,
    /// Switching parallel tool calls on or off.
    pub parallel_tool_calls: bool,
    /// How much to think.
    pub reasoning: bool,
    /// An answer of a JSON schema, by the provider's own means or a forced tool.
    pub schema: bool,
    /// Answers as streams.
    pub stream: bool,
    /// Forcing the model to call a tool: `Required` and `Named`.
    pub tool_choice: bool,
    /// Tools.
    pub tools: bool,
}

impl Capabilities {
    /// Text alone.
    pub const fn text() -> Self {
        Self {
            audio: false,
            documents: false,
            images: false,
            image_urls: false,
            json: false,
            parallel_tool_calls: false,
            reasoning: false,
            schema: false,
            stream: false,
            tool_choice: false,
            tools: false,
        }
    }

    /// Everything.
    pub const fn all() -> Self {
        Self {
            audio: true,
            documents: true,
            images: true,
            image_urls: true,
            json: true,
            parallel_tool_calls: true,
            reasoning: true,
            schema: true,
            stream: true,
            tool_choice: true,
            tools: true,
        }
    }
}
