//! The process of one load: it works, and tells its account ten times a second.
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use keepup_measure::cpu::ProcessCpu;
use keepup_plan::LoadSpec;

use super::report::Report;
use super::{Load, Shift, build};
use crate::net::Credentials;
use crate::{Context, WorkloadError};

/// Time between two lines.
const EVERY_NS: u64 = 100_000_000;
/// From when everything is ready until the first piece is due.
const AHEAD_NS: u64 = 2_000_000;

/// Works off `spec` until the context's stop is raised, and writes reports to `out`. `name` is free for a
/// directory on the disk of a disk load, `credentials` are for a server of traffic. A reader of `out` that
/// went away ends it.
///
/// # Errors
/// The load cannot be had, or not go on; `out` was told so.
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
    // A parent that went away need not know.
    let _ = tell(&Report::Failed { why: why.to_string() }, out);
    Err(why)
}

fn tell(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    out.write_all(report.line().as_bytes()).and_then(|()| out.flush())
}

fn run(
    load: &mut dyn Load,
    notes: Vec<String>,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), WorkloadError> {
    let (clock, stop) = (context.clock.as_ref(), context.stop.as_ref());
    let done = AtomicU64::new(0);
    let (begin_ns, cpu) = (clock.now_ns() + AHEAD_NS, ProcessCpu::now());
    let shift = Shift { clock, stop, begin_ns, done: &done };
    let mut is_heard = tell(&Report::Begun { t_ns: begin_ns, notes }, out).is_ok();
    std::thread::scope(|scope| {
        let working = std::thread::Builder::new()
            .name("ku-load".into())
            .spawn_scoped(scope, || load.run(&shift))
            .map_err(|source| WorkloadError::System { action: "start a load".into(), source })?;
        let mut next_ns = begin_ns;
        while !working.is_finished() {
            if shift.wait(next_ns) && is_heard {
                let (amount, cpu_ns) = (done.load(Ordering::Relaxed), ProcessCpu::now().since_ns(cpu));
                is_heard = tell(&Report::Done { t_ns: clock.now_ns(), amount, cpu_ns }, out).is_ok();
            }
            if !is_heard {
                stop.store(true, Ordering::Release);
            }
            // After a pause the next line comes at its own time, not at once for each that is missing.
            while next_ns <= clock.now_ns() {
                next_ns += EVERY_NS;
            }
            if shift.is_over() {
                clock.sleep_until_ns(clock.now_ns() + AHEAD_NS);
            }
        }
        working.join().unwrap_or(Err(WorkloadError::Thread { name: "ku-load" }))
    })
}
