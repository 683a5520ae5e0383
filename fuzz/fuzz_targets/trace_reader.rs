//! Arbitrary bytes as a trace of every format: read or refused, what was read holds together, and can be
//! placed on a target.
//!
//! The first byte says which format is claimed; above those that there are, the content has to tell.
#![no_main]

use keepup_replay::{Policy, Script, ScriptOptions};
use keepup_trace::{Format, Hints, Operation, TimeUnit, Trace, Unit, Waits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let format = Format::ALL.get(usize::from(first & 15)).copied();
    // The other bits say what a user might; without them nothing is said.
    let is_simulator = matches!(format, Some(Format::Mqsim | Format::Disksim));
    let hints = Hints {
        format,
        unit: (first & 16 != 0).then_some(Unit::Bytes),
        time_unit: (is_simulator && first & 32 != 0).then_some(TimeUnit::S),
        waits: (format == Some(Format::Iolog2) && first & 64 != 0).then_some(Waits::Gap),
    };
    let device = (first & 128 != 0).then_some("0");
    let Ok(mut trace) = Trace::from_bytes("fuzzed", rest.to_vec(), &hints, device) else { return };
    let (mut records, mut last_ns) = (Vec::new(), 0);
    while let Ok(goes_on) = trace.fill(&mut records) {
        for record in records.drain(..) {
            assert!(record.issue_ns >= last_ns);
            assert!(usize::from(record.device) < trace.devices().len());
            assert!(record.bytes > 0 || record.operation == Operation::Flush);
            assert!(record.completion_ns().is_none_or(|ns| ns >= record.issue_ns));
            assert!(record.end() <= i64::MAX as u64);
            last_ns = record.issue_ns;
        }
        if !goes_on {
            break;
        }
    }
    let Ok(again) = Trace::from_bytes("fuzzed", rest.to_vec(), &hints, device) else { return };
    let choice = ScriptOptions {
        gap_max_ns: (first & 16 != 0).then_some(1_000_000),
        policy: if first & 32 == 0 { Policy::Wrap } else { Policy::Scale },
        target_bytes: Some(10 << 20),
        block_bytes: 512,
        ..ScriptOptions::default()
    };
    if let Ok(script) = Script::load("fuzzed", again, &choice) {
        assert!(script.touched_bytes() <= 10 << 20 && script.summary.records > 0);
    }
});
