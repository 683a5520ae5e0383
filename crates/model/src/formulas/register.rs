//! Registers and things that are done one after another.

/// Seconds to read `words`, with a set-up and a time for each word: the line that measured times follow.
#[must_use]
pub fn access_seconds(set_up_seconds: f64, word_seconds: f64, words: f64) -> f64 {
    set_up_seconds + word_seconds * words
}

/// The number of words from which a transfer with set-up costs less than single accesses; infinite when its
/// words are no faster.
#[must_use]
pub fn break_even_words(set_up_seconds: f64, single_seconds: f64, transfer_seconds: f64) -> f64 {
    let saved = single_seconds - transfer_seconds;
    if saved > 0.0 { set_up_seconds / saved } else { f64::INFINITY }
}

/// The rate of two things that one thread does one after another, each of which alone has a rate.
#[must_use]
pub fn one_after_another(first: f64, second: f64) -> f64 {
    1.0 / (1.0 / first + 1.0 / second)
}

/// The rate of the second of two things, where the first alone and both one after another are known.
#[must_use]
pub fn second_of_two(first: f64, both: f64) -> f64 {
    1.0 / (1.0 / both - 1.0 / first)
}

/// Cycles that a byte costs where a processor of `clock_hz` is busy all the time at `bytes_per_second`.
#[must_use]
pub fn cycles_per_byte(clock_hz: f64, bytes_per_second: f64) -> f64 {
    clock_hz / bytes_per_second
}

/// Transfers that one request becomes, where one takes so many segments of so many bytes.
#[must_use]
pub fn transfers(request_bytes: f64, segments: f64, segment_bytes: f64) -> f64 {
    (request_bytes / (segments * segment_bytes)).ceil()
}

/// How many that do `each` are enough for `target`.
#[must_use]
pub fn needed(target: f64, each: f64) -> f64 {
    (target / each).ceil()
}
