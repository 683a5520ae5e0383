//! Generator of a personality's requests in time order.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use fastrand::Rng;

use super::draw::exponential;
use super::{Generated, IO_BYTES, LOG_BYTES, PAGE, PAUSE_NS, Personality, Requests, Step};
use crate::{Flags, NativeWriter, Operation, Record};

/// A pending request: time, sequence number, operation, offset, bytes, flags, completion time; the
/// sequence number orders requests of equal time.
type Waiting = (u64, u64, u8, u64, u32, u8, u64);
/// Share of the pause after a request attributed to the disk, the rest to the program; our choice.
/// It makes the steps of a round depend on each other.
const TAKEN: f64 = 0.5;

/// State of a trace under generation.
pub(super) struct Generator<'a> {
    personality: &'a Personality,
    seed: u64,
    rng: Rng,
    pub(super) made: Generated,
    /// Bytes appended to the log area.
    log_bytes: u64,
    /// Pending requests, earliest first.
    waiting: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    zero_ns: Option<u64>,
}

impl<'a> Generator<'a> {
    pub(super) fn new(personality: &'a Personality, seed: u64) -> Self {
        Self {
            personality,
            seed,
            rng: Rng::with_seed(seed),
            made: Generated { records: 0, bytes: 0, rounds: 0 },
            log_bytes: 0,
            waiting: BinaryHeap::new(),
            number: 0,
            zero_ns: None,
        }
    }

    /// Generates a round that starts at `start_ns`.
    pub(super) fn round(&mut self, start_ns: f64) {
        self.made.rounds += 1;
        let mut at_ns = start_ns;
        for step in self.personality.round {
            match *step {
                Step::ReadFile => {
                    let file = self.rng.u64(..self.personality.files);
                    // A file that is not rewritten keeps its length.
                    let mut rng = Rng::with_seed(self.seed ^ (file + 1).rotate_left(32));
                    let bytes = self.personality.file_bytes.draw(&mut rng);
                    self.whole_file(&mut at_ns, Operation::Read, file, bytes);
                }
                Step::WriteFile => {
                    let file = self.rng.u64(..self.personality.files);
                    let mut rng = self.rng.fork();
                    let bytes = self.personality.file_bytes.draw(&mut rng);
                    self.whole_file(&mut at_ns, Operation::Write, file, bytes);
                }
                Step::Append(most) => self.append(&mut at_ns, most),
                Step::Flush => self.add(&mut at_ns, Operation::Flush, 0, 0, Flags::NONE),
                Step::ReadAt(bytes) => {
                    let offset = self.random_offset(bytes);
                    self.add(&mut at_ns, Operation::Read, offset, bytes, Flags::NONE);
                }
                Step::WriteEvery { rounds, writes, bytes } => {
                    let count = if self.made.rounds.is_multiple_of(rounds) { writes } else { 0 };
                    for _ in 0..count {
                        let offset = self.random_offset(bytes);
                        self.add(&mut at_ns, Operation::Write, offset, bytes, Flags::FUA);
                    }
                    at_ns += self.exponential(PAUSE_NS);
                }
                Step::Requests(requests) => self.requests(&mut at_ns, requests),
                Step::Think(seconds) => {
                    at_ns += self.exponential(seconds * 1e9);
                    at_ns += self.exponential(PAUSE_NS);
                }
            }
        }
    }

    /// A whole file, in requests of [`IO_BYTES`].
    fn whole_file(&mut self, at_ns: &mut f64, operation: Operation, file: u64, bytes: u64) {
        let start = file * self.personality.file_bytes.longest();
        let mut done = 0;
        while done < bytes {
            let piece = IO_BYTES.min(bytes - done);
            self.add(at_ns, operation, start + done, piece, Flags::NONE);
            done += piece;
        }
        *at_ns += self.exponential(PAUSE_NS);
    }

    /// Appends up to `most` bytes.
    fn append(&mut self, at_ns: &mut f64, most: u64) {
        let bytes = self.rng.u64(1..=most);
        // Wraps around at the end of the area.
        if self.log_bytes + bytes > LOG_BYTES {
            self.log_bytes = 0;
        }
        let start = self.personality.files_bytes() + self.log_bytes;
        self.add(at_ns, Operation::Write, start, bytes, Flags::NONE);
        self.log_bytes += bytes;
    }

    /// Requests of whole pages, partly sequential.
    fn requests(&mut self, at_ns: &mut f64, requests: Requests) {
        let files_bytes = self.personality.files_bytes();
        let mut next = None;
        for _ in 0..requests.count {
            let pages = (requests.bytes.draw(&mut self.rng) as f64 / PAGE as f64).round().max(1.0);
            let bytes = pages as u64 * PAGE;
            let is_sequential = self.rng.f64() < requests.sequential_share;
            let offset = match next {
                Some(next) if is_sequential && next + bytes <= files_bytes => next,
                _ => self.rng.u64(..=(files_bytes - bytes) / PAGE) * PAGE,
            };
            self.add(at_ns, requests.operation, offset, bytes, requests.flags);
            next = Some(offset + bytes);
        }
        *at_ns += self.exponential(PAUSE_NS);
    }

    /// A random aligned position for `bytes` in a file.
    fn random_offset(&mut self, bytes: u64) -> u64 {
        let places = self.personality.files_bytes() / bytes;
        self.rng.u64(..places) * bytes
    }

    /// Adds a request in whole pages and advances by a pause.
    fn add(&mut self, at_ns: &mut f64, operation: Operation, offset: u64, bytes: u64, flags: Flags) {
        let (start, end) = match operation {
            Operation::Flush => (0, 0),
            _ => (offset / PAGE * PAGE, (offset + bytes).next_multiple_of(PAGE)),
        };
        let issue_ns = *at_ns as u64;
        let pause_ns = self.exponential(PAUSE_NS);
        let end_ns = issue_ns + (pause_ns * TAKEN) as u64;
        *at_ns += pause_ns;
        let bytes = (end - start) as u32;
        let request = (issue_ns, self.number, operation as u8, start, bytes, flags.bits(), end_ns);
        self.number += 1;
        self.waiting.push(Reverse(request));
    }

    /// Writes all requests before `until_ns`; later additions are never earlier.
    pub(super) fn write_until(
        &mut self,
        until_ns: u64,
        writer: &mut NativeWriter<impl Write>,
    ) -> io::Result<()> {
        while let Some(Reverse((at_ns, _, operation, offset, bytes, flags, end_ns))) =
            self.waiting.peek().copied()
        {
            if at_ns >= until_ns {
                break;
            }
            self.waiting.pop();
            let zero_ns = *self.zero_ns.get_or_insert(at_ns);
            let operation = Operation::of_number(operation).unwrap_or(Operation::Read);
            let record = Record::new(at_ns - zero_ns, operation, 0, offset, bytes);
            let record = record.completed(Some(end_ns - zero_ns));
            writer.record(&record.flagged(Flags::of_bits(flags).unwrap_or_default()))?;
            self.made.records += 1;
            self.made.bytes += u64::from(bytes);
        }
        Ok(())
    }

    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        exponential(&mut self.rng, mean)
    }
}
