//! Time of each stage of the data path alone: decode, checksum, seal, submit and complete.
//!
//! `cargo bench -p keepup-recorder --bench stages`
#![expect(clippy::unwrap_used, clippy::missing_docs_in_private_items, reason = "a benchmark")]
mod work;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use keepup_plan::Element;
use keepup_plan::reduction::{Reduction, Samples};
use keepup_recorder::reduce::Chain;
use keepup_recording::crc::Combiner;
use keepup_sys::engine::{BlockEngine, EngineChoice, NullEngine, open};
use keepup_sys::file::create_preallocated;
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;

fn main() {
    divan::main();
}

/// One event header, streams in turn.
#[divan::bench(args = [1, 508])]
fn decode(bencher: Bencher, streams: u32) {
    let mut decode = work::Decode::new(streams);
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| decode.run());
}

/// Payload of this many bytes in one piece, from the cache.
#[divan::bench(args = [64, 1 << 10, 64 << 10, 256 << 10])]
fn checksum(bencher: Bencher, bytes: usize) {
    let data = vec![0x5a; bytes];
    bencher.counter(BytesCount::new(bytes)).bench_local(|| work::checksum(&data, bytes));
}

/// 256 KiB in pieces of this many bytes.
#[divan::bench(args = [4 << 10, 64 << 10])]
fn checksum_in_pieces(bencher: Bencher, piece_bytes: usize) {
    let data = vec![0x5a; 256 << 10];
    bencher.counter(BytesCount::new(data.len())).bench_local(|| work::checksum(&data, piece_bytes));
}

/// Combines two checksums; the second length repeats (0) or changes every time (1).
#[divan::bench(args = [0, 1])]
fn combine(bencher: Bencher, step: u64) {
    let (mut combiner, mut length) = (Combiner::new(), 1024u64);
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        length = 1024 + (length - 1024 + step) % 65536;
        combiner.combine(0x1234_5678, 0x9abc_def0, length)
    });
}

/// A block of 1 MiB with events of this many bytes.
#[divan::bench(args = [1 << 10, 256 << 10])]
fn seal(bencher: Bencher, event_bytes: usize) {
    let mut seal = work::Seal::new((1 << 20) / event_bytes, event_bytes);
    bencher.counter(BytesCount::new(1u32 << 20)).bench_local(|| seal.run());
}

/// Takes and gives back a block of 1 MiB while this many others are in use.
#[divan::bench(args = [0, 400])]
fn pool(bencher: Bencher, taken: usize) {
    let mut pool = Pool::new(512 << 20).unwrap();
    let held: Vec<_> = (0..taken).map(|_| pool.take(1 << 20).unwrap()).collect();
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        let block = pool.take(1 << 20).unwrap();
        pool.give_back(block);
    });
    drop(held);
}

/// Writes 64 MiB of blocks, 8 in flight, to a file in memory, so that the disk is not measured.
fn write(bencher: Bencher, block_bytes: usize, engine: impl Fn(&Pool, &Waker) -> Box<dyn BlockEngine>) {
    const BYTES: u64 = 64 << 20;
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let made = create_preallocated(&directory.path().join("file"), BYTES).unwrap();
    let file: Arc<OwnedFd> = Arc::new(made.file);
    let mut pool = Pool::new(16 << 20).unwrap();
    let waker = Waker::new().unwrap();
    let mut engine = engine(&pool, &waker);
    let slot = engine.add_file(file).unwrap();
    let mut ended = Vec::new();
    bencher.counter(BytesCount::new(BYTES)).bench_local(|| {
        for token in 0..BYTES / block_bytes as u64 {
            let block = loop {
                if let Some(block) = (engine.in_flight() < 8).then(|| pool.take(block_bytes)).flatten() {
                    break block;
                }
                engine.wait(Duration::from_secs(1), &mut ended).unwrap();
                ended.drain(..).filter_map(|done| done.block).for_each(|block| pool.give_back(block));
            };
            engine.write(slot, token * block_bytes as u64, block, block_bytes, token);
        }
        while engine.in_flight() > 0 {
            engine.wait(Duration::from_secs(1), &mut ended).unwrap();
            ended.drain(..).filter_map(|done| done.block).for_each(|block| pool.give_back(block));
        }
    });
}

#[divan::bench(args = [64 << 10, 1 << 20])]
fn submit_and_complete_ring(bencher: Bencher, block_bytes: usize) {
    write(bencher, block_bytes, |pool, waker| open(EngineChoice::Auto, &pool.memory(), waker, 8).unwrap().0);
}

#[divan::bench(args = [1 << 20])]
fn submit_and_complete_plain(bencher: Bencher, block_bytes: usize) {
    write(bencher, block_bytes, |pool, waker| open(EngineChoice::Plain, &pool.memory(), waker, 8).unwrap().0);
}

#[divan::bench(args = [1 << 20])]
fn submit_and_complete_null(bencher: Bencher, block_bytes: usize) {
    write(bencher, block_bytes, |_, waker| Box::new(NullEngine::new(waker)));
}

/// Reduces one event of 8192 16-bit samples with 11 bits of noise.
#[divan::bench(args = ["spectrum window=hann", "decimate by=8", "bin by=8", "threshold at=900", "lz4"])]
fn reduce(bencher: Bencher, steps: &str) {
    let mut reduce = Reduce::new(steps);
    bencher.counter(BytesCount::new(reduce.bytes())).bench_local(|| reduce.run());
}

/// An event of 8192 samples and the reduction prepared for it.
struct Reduce {
    chain: Chain,
    event: Vec<u8>,
    output: Vec<u8>,
}

impl Reduce {
    fn new(steps: &str) -> Self {
        let reduction: Reduction = steps.parse().unwrap();
        let input = Samples { element: Element::I16, shape: vec![8192], compressed: false };
        let chain = Chain::new(&reduction.steps, &input).unwrap();
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 53) as i16 - 1024
        };
        let event = (0..8192).flat_map(|_| noise().to_le_bytes()).collect();
        Self { output: vec![0; chain.output_bytes_max()], chain, event }
    }

    fn bytes(&self) -> usize {
        self.event.len()
    }

    fn run(&mut self) -> usize {
        self.chain.run(&self.event, &mut self.output).unwrap()
    }
}
