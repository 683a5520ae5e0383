//! Timing, order, dependencies and limits of a pass on simulated targets.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_trace::Record;

use super::*;
use crate::backend::{MemoryTarget, NullTarget, ThrottledTarget};
use crate::pace::Mode;
use crate::testing::{Row, context, reads_at, script};

fn run(script: &Script, mode: Mode, target: &mut dyn Target, limit: usize) -> Account {
    Pass::new(script, mode.pace(script), target, limit, &context()).run().unwrap()
}

#[test]
fn the_span_is_the_trace_s_and_lateness_does_not_add_up() {
    let script = reads_at((0..2000).map(|n| n * 500));
    let account = run(&script, Mode::Timed { speed: 1.0 }, &mut NullTarget::default(), 64);
    assert_eq!((account.begun, account.requests, account.failed), (2000, 2000, 0));
    // The last request is due at the end of the span regardless of earlier delays: only its own
    // lateness adds to the span.
    let late_ns = account.lateness().unwrap().max_ns;
    let (asked_ns, span_ns) = (1999 * 500_000, account.last_ns - account.first_ns);
    assert!(span_ns.abs_diff(asked_ns) <= late_ns + late_ns / 100 + 1000, "{span_ns} {late_ns}");
    assert!(account.first_ns <= late_ns + late_ns / 100 + 1);
}

#[test]
fn speed_and_rate_scale_the_span() {
    let script = reads_at((0..100).map(|n| n * 2000));
    for (mode, asked_ns) in
        [(Mode::Timed { speed: 4.0 }, 99 * 500_000), (Mode::Paced { rate: 2000.0 }, 99 * 500_000)]
    {
        assert_eq!(mode.span_ns(&script), Some(asked_ns));
        let account = run(&script, mode, &mut NullTarget::default(), 64);
        assert!(account.last_ns >= asked_ns, "nothing is made before its time: {mode:?}");
        assert_eq!(account.requests, 100);
    }
}

#[test]
fn an_open_loop_waits_only_for_free_slots() {
    // 100 requests of 1 MB in 10 ms on a disk of 100 MB/s: 1 s of work.
    let rows: Vec<Row> = (0..100).map(|n| (n * 100, 'R', n << 20, 1_000_000, 1)).collect();
    let script = script(&rows);
    let disk = || ThrottledTarget::new(Arc::clone(&context().clock), 100e6);
    let account = run(&script, Mode::Timed { speed: 1.0 }, &mut disk(), 4096);
    assert_eq!((account.blocked, account.requests), (0, 100));
    assert!(account.outstanding_max > 50, "{account:?}");
    // Response time includes queueing: the last request waited for nearly all others.
    let all = account.all().unwrap();
    assert!(all.response.max_ns > 800_000_000 && all.response.max_ns >= all.service.max_ns);
    let limited = run(&script, Mode::Timed { speed: 1.0 }, &mut disk(), 8);
    assert_eq!((limited.outstanding_max, limited.requests), (8, 100));
    assert!(limited.blocked > 50, "each is counted once: {}", limited.blocked);
    assert!(limited.blocked <= 100);
    // Service time excludes queueing; response time still includes it.
    let all = limited.all().unwrap();
    assert!(all.service.p50_ns < 300_000_000 && all.response.max_ns > 800_000_000, "{all:?}");
}

#[test]
fn as_fast_as_possible_keeps_the_depth_and_the_order() {
    let rows: Vec<Row> = (0..200).map(|n| (n * 1_000_000, 'W', n * 4096, 4096, 1)).collect();
    let script = script(&rows);
    for depth in [1, 7, 32] {
        let mut seen = Seen::new(Box::new(ThrottledTarget::new(Arc::clone(&context().clock), 1e9)));
        let account = run(&script, Mode::Afap { depth }, &mut seen, depth);
        assert_eq!((account.outstanding_max, account.blocked, account.reordered), (depth, 0, 0));
        assert_eq!(seen.started, (0..200).collect::<Vec<_>>());
        assert_eq!(account.bytes_written, 200 * 4096);
        // 200 s in the trace.
        assert!(account.end_ns < 20_000_000_000);
    }
}

#[test]
fn what_depends_is_made_after_what_it_needs() {
    // Chains of four concurrent requests on a slow disk.
    let rows: Vec<Row> = (0..80).map(|n| (n / 4 * 300, 'R', n * 4096, 4096, 100)).collect();
    let script = script(&rows);
    let mut seen = Seen::new(Box::new(ThrottledTarget::new(Arc::clone(&context().clock), 10e6)));
    let account = run(&script, Mode::Dep { speed: 1.0 }, &mut seen, 4096);
    assert_eq!((account.requests, account.outstanding_max), (80, 4));
    for (n, index) in seen.started.iter().enumerate() {
        let needed = index / 4 * 4;
        assert!(seen.ended_before[n] >= needed, "{index} was made after {} ends", seen.ended_before[n]);
    }
}

#[test]
fn memory_is_read_and_written() {
    let rows: Vec<Row> =
        (0..500).map(|n| (n, if n % 3 == 0 { 'W' } else { 'R' }, n * 77_777, 10_000, 1)).collect();
    let script = script(&rows);
    let account = run(&script, Mode::Afap { depth: 1 }, &mut MemoryTarget::new(script.longest()), 1);
    let summary = &script.summary;
    assert_eq!((account.bytes_read, account.bytes_written), (summary.bytes_read, summary.bytes_written));
    assert!(account.busy_seconds() > 0.0 && account.busy_seconds() <= account.end_ns as f64 / 1e9);
    let [reads, writes, flushes, _] = account.kinds();
    assert_eq!((reads.unwrap().requests, writes.unwrap().requests, flushes.is_some()), (333, 167, false));
}

#[test]
fn a_stop_ends_it_and_waits_for_what_is_under_way() {
    let script = reads_at((0..1000).map(|n| n * 1_000_000));
    let mut target = NullTarget::default();
    let mut context = context();
    context.stop = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&context.stop);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Release);
    });
    let pace = Mode::Timed { speed: 1.0 }.pace(&script);
    let account = Pass::new(&script, pace, &mut target, 8, &context).run().unwrap();
    stopper.join().unwrap();
    assert!(account.begun < 1000 && account.in_flight() == 0, "{account:?}");
}

#[test]
fn failures_are_counted_and_the_first_is_reported() {
    struct Broken(NullTarget);
    impl Target for Broken {
        fn start(&mut self, record: &Record, index: usize, token: usize) -> Result<bool, ReplayError> {
            self.0.start(record, index, token)
        }
        fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError> {
            self.0.wait(timeout, done)?;
            for done in done {
                done.result = Err(std::io::Error::from_raw_os_error(libc_eio()));
            }
            Ok(())
        }
    }
    let script = reads_at(0..10);
    let account = run(&script, Mode::Afap { depth: 2 }, &mut Broken(NullTarget::default()), 2);
    assert_eq!((account.requests, account.failed), (0, 10));
    let why = account.failure.unwrap();
    assert!(why.contains("read of 4096 bytes at 0: ") && why.contains("nput/output"), "{why}");
}

/// EIO on Linux.
fn libc_eio() -> i32 {
    5
}

/// Target wrapper that records issued requests and completions before each.
struct Seen {
    inner: Box<dyn Target>,
    started: Vec<usize>,
    ended_before: Vec<usize>,
    ended: usize,
}

impl Seen {
    fn new(inner: Box<dyn Target>) -> Self {
        Self { inner, started: Vec::new(), ended_before: Vec::new(), ended: 0 }
    }
}

impl Target for Seen {
    fn start(&mut self, record: &Record, index: usize, token: usize) -> Result<bool, ReplayError> {
        self.started.push(index);
        self.ended_before.push(self.ended);
        self.inner.start(record, index, token)
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError> {
        self.inner.wait(timeout, done)?;
        self.ended += done.len();
        Ok(())
    }
}
