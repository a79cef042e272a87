//! Numbers as JSON schema compares them: 1 and 1.0 are the same.

use serde_json::{Number, Value};

/// Whether two values are the same as JSON.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Whether a number is whole, however it is written.
pub(super) fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Whether a number is a multiple of another, within the precision that decimals have.
pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    if let (Some(number), Some(of)) = (number.as_i64(), of.as_i64()) {
        return of == 0 || number.checked_rem(of).is_none_or(|rest| rest == 0);
    }
    let (Some(number), Some(of)) = (number.as_f64(), of.as_f64()) else { return true };
    let times = number / of;
    of == 0.0 || (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}
