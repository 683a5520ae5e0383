//! Requests are reported once, with their own times, for any order of completion and any number
//! of threads.
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::*;
use crate::engine::{BlockEngine, Completion, FileSlot, Traced};
use crate::pool::{Block, Pool};

/// Clock that the test sets.
#[derive(Clone, Default)]
struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    fn set(&self, ns: u64) {
        self.0.store(ns, Ordering::Relaxed);
    }

    fn tracer(&self) -> Arc<IoTracer> {
        let hands = self.clone();
        IoTracer::new(move || hands.0.load(Ordering::Relaxed))
    }
}

/// Completes the last started request first, one at a time; the seventh fails.
#[derive(Default)]
struct LastFirstEngine {
    under_way: Vec<Completion>,
    begun: u64,
    is_synchronous: bool,
}

impl LastFirstEngine {
    fn begin(&mut self, token: u64, block: Option<Block>) {
        self.begun += 1;
        let result = if self.begun == 7 { Err(std::io::Error::other("seven")) } else { Ok(()) };
        self.under_way.push(Completion { token, block, result });
    }
}

impl BlockEngine for LastFirstEngine {
    fn name(&self) -> &'static str {
        "backwards"
    }

    fn buffers(&self) -> String {
        String::new()
    }

    fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }

    fn add_file(&mut self, _file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        Ok(FileSlot(3))
    }

    fn remove_file(&mut self, _slot: FileSlot) {}

    fn write(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        self.begin(token, Some(block));
    }

    fn read(&mut self, _slot: FileSlot, _offset: u64, block: Block, _bytes: usize, token: u64) {
        self.begin(token, Some(block));
    }

    fn sync(&mut self, _slot: FileSlot, token: u64) {
        self.begin(token, None);
    }

    fn discard(&mut self, _slot: FileSlot, _offset: u64, _bytes: u64, token: u64) {
        self.begin(token, None);
    }

    fn in_flight(&self) -> usize {
        self.under_way.len()
    }

    fn wait(&mut self, _timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        ended.extend(self.under_way.pop());
        Ok(())
    }
}

fn file(name: &str, flags: &[OFlags]) -> (tempfile::TempDir, Arc<OwnedFd>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, [1; 5000]).unwrap();
    let flags = flags.iter().fold(OFlags::RDWR, |all, flag| all | *flag);
    let file = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap();
    (directory, Arc::new(file))
}

fn wait(engine: &mut Traced, pool: &mut Pool) -> u64 {
    let mut ended = Vec::new();
    engine.wait(Duration::ZERO, &mut ended).unwrap();
    let completion = ended.pop().unwrap();
    if let Some(block) = completion.block {
        pool.give_back(block);
    }
    completion.token
}

#[test]
fn out_of_order_requests_keep_their_times_and_tokens() {
    let (hands, mut pool) = (ManualClock::default(), Pool::new(2 << 20).unwrap());
    let tracer = hands.tracer();
    let (_directory, file) = file("data", &[OFlags::DSYNC]);
    let mut engine = Traced::new(Box::new(LastFirstEngine::default()), &tracer);
    let slot = engine.add_file(file).unwrap();
    for n in 0..3u64 {
        hands.set(100 + n);
        // Tokens belong to their owner and may repeat.
        engine.write(slot, n * 4096, pool.take(4096).unwrap(), 4096, n / 2 + 40);
    }
    hands.set(110);
    engine.sync(slot, u64::MAX);
    let mut found = Vec::new();
    hands.set(200);
    assert_eq!(tracer.take(&mut found, false), 100, "the first is in flight");
    assert!(found.is_empty());
    for (n, token) in [u64::MAX, 41, 40].into_iter().enumerate() {
        hands.set(300 + n as u64);
        assert_eq!(wait(&mut engine, &mut pool), token);
    }
    assert_eq!(tracer.take(&mut found, false), 100);
    hands.set(400);
    assert_eq!(wait(&mut engine, &mut pool), 40);
    hands.set(500);
    assert_eq!(tracer.take(&mut found, false), 500, "nothing is in flight");
    let times: Vec<_> = found.iter().map(|seen| (seen.issue_ns, seen.completion_ns)).collect();
    assert_eq!(times, [(110, Some(300)), (102, Some(301)), (101, Some(302)), (100, Some(400))]);
    assert_eq!(found[0].kind, RequestKind::Sync);
    assert!(!found[0].is_durable && found[1].is_durable);
    assert_eq!((found[1].offset, found[1].bytes), (8192, 4096));
    let seen = tracer.file(found[1].file).unwrap();
    assert!(seen.name.ends_with("/data"), "{seen:?}");
    assert_eq!((seen.bytes, tracer.file(1)), (Some(5000), None));
}

#[test]
fn failures_are_marked_and_requests_in_flight_are_reported_once() {
    let (hands, mut pool) = (ManualClock::default(), Pool::new(2 << 20).unwrap());
    let tracer = hands.tracer();
    let (_directory, file) = file("data", &[]);
    let mut engine = Traced::new(Box::new(LastFirstEngine::default()), &tracer);
    let slot = engine.add_file(file).unwrap();
    for n in 0..8u64 {
        hands.set(n);
        engine.read(slot, 0, pool.take(4096).unwrap(), 512, n);
    }
    wait(&mut engine, &mut pool);
    wait(&mut engine, &mut pool);
    let mut found = Vec::new();
    hands.set(50);
    assert_eq!(tracer.take(&mut found, true), 50, "no later report starts earlier");
    let mut traced: Vec<_> = found.iter().map(|s| (s.issue_ns, s.completion_ns, s.has_failed)).collect();
    traced.sort_unstable();
    let open = (0..6).map(|n| (n, None, false));
    assert_eq!(traced, open.chain([(6, Some(7), true), (7, Some(7), false)]).collect::<Vec<_>>());
    found.clear();
    assert_eq!(wait(&mut engine, &mut pool), 5, "its owner still gets the completion");
    tracer.take(&mut found, true);
    assert!(found.is_empty(), "{found:?}");
    // Requests in flight in a dropped engine are reported without an end.
    engine.write(slot, 0, pool.take(4096).unwrap(), 4096, 9);
    drop(engine);
    tracer.take(&mut found, false);
    assert_eq!(found.len(), 1);
    assert_eq!((tracer.take(&mut found, true), found.len(), tracer.lost()), (50, 1, 0));
}

#[test]
fn synchronous_requests_end_before_they_are_collected() {
    let (hands, mut pool) = (ManualClock::default(), Pool::new(2 << 20).unwrap());
    let tracer = hands.tracer();
    let (_directory, file) = file("data", &[]);
    let backwards = LastFirstEngine { is_synchronous: true, ..LastFirstEngine::default() };
    let mut engine = Traced::new(Box::new(backwards), &tracer);
    let slot = engine.add_file(file).unwrap();
    hands.set(5);
    engine.write(slot, 0, pool.take(4096).unwrap(), 4096, 1);
    hands.set(900);
    wait(&mut engine, &mut pool);
    let mut found = Vec::new();
    tracer.take(&mut found, false);
    assert_eq!((found[0].issue_ns, found[0].completion_ns), (5, Some(5)));
}

#[test]
fn calls_are_reported_with_the_transferred_bytes() {
    let hands = ManualClock::default();
    let tracer = hands.tracer();
    let (_directory, file) = file("data", &[]);
    let read = |offset: u64| {
        let call = || crate::file::untraced::read_upto_at(&file, &mut [0; 4096], 4096, offset);
        tracer.trace_call(&file, (RequestKind::Read, offset, 4096), call).unwrap()
    };
    assert_eq!([read(0), read(4096), read(8192)], [4096, 904, 0]);
    let failed = tracer.trace_call(&file, (RequestKind::Write, 0, 7), || Err(std::io::Error::other("no")));
    assert!(failed.is_err());
    tracer.trace_call(&file, (RequestKind::Sync, 0, 0), || Ok(0)).unwrap();
    let mut found = Vec::new();
    tracer.take(&mut found, false);
    let traced: Vec<_> = found.iter().map(|seen| (seen.kind, seen.bytes, seen.has_failed)).collect();
    let expected = [
        (RequestKind::Read, 4096, false),
        (RequestKind::Read, 904, false),
        (RequestKind::Write, 7, true),
        (RequestKind::Sync, 0, false),
    ];
    assert_eq!(traced, expected, "a read at the end of file is not reported");
}

#[test]
fn requests_of_several_threads_are_complete_and_in_order() {
    const REQUESTS: u64 = 20_000;
    let ticks = AtomicU64::new(0);
    let tracer = IoTracer::new(move || ticks.fetch_add(1, Ordering::SeqCst));
    let (_directory, file) = file("data", &[]);
    let (mut found, mut held, mut given_ns) = (0, Vec::new(), 0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut pool = Pool::new(2 << 20).unwrap();
                    let mut engine = Traced::new(Box::new(LastFirstEngine::default()), &tracer);
                    let slot = engine.add_file(Arc::clone(&file)).unwrap();
                    for n in 0..REQUESTS {
                        engine.write(slot, n, pool.take(512).unwrap(), 512, n);
                        if n % 3 > 0 || engine.in_flight() > 30 {
                            wait(&mut engine, &mut pool);
                        }
                    }
                    while engine.in_flight() > 0 {
                        wait(&mut engine, &mut pool);
                    }
                })
            })
            .collect();
        loop {
            let is_over = threads.iter().all(std::thread::ScopedJoinHandle::is_finished);
            let horizon_ns = tracer.take(&mut held, false);
            held.sort_by_key(|seen| seen.issue_ns);
            let ready = held.partition_point(|seen| seen.issue_ns < horizon_ns);
            for seen in held.drain(..ready) {
                assert!(seen.issue_ns >= given_ns, "{} after {given_ns}", seen.issue_ns);
                assert!(seen.completion_ns.unwrap() > seen.issue_ns);
                given_ns = seen.issue_ns;
                found += 1;
            }
            if is_over {
                break;
            }
        }
    });
    assert_eq!((found, held.len() as u64, tracer.lost()), (3 * REQUESTS, 0, 0));
}

#[test]
fn dropped_requests_are_counted_and_a_closed_tracer_records_nothing() {
    let (hands, mut pool) = (ManualClock::default(), Pool::new(2 << 20).unwrap());
    let tracer = hands.tracer();
    let (_directory, file) = file("data", &[]);
    let mut engine = Traced::new(Box::new(LastFirstEngine::default()), &tracer);
    let slot = engine.add_file(file).unwrap();
    let turn = |engine: &mut Traced, pool: &mut Pool| {
        engine.write(slot, 0, pool.take(512).unwrap(), 512, 0);
        wait(engine, pool);
    };
    for _ in 0..WAITING_MAX + 5 {
        turn(&mut engine, &mut pool);
    }
    let mut found = Vec::new();
    tracer.take(&mut found, false);
    assert_eq!((found.len(), tracer.lost()), (WAITING_MAX, 5));
    turn(&mut engine, &mut pool);
    tracer.close();
    turn(&mut engine, &mut pool);
    found.clear();
    tracer.take(&mut found, false);
    assert_eq!((found.len(), tracer.lost()), (1, 5), "there is space again");
}

#[test]
fn requests_of_files_beyond_the_last_number_are_counted() {
    let tracer = ManualClock::default().tracer();
    {
        let mut files = lock(&tracer.files);
        files.all.resize(usize::from(NO_NUMBER), TracedFile { name: "x".into(), bytes: None });
    }
    let (_directory, file) = file("data", &[]);
    tracer.trace_call(&file, (RequestKind::Write, 0, 7), || Ok(7)).unwrap();
    let mut found = Vec::new();
    tracer.take(&mut found, true);
    assert_eq!((found.len(), tracer.lost()), (0, 1));
}
