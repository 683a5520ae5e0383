//! Register access and sequential operations.

/// The length in words of a transfer with set-up against single accesses; infinite if its
/// words are not faster.
/// words are no faster.
#[must_use]
pub(crate) fn break_even_words(set_up_seconds: f64, single_seconds: f64, transfer_seconds: f64) -> f64 {
    let saved = single_seconds - transfer_seconds;
    if saved > 0.0 { set_up_seconds / saved } else { f64::INFINITY }
}

/// Combined rate of two sequential operations of one thread.
#[must_use]
pub(crate) fn one_after_another(first: f64, second: f64) -> f64 {
    1.0 / (1.0 / first + 1.0 / second)
}

/// Rate of the second of two sequential operations, from the first and the combined rate.
#[must_use]
pub(crate) fn second_of_two(first: f64, both: f64) -> f64 {
    1.0 / (1.0 / both - 1.0 / first)
}

/// Cycles per byte of a CPU of `clock_hz` that is saturated at `bytes_per_second`.
#[must_use]
pub(crate) fn cycles_per_byte(clock_hz: f64, bytes_per_second: f64) -> f64 {
    clock_hz / bytes_per_second
}

/// Number of transfers per request, with a limit of segments per transfer and bytes per segment.
#[must_use]
pub fn transfers(request_bytes: f64, segments: f64, segment_bytes: f64) -> f64 {
    (request_bytes / (segments * segment_bytes)).ceil()
}

/// Number of units with rate `each` for `target`.
#[must_use]
pub fn needed(target: f64, each: f64) -> f64 {
    (target / each).ceil()
}
