//! How many tokens a request will probably spend, for the limiter.

use super::target::ReadyTarget;
use crate::chat::{Content, Request, ToolCall, TurnRef};

/// What an answer is taken to be worth when the request sets no limit.
const UNLIMITED_ANSWER: u32 = 1_000;

/// The estimate for this target: the call's own, else the target's hook, or a quarter of the characters and the token limit.
pub(super) fn estimate(target: &ReadyTarget, request: &Request, own: Option<u32>) -> u32 {
    let Some(limiter) = &target.guards.limiter else { return 0 };
    let tokens = match (own, &target.estimate) {
        (Some(tokens), _) => return tokens,
        (None, Some(estimate)) => estimate(request),
        (None, None) => by_characters(request),
    };
    let share = limiter.estimate_fraction();
    if share >= 1.0 {
        return tokens;
    }
    // In [0, tokens], so it fits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let share = (f64::from(tokens) * share).ceil() as u32;
    share
}

fn by_characters(request: &Request) -> u32 {
    prompt(request).saturating_add(request.sampling.max_tokens.unwrap_or(UNLIMITED_ANSWER))
}

/// The tokens that the prompt of a request probably has.
pub(super) fn prompt(request: &Request) -> u32 {
    let system = request.system.as_ref().map_or(0, |system| system.chars().count());
    let turns: usize = request.turns().map(characters).sum();
    u32::try_from((system + turns).div_ceil(4)).unwrap_or(u32::MAX)
}

/// Arguments of tool calls count by their length: they are mostly ASCII.
fn characters(turn: TurnRef<'_>) -> usize {
    let of = |content: &Content| content.texts().map(|text| text.chars().count()).sum::<usize>();
    match turn {
        TurnRef::Assistant(content, calls) => {
            content.map_or(0, of) + calls.iter().map(ToolCall::text_len).sum::<usize>()
        }
        TurnRef::Tool(results) => results.iter().map(|result| of(&result.content)).sum(),
        TurnRef::User(content) => of(content),
    }
}
