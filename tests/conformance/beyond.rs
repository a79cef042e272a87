//! What the suite has to know of an adapter that can do more than text: streams, tools, forms of the answer, pictures,
//! reasoning.
//!
//! An adapter opts in by implementing [`Beyond`] in its own file, and by a line at the end of `main.rs`. What it says that it
//! has not is not tried.

use crate::subject::Subject;
use serde_json::Value;
use steadfast::chat::ToolChoice;
use steadfast::testing::Received;

/// An adapter that can do more than text, and its protocol.
pub(crate) trait Beyond: Subject {
    /// A model that takes tools, pictures and schemas.
    const CAPABLE: &'static str = Self::MODEL;
    /// A model that thinks; none where nothing shows it.
    const THINKER: Option<&'static str> = None;
    /// Whether reasoning comes with something that goes back with the next turn.
    const REASONING_GOES_BACK: bool = false;
    /// Whether the protocol has words for whether tools are called, and which.
    const CHOICE: bool = true;
    /// Whether the protocol has a switch for parallel calls.
    const PARALLEL: bool = true;
    /// Whether the protocol sends arguments as a text, which may be no JSON.
    const ARGUMENTS_ARE_TEXT: bool = true;
    /// Whether the protocol reports what a stream spent.
    const STREAMED_USAGE: bool = true;

    /// A name that the protocol does not take for a tool.
    const BAD_TOOL_NAME: Option<&'static str> = Some("get weather");

    /// What a request asks beyond text, in neutral words.
    fn asked_beyond(received: &Received) -> AskedBeyond;
}

/// What a request asks beyond text, read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AskedBeyond {
    /// The tools: names and schemas of the arguments.
    pub(crate) tools: Vec<(String, Value)>,
    /// Unset where the request does not say.
    pub(crate) choice: Option<ToolChoice>,
    pub(crate) parallel: Option<bool>,
    /// The calls in its history: ids, names, arguments.
    pub(crate) calls: Vec<(String, String, Value)>,
    /// The results in it: ids, and texts as the model reads them.
    pub(crate) results: Vec<(String, String)>,
    /// The pictures: base64, or a URL.
    pub(crate) images: Vec<String>,
    /// Whether the answer is to be JSON of any shape.
    pub(crate) json: bool,
    /// The schema that the answer is to have, as the provider gets it.
    pub(crate) schema: Option<Value>,
    /// How much the model is to think, in the protocol's own word or number.
    pub(crate) reasoning: Option<Value>,
    /// Whether reasoning of an earlier turn goes back.
    pub(crate) reasoned: bool,
}
