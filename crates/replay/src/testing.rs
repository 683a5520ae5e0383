//! Traces and contexts for tests.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_measure::clock::SystemClock;
use keepup_trace::{Hints, Trace};
use keepup_workload::Context;

use crate::script::{Script, ScriptOptions};

/// One request: time (us), read or write, offset, bytes, duration (us).
pub(crate) type Row = (u64, char, u64, u64, u64);

/// A trace in the table format of MSR Cambridge.
pub(crate) fn trace(rows: &[Row]) -> Trace {
    let mut text = String::new();
    for (issue_us, kind, offset, bytes, took_us) in rows {
        let kind = if *kind == 'R' { "Read" } else { "Write" };
        let (issue, took) = (128_166_372_000_000_000 + issue_us * 10, took_us * 10);
        text += &format!("{issue},host,0,{kind},{offset},{bytes},{took}\n");
    }
    Trace::from_bytes("made", text.into_bytes(), &Hints::default(), None).unwrap()
}

/// The trace on a target of 4096-byte blocks of the required size.
pub(crate) fn script(rows: &[Row]) -> Script {
    Script::load("made", trace(rows), &ScriptOptions { block_bytes: 4096, ..ScriptOptions::default() })
        .unwrap()
}

/// One-page reads at these times, us.
pub(crate) fn reads_at(times_us: impl Iterator<Item = u64>) -> Script {
    let rows: Vec<Row> =
        times_us.enumerate().map(|(n, us)| (us, 'R', n as u64 % 1000 * 4096, 4096, 1)).collect();
    script(&rows)
}

/// Context with the real clock that discards messages.
pub(crate) fn context() -> Context {
    let stop = Arc::new(AtomicBool::new(false));
    Context { clock: Arc::new(SystemClock), stop, sample: Box::new(|_, _| {}), note: Box::new(|_| {}) }
}
