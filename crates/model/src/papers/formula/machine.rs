//! Formulas for registers, disks and CPUs.
use keepup_measure::sum::Sums;

use super::{Evaluated, evaluated};
use crate::formulas::{register, store};
use crate::papers::PaperUnit;

/// Number of words at which set-up + n transfers take as long as n single accesses.
pub(super) fn break_even(set_up_us: f64, single_us: f64, transfer_us: f64, words_each: f64) -> Evaluated {
    let set_up =
        if set_up_us >= 1000.0 { format!("{} ms", set_up_us / 1000.0) } else { format!("{set_up_us} us") };
    let mut steps = format!("{set_up} / ({single_us} us - {transfer_us} us)");
    if words_each != 1.0 {
        steps.push_str(&format!(" x {words_each}"));
    }
    let each = register::break_even_words(set_up_us, single_us, transfer_us);
    evaluated(each * words_each, PaperUnit::Words, steps)
}

pub(super) fn word_rate(word_bytes: f64, word_us: f64) -> Evaluated {
    // Bytes per microsecond are MB per second.
    evaluated(word_bytes / word_us, PaperUnit::MegabytesPerSecond, format!("{word_bytes} B / {word_us} us"))
}

pub(super) fn ratio(over: &[f64], under: &[f64]) -> Evaluated {
    let mean = |numbers: &[f64]| numbers.iter().float_sum() / numbers.len() as f64;
    let text = |numbers: &[f64]| {
        let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        match numbers.len() {
            1 => all.concat(),
            _ => format!("mean of {}", all.join(" and ")),
        }
    };
    let steps = format!("{} / {}", text(over), text(under));
    evaluated(mean(over) / mean(under), PaperUnit::Times, steps)
}

pub(super) fn machines(target_mb_per_s: f64, each_mb_per_s: f64) -> Evaluated {
    let steps = format!("{target_mb_per_s} MB/s / {each_mb_per_s} MB/s, rounded up");
    evaluated(register::needed(target_mb_per_s, each_mb_per_s), PaperUnit::Items, steps)
}

/// Half of the disks relative to all but one.
pub(super) fn mirror_room(disks: f64) -> Evaluated {
    let steps = format!("({disks} / 2) / ({disks} - 1)");
    evaluated(100.0 * (disks / 2.0) / (disks - 1.0), PaperUnit::Percent, steps)
}

pub(super) fn one_after_another(first_mb_per_s: f64, second_mb_per_s: f64) -> Evaluated {
    let steps = format!("1 / (1 / {first_mb_per_s} MB/s + 1 / {second_mb_per_s} MB/s)");
    let rate = register::one_after_another(first_mb_per_s, second_mb_per_s);
    evaluated(rate, PaperUnit::MegabytesPerSecond, steps)
}

pub(super) fn second_stage(first_mb_per_s: f64, both_mb_per_s: f64) -> Evaluated {
    let steps = format!("1 / (1 / {both_mb_per_s} MB/s - 1 / {first_mb_per_s} MB/s)");
    let rate = register::second_of_two(first_mb_per_s, both_mb_per_s);
    evaluated(rate, PaperUnit::MegabytesPerSecond, steps)
}

pub(super) fn random_rate(access_ms: f64, request_kib: f64, stream_mb_per_s: f64) -> Evaluated {
    let bytes = request_kib * 1024.0;
    let rate = store::random_rate(bytes, access_ms / 1e3, stream_mb_per_s * 1e6);
    let steps = format!("{request_kib} KiB / ({access_ms} ms + {request_kib} KiB / {stream_mb_per_s} MB/s)");
    evaluated(rate / 1e6, PaperUnit::MegabytesPerSecond, steps)
}

pub(super) fn commands(transfer_bytes: f64, segments: f64, segment_bytes: f64) -> Evaluated {
    let steps = format!("{transfer_bytes} B / ({segments} x {segment_bytes} B), rounded up");
    let commands = register::transfers(transfer_bytes, segments, segment_bytes);
    evaluated(commands, PaperUnit::Items, steps)
}

pub(super) fn cycles_per_byte(mhz: f64, rate_mb_per_s: f64) -> Evaluated {
    let cycles = register::cycles_per_byte(mhz, rate_mb_per_s);
    evaluated(cycles, PaperUnit::CyclesPerByte, format!("{mhz} MHz / {rate_mb_per_s} MB/s"))
}

pub(super) fn total(groups: f64, each: f64) -> Evaluated {
    evaluated(groups * each, PaperUnit::Items, format!("{groups} x {each}"))
}
