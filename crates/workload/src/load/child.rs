//! Worker process of one load: runs the generator and reports ten times per second.
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use keepup_error::Cause;
use keepup_measure::cpu::ProcessCpu;
use keepup_plan::LoadSpec;

use super::report::Report;
use super::{LoadGenerator, LoadRun, build};
use crate::net::Credentials;
use crate::{Context, WorkloadError};

/// Interval between two report lines.
const EVERY_NS: u64 = 100_000_000;
/// Delay from the end of preparation to the first piece of work.
const AHEAD_NS: u64 = 2_000_000;

/// Runs `spec` until the context's stop flag is set, and writes reports to `out`. `name` may be
/// used for a directory of a disk load, `credentials` are for `keepup net serve`. Ends when the
/// reader of `out` disconnects.
///
/// # Errors
/// The load could not be started or continued; the error was also written to `out`.
pub fn work(
    spec: &LoadSpec,
    credentials: Option<Credentials>,
    name: &str,
    context: &mut Context,
    out: &mut dyn Write,
) -> Result<(), WorkloadError> {
    let mut load = match build(spec, credentials) {
        Ok(load) => load,
        Err(why) => return failed(why, out),
    };
    let outcome = load.prepare(name, context).and_then(|notes| run(load.as_mut(), notes, context, out));
    load.clean_up();
    outcome.or_else(|why| failed(why, out))
}

fn failed(why: WorkloadError, out: &mut dyn Write) -> Result<(), WorkloadError> {
    // A disconnected parent is ignored.
    // The parent adds which load it is.
    let cause = match &why {
        WorkloadError::Load { why, .. } => why.clone(),
        other => Cause::of(other),
    };
    let _ = write_report(&Report::Failed { why: cause.to_text() }, out);
    Err(why)
}

fn write_report(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    out.write_all(report.line().as_bytes()).and_then(|()| out.flush())
}

fn run(
    load: &mut dyn LoadGenerator,
    notes: Vec<String>,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), WorkloadError> {
    let (clock, stop) = (context.clock.as_ref(), context.stop.as_ref());
    let done = AtomicU64::new(0);
    let (begin_ns, cpu) = (clock.now_ns() + AHEAD_NS, ProcessCpu::now());
    let run = LoadRun { clock, stop, begin_ns, done: &done };
    let mut is_heard = write_report(&Report::Begun { t_ns: begin_ns, notes }, out).is_ok();
    std::thread::scope(|scope| {
        let working = std::thread::Builder::new()
            .name("ku-load".into())
            .spawn_scoped(scope, || load.run(&run))
            .map_err(|source| WorkloadError::System { action: "start a load".into(), source })?;
        let mut next_ns = begin_ns;
        while !working.is_finished() {
            if run.wait(next_ns) && is_heard {
                let (amount, cpu_ns) = (done.load(Ordering::Relaxed), ProcessCpu::now().since_ns(cpu));
                is_heard = write_report(&Report::Done { t_ns: clock.now_ns(), amount, cpu_ns }, out).is_ok();
            }
            if !is_heard {
                stop.store(true, Ordering::Release);
            }
            // After a pause reports resume on schedule, without catching up.
            while next_ns <= clock.now_ns() {
                next_ns += EVERY_NS;
            }
            if run.is_over() {
                clock.sleep_until_ns(clock.now_ns() + AHEAD_NS);
            }
        }
        working.join().unwrap_or(Err(WorkloadError::Thread { name: "ku-load" }))
    })
}
