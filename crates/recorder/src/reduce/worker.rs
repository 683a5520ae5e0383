//! Reducer threads: each takes a sealed block with an empty one, writes the reduced events to the
//! empty one, and gives both back.
//!
//! Invariants: all blocks come back in the order in which they were handed over; a reduced block
//! has the events, sequence numbers and times of its raw block. A reducer needs no further memory
//! for the blocks it was given, so that there is no deadlock.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_measure::sum::Sums;
use keepup_plan::reduction::{Samples, Step};
use keepup_recording::crc::Crc32;
use keepup_recording::layout::{
    BlockHeader, ChannelBytes, MESSAGE_HEADER, block_bytes, put_block_tail, put_message_header,
};
use keepup_recording::seal::EventMark;
use keepup_stream::ledger::Count;
use keepup_sys::pool::{Block, GRAIN_BYTES};
use keepup_sys::ring;
use keepup_sys::waker::Waker;

use super::Chain;
use crate::counters::{Counters, ReducerCounters, add};
use crate::link::{MESSAGES_START, Sealed, SealedMeta};
use crate::switches::Switches;
use crate::threads::{Threaded, catch_panic, spawn};
use crate::{RecorderConfig, RecorderError};

/// Longest wait for the next block; a wake-up ends it earlier.
const IDLE: Duration = Duration::from_millis(100);

/// Steps for events of one kind; every thread builds its tables at the first use.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// Index among all recipes.
    pub(crate) index: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) input: Samples,
}

/// Stream of the reduced events.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Its id.
    pub(crate) stream: u32,
    /// Its MCAP channel record.
    pub(crate) channel: Arc<ChannelBytes>,
    /// Its index in the intake's table.
    pub(crate) slot: usize,
}

/// A block to be reduced.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) to: Arc<Destination>,
    pub(crate) raw: Sealed,
    /// Memory for the result, enough for every event of `raw`.
    pub(crate) target: Block,
}

/// Result of a job.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) to: Arc<Destination>,
    pub(crate) raw: Sealed,
    /// The reduced block, or the empty one when an event could not be reduced.
    pub(crate) reduced: Result<Sealed, Block>,
}

/// An intake's link to one thread.
pub(crate) struct ReducerLink {
    /// Index of the thread among all.
    pub(crate) index: usize,
    pub(crate) jobs: ring::Producer<Job>,
    pub(crate) done: ring::Consumer<Done>,
    pub(crate) waker: Waker,
    pub(crate) close: Arc<AtomicBool>,
}

/// State of a reducer thread.
struct Reducer {
    jobs: ring::Consumer<Job>,
    done: ring::Producer<Done>,
    waker: Waker,
    intake: Waker,
    close: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    index: usize,
    chains: Vec<Option<Chain>>,
}

/// Links of each intake to its threads, and the handles of all threads.
pub(crate) type Reducers = (Vec<Vec<ReducerLink>>, Vec<Threaded<()>>);

/// Starts the threads that `config` asks for; none without reductions. Each works for one of the `intakes`.
pub(crate) fn start(
    config: &RecorderConfig,
    clock: &Arc<dyn Clock>,
    intakes: &[Waker],
    (counters, switches): (&Arc<Counters>, &Arc<Switches>),
) -> Result<Reducers, RecorderError> {
    // As many slots as the intake's part of the pool can have blocks, so that the ring is never full.
    let blocks_max = config.pool_bytes_per_intake().div_ceil(GRAIN_BYTES);
    let mut links: Vec<Vec<ReducerLink>> = intakes.iter().map(|_| Vec::new()).collect();
    let mut threads = Vec::new();
    for index in 0..config.reducers() {
        let intake = index % intakes.len();
        let (to_thread, jobs) = ring::pair(blocks_max);
        let (done, from_thread) = ring::pair(blocks_max);
        let (waker, close) = (Waker::new()?, Arc::new(AtomicBool::new(false)));
        let mut reducer = Reducer {
            jobs,
            done,
            waker: waker.clone(),
            intake: intakes[intake].clone(),
            close: Arc::clone(&close),
            clock: Arc::clone(clock),
            counters: Arc::clone(counters),
            index,
            chains: Vec::new(),
        };
        let switches = Arc::clone(switches);
        threads.push(spawn(format!("ku-reduce-{index}"), config.cpus.clone(), move || {
            // The reducer is dropped after the note: its intake then sees that it ended early.
            catch_panic(|| reducer.run()).unwrap_or_else(|why| switches.fail(&why));
            Ok(())
        })?);
        links[intake].push(ReducerLink { jobs: to_thread, done: from_thread, index, waker, close });
    }
    Ok((links, threads))
}

impl Reducer {
    fn counters(&self) -> &ReducerCounters {
        &self.counters.reducers[self.index]
    }

    /// Runs until it is asked to close and no block is left.
    fn run(&mut self) {
        loop {
            let mut begin_ns = self.clock.now_ns();
            while let Some(job) = self.jobs.pop() {
                let done = self.reduce(job);
                self.give_back(done);
                let now_ns = self.clock.now_ns();
                add(&self.counters().busy_ns, now_ns.saturating_sub(begin_ns));
                begin_ns = now_ns;
            }
            // Read before the last poll, so that blocks handed over before the request are seen.
            let closing = self.close.load(Ordering::Acquire) || self.done.is_abandoned();
            self.waker.want_nudge(true);
            if !self.jobs.is_empty() {
                continue;
            }
            if closing {
                return;
            }
            self.waker.wait(IDLE);
            self.waker.clear();
        }
    }

    fn give_back(&mut self, done: Done) {
        let mut waiting = Some(done);
        while let Some(done) = waiting.take() {
            // The ring has as many slots as the pool can have blocks, so it is full only when the
            // intake has ended.
            if let Err(done) = self.done.push(done)
                && !self.done.is_abandoned()
            {
                self.clock.sleep_until_ns(self.clock.now_ns() + 1_000_000);
                waiting = Some(done);
            }
        }
        self.intake.nudge();
    }

    fn reduce(&mut self, job: Job) -> Done {
        let Job { recipe, to, raw, target } = job;
        if self.chains.len() <= recipe.index {
            self.chains.resize_with(recipe.index + 1, || None);
        }
        let chain = &mut self.chains[recipe.index];
        if chain.is_none() {
            *chain = Chain::new(&recipe.steps, &recipe.input).ok();
        }
        let reduced = match chain {
            Some(chain) => reduced_block(chain, &raw, target, &to),
            None => Err(target),
        };
        let counters = self.counters();
        add(&counters.input_bytes, raw.meta.header.payload_bytes);
        if let Ok(reduced) = &reduced {
            add(&counters.events, u64::from(reduced.meta.header.event_count));
            add(&counters.output_bytes, reduced.meta.header.payload_bytes);
        }
        Done { to, raw, reduced }
    }
}

/// Fills `target` with the reduced events of `raw`; returns it unused when an event cannot be
/// reduced.
pub(crate) fn reduced_block(
    chain: &mut Chain,
    raw: &Sealed,
    mut target: Block,
    to: &Destination,
) -> Result<Sealed, Block> {
    let Some((records, events, chunk_crc)) = fill(chain, raw, &mut target, to.stream as u16) else {
        return Err(target);
    };
    let bytes = block_bytes(records) as usize;
    let Some(tail) = target.get_mut(MESSAGES_START + records as usize..bytes) else { return Err(target) };
    put_block_tail(tail);
    let header = BlockHeader {
        stream: to.stream,
        chunk_records_bytes: records,
        payload_bytes: events.iter().map(|event| event.payload_bytes).saturating_sum(),
        chunk_crc,
        ..raw.meta.header
    };
    // If the raw block is kept too, that block accounts for the events.
    let accounts_for = if to.slot == raw.meta.slot { raw.meta.accounts_for } else { Count::default() };
    let meta = SealedMeta {
        header,
        bytes,
        channel: Arc::clone(&to.channel),
        intake: raw.meta.intake,
        slot: to.slot,
        events: Arc::new(events),
        accounts_for,
    };
    Ok(Sealed { block: target, meta })
}

/// Writes the messages; returns their bytes, index marks and checksum.
fn fill(
    chain: &mut Chain,
    raw: &Sealed,
    target: &mut [u8],
    channel_id: u16,
) -> Option<(u64, Vec<EventMark>, u32)> {
    let (mut from, mut at) = (MESSAGES_START, MESSAGES_START);
    let mut events = Vec::with_capacity(raw.meta.events.len());
    let mut crc = Crc32::resume(0);
    for (sequence, event) in (raw.meta.header.first_sequence..).zip(raw.meta.events.iter()) {
        let begin = from + MESSAGE_HEADER;
        from = begin + event.payload_bytes as usize;
        let (head, output) = target.get_mut(at..)?.split_at_mut_checked(MESSAGE_HEADER)?;
        let bytes = chain.run(raw.block.get(begin..from)?, output)?;
        put_message_header(head, channel_id, sequence, event.timestamp_ns, bytes as u64);
        crc.update(target.get(at..at + MESSAGE_HEADER + bytes)?);
        at += MESSAGE_HEADER + bytes;
        events.push(EventMark { timestamp_ns: event.timestamp_ns, payload_bytes: bytes as u64 });
    }
    Some(((at - MESSAGES_START) as u64, events, crc.value()))
}
