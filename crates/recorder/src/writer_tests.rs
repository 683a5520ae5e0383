//! The writer between a scripted engine and a scripted keeper.
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use keepup_measure::clock::SystemClock;
use keepup_sys::SysError;
use keepup_sys::pool::{Block, Pool};
use keepup_sys::ring;

use super::*;
use crate::counters::Counters;
use crate::link::samples;

/// Requests to the engine, and its scripted answers.
#[derive(Default)]
struct Script {
    writes: BTreeMap<u64, Block>,
    syncs: Vec<u64>,
    answers: Vec<(u64, io::Result<()>)>,
    /// End marks are confirmed at once, unless a test holds them.
    holds_marks: bool,
    is_broken: bool,
    /// Calls that waited for completions.
    turns: u64,
}

struct ScriptedEngine(Arc<Mutex<Script>>);

impl BlockEngine for ScriptedEngine {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn buffers(&self) -> String {
        String::new()
    }

    fn add_file(&mut self, _file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        Ok(FileSlot(0))
    }

    fn remove_file(&mut self, _slot: FileSlot) {}

    fn write(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        let mut script = self.0.lock().unwrap();
        script.writes.insert(token, block);
        if token == MARK_TOKEN && !script.holds_marks {
            script.answers.push((token, Ok(())));
        }
    }

    fn read(&mut self, _: FileSlot, _: u64, _: Block, _: usize, _: u64) {}

    fn sync(&mut self, _slot: FileSlot, token: u64) {
        self.0.lock().unwrap().syncs.push(token);
    }

    fn discard(&mut self, _: FileSlot, _: u64, _: u64, _: u64) {}

    fn in_flight(&self) -> usize {
        self.0.lock().unwrap().writes.len()
    }

    fn wait(&mut self, _timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        std::thread::sleep(Duration::from_millis(1));
        let mut script = self.0.lock().unwrap();
        script.turns += 1;
        if script.is_broken {
            return Err(SysError::Invalid { what: "the ring is gone".into() });
        }
        for (token, result) in std::mem::take(&mut script.answers) {
            let block = script.writes.remove(&token);
            ended.push(Completion { token, block, result });
        }
        Ok(())
    }
}

/// A writer with everything around it.
struct Bench {
    script: Arc<Mutex<Script>>,
    pool: Pool,
    blocks: ring::Producer<Sealed>,
    reports: ring::Consumer<FromWriter>,
    signals: Arc<WriterSignals>,
    counters: Arc<Counters>,
    to_keeper: Receiver<ToKeeper>,
    from_keeper: Option<Sender<FromKeeper>>,
    writer: JoinHandle<WriterOutcome>,
    sealed: u64,
}

impl Bench {
    fn new() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let (blocks, taken) = ring::pair(64);
        let (report_sender, reports) = ring::pair(64);
        let (ask, to_keeper) = channel();
        let (answer, from_keeper) = channel();
        let signals = Arc::new(WriterSignals::default());
        let counters = Arc::new(Counters::new(1, 1, 0));
        let parts = WriterParts {
            recording: Id([7; 16]),
            limits: Limits { blocks: 8, bytes: 1 << 20 },
            sync_every: Duration::from_millis(1),
            clock: Arc::new(SystemClock),
            inlets: vec![Inlet { blocks: taken, reports: report_sender, waker: Waker::new().unwrap() }],
            waker: Waker::new().unwrap(),
            signals: Arc::clone(&signals),
            to_keeper: ask,
            from_keeper,
            volume: 0,
            counters: Arc::clone(&counters),
            engine: Box::new(ScriptedEngine(Arc::clone(&script))),
        };
        let writer =
            std::thread::spawn(|| Writer::new(parts, Pool::new(SECTOR).unwrap().take(SECTOR).unwrap()).run());
        let pool = Pool::new(4 << 20).unwrap();
        let (sealed, from_keeper) = (0, Some(answer));
        let mut bench =
            Self { script, pool, blocks, reports, signals, counters, to_keeper, from_keeper, writer, sealed };
        bench.prepare(0);
        bench
    }

    /// Answers the request for a segment.
    fn prepare(&mut self, index: u32) {
        assert!(matches!(self.asked(), ToKeeper::Prepare));
        let file = Arc::new(OwnedFd::from(File::open("/dev/null").unwrap()));
        let prepared = Prepared { index, id: Id([index as u8; 16]), file, bytes: 16 << 20 };
        self.answer(FromKeeper::Prepared(prepared));
    }

    fn asked(&self) -> ToKeeper {
        self.to_keeper.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn answer(&self, answer: FromKeeper) {
        self.from_keeper.as_ref().unwrap().send(answer).unwrap();
    }

    fn give(&mut self) {
        let meta = samples::meta(0, 0, self.sealed);
        self.sealed += 1;
        self.blocks.push(Sealed { block: self.pool.take(2 * SECTOR).unwrap(), meta }).unwrap();
    }

    fn until(&self, condition: impl Fn(&Script) -> bool) {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !condition(&self.script.lock().unwrap()) {
            assert!(std::time::Instant::now() < until, "the writer made no such request");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn land(&self, token: u64, result: io::Result<()>) {
        self.until(|script| script.writes.contains_key(&token));
        self.script.lock().unwrap().answers.push((token, result));
    }

    fn flushed(&self, result: io::Result<()>) {
        self.until(|script| !script.syncs.is_empty());
        let mut script = self.script.lock().unwrap();
        let token = script.syncs.remove(0);
        script.answers.push((token, result));
    }

    fn report(&mut self) -> FromWriter {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(report) = self.reports.pop() {
                return report;
            }
            assert!(std::time::Instant::now() < until, "the writer sent no report");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the writer's request to seal a segment.
    fn until_sealing(&self) -> u32 {
        loop {
            match self.asked() {
                ToKeeper::Finish { index, .. } => return index,
                ToKeeper::Prepare => {
                    let (why, cause) = ("no space".into(), LossCause::SpaceExhausted);
                    self.answer(FromKeeper::NotPrepared { why, cause });
                }
                _ => {}
            }
        }
    }

    /// Ends the writer, which must be possible.
    fn close(mut self) -> (WriterOutcome, Vec<FromWriter>) {
        self.signals.close.store(true, Ordering::Release);
        let mut reports = Vec::new();
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !self.writer.is_finished() {
            assert!(std::time::Instant::now() < until, "the writer did not end");
            reports.extend(self.reports.pop());
            while let Ok(asked) = self.to_keeper.try_recv() {
                let (why, cause) = ("no space".into(), LossCause::SpaceExhausted);
                let answer = match asked {
                    ToKeeper::Prepare => FromKeeper::NotPrepared { why, cause },
                    ToKeeper::Finish { index, .. } => FromKeeper::Finished { index, result: Ok(()) },
                    _ => continue,
                };
                if let Some(keeper) = &self.from_keeper {
                    drop(keeper.send(answer));
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        while let Some(report) = self.reports.pop() {
            reports.push(report);
        }
        (self.writer.join().unwrap(), reports)
    }
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())
}

#[test]
fn a_failure_is_reported_and_the_queue_returned_before_the_seal_ends() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.give();
    }
    bench.land(0, Err(broken()));
    assert!(matches!(bench.report(), FromWriter::Failed), "though a write is still under way");
    bench.give();
    let FromWriter::Returned(queued) = bench.report() else { panic!("the queue comes back") };
    assert_eq!(queued.meta.header.stream_block, 2);
    bench.land(1, Ok(()));
    for block in [0, 1] {
        let FromWriter::Returned(unwritten) = bench.report() else { panic!("it can go elsewhere") };
        assert_eq!(unwritten.meta.header.stream_block, block);
    }
    // Only now does the keeper handle the segment.
    assert!(bench.close().0.failure.unwrap().contains("writing failed"));
}

#[test]
fn after_a_failed_flush_no_other_confirmation_counts() {
    let mut bench = Bench::new();
    bench.give();
    bench.land(0, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    // A flush is in flight, then the volume's journal fails.
    bench.until(|script| script.syncs.len() == 1);
    bench.answer(FromKeeper::JournalFailed { why: "no journal".into() });
    assert!(matches!(bench.report(), FromWriter::Failed));
    bench.flushed(Ok(()));
    let FromWriter::Lost { meta, was_written, .. } = bench.report() else { panic!("it does not count") };
    assert_eq!((meta.header.stream_block, was_written), (0, true));
    let (outcome, reports) = bench.close();
    assert!(outcome.failure.is_some() && reports.is_empty(), "{reports:?}");
}

#[test]
fn what_is_durable_before_the_journal_fails_stays_durable() {
    let mut bench = Bench::new();
    bench.give();
    bench.land(0, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    // The only flush is not answered until the segment is to be sealed for another reason.
    bench.signals.close.store(true, Ordering::Release);
    bench.flushed(Ok(()));
    assert!(matches!(bench.report(), FromWriter::Durable { .. }));
    let index = bench.until_sealing();
    bench.answer(FromKeeper::JournalFailed { why: "no journal".into() });
    bench.answer(FromKeeper::Finished { index, result: Ok(()) });
    let (outcome, reports) = bench.close();
    assert!(outcome.failure.unwrap().contains("no journal"));
    assert!(matches!(reports[..], [FromWriter::Failed]), "{reports:?}");
}

#[test]
fn a_volume_without_space_fills_its_last_segment() {
    let mut bench = Bench::new();
    bench.give();
    bench.land(0, Ok(()));
    assert!(matches!(bench.asked(), ToKeeper::Activate { index: 0, before: None, .. }));
    assert!(matches!(bench.asked(), ToKeeper::Prepare));
    bench.answer(FromKeeper::NotPrepared { why: "full".into(), cause: LossCause::SpaceExhausted });
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    bench.flushed(Ok(()));
    assert!(matches!(bench.report(), FromWriter::Durable { .. }));
    bench.give();
    bench.land(1, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }), "the first segment has space");
    let (outcome, reports) = {
        bench.flushed(Ok(()));
        bench.close()
    };
    assert!(outcome.failure.is_none());
    assert!(matches!(reports[..], [FromWriter::Durable { .. }]), "{reports:?}");
}

#[test]
fn a_dead_keeper_fails_the_volume_without_a_hang() {
    let mut bench = Bench::new();
    bench.give();
    bench.land(0, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    drop(bench.from_keeper.take());
    assert!(matches!(bench.report(), FromWriter::Failed));
    while !matches!(bench.script.lock().unwrap().syncs[..], []) {
        bench.flushed(Ok(()));
    }
    assert!(bench.close().0.failure.unwrap().contains("keeper thread ended"));
}

#[test]
fn a_broken_engine_fails_the_volume() {
    let mut bench = Bench::new();
    bench.give();
    bench.until(|script| script.writes.len() == 1);
    bench.script.lock().unwrap().is_broken = true;
    assert!(matches!(bench.report(), FromWriter::Failed));
    let FromWriter::Lost { was_written, .. } = bench.report() else { panic!("its fate is not known") };
    assert!(!was_written);
    assert!(bench.close().0.failure.unwrap().contains("the ring is gone"));
}

#[test]
fn an_end_mark_follows_a_flush_and_no_block_is_written_beside_it() {
    let mut bench = Bench::new();
    bench.script.lock().unwrap().holds_marks = true;
    bench.give();
    bench.give();
    bench.land(0, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    bench.flushed(Ok(()));
    assert!(matches!(bench.report(), FromWriter::Durable { .. }));
    assert!(!bench.script.lock().unwrap().writes.contains_key(&MARK_TOKEN), "a block is under way");
    bench.land(1, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    bench.flushed(Ok(()));
    assert!(matches!(bench.report(), FromWriter::Durable { .. }));
    bench.until(|script| script.writes.contains_key(&MARK_TOKEN));
    assert_eq!(
        bench.script.lock().unwrap().writes[&MARK_TOKEN][0],
        0x0F,
        "it starts with the end of the data"
    );
    bench.give();
    let held = Duration::from_millis(50);
    std::thread::sleep(held);
    let turns = bench.script.lock().unwrap().turns;
    bench.until(|script| script.turns > turns + 2);
    assert!(!bench.script.lock().unwrap().writes.contains_key(&2), "the mark is still under way");
    bench.script.lock().unwrap().answers.push((MARK_TOKEN, Ok(())));
    bench.land(2, Ok(()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    let longest_ns = bench.counters.stalls().volumes[0].write_ns;
    assert!(longest_ns >= held.as_nanos() as u64, "a mark that takes long is a stall: {longest_ns} ns");
    bench.script.lock().unwrap().holds_marks = false;
    bench.flushed(Ok(()));
    assert!(bench.close().0.failure.is_none());
}

#[test]
fn an_end_mark_that_cannot_be_written_fails_the_volume() {
    let mut bench = Bench::new();
    bench.script.lock().unwrap().holds_marks = true;
    bench.give();
    bench.land(0, Ok(()));
    bench.flushed(Ok(()));
    bench.land(MARK_TOKEN, Err(broken()));
    assert!(matches!(bench.report(), FromWriter::Written { .. }));
    assert!(matches!(bench.report(), FromWriter::Durable { .. }));
    assert!(matches!(bench.report(), FromWriter::Failed));
    assert!(bench.close().0.failure.unwrap().contains("writing failed"));
}
