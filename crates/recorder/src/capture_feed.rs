//! Packets of a capture file on their way to an intake.
//!
//! A thread of its own reads the file, so a slow disk does not hold up the other sources of the intake. A
//! fixed number of chunks circulates: while the intake waits for memory, the thread waits for an empty chunk,
//! and no packet is lost.
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_sources::CaptureAddress;
use keepup_sources::capture::{Capture, Chunk};
use keepup_stream::rejected::Rejection;
use keepup_sys::datagram::Batch;
use keepup_sys::waker::Waker;

use crate::RecorderError;
use crate::error::REPORT;
use crate::threads::catch_panic;

/// Chunks that circulate.
const CHUNKS: usize = 4;
/// Time of the capture in one chunk at the original pace, ns: packets are late by at most this.
const PACE_SPAN_NS: u64 = 5_000_000;
/// Longest pause of a capture that is kept, ns: a longer one is a step of its clock.
const PAUSE_NS_MAX: u64 = 86_400_000_000_000;
/// Longest sleep before the thread checks whether it is still needed, ns.
const SLEEP_NS: u64 = 100_000_000;

/// What the thread hands over.
enum Message {
    Chunk(Chunk),
    /// Nothing more follows.
    End {
        remarks: Vec<String>,
        rejected: Vec<Rejection>,
        failure: Option<Cause>,
    },
}

/// Result of [`CaptureFeed::fill`].
pub(crate) enum Fill {
    /// Packets were added: their number and bytes.
    Packets(usize, usize),
    /// The thread has nothing yet. The descriptor becomes readable when it has.
    Empty,
    /// The file has ended, or cannot be read any further.
    End,
}

/// The intake's end.
pub(crate) struct CaptureFeed {
    messages: Receiver<Message>,
    empty: SyncSender<Chunk>,
    waker: Waker,
    chunk: Chunk,
    /// Next packet of the chunk.
    next: usize,
    /// Sentences about packets that the file has and the feed does not hand out.
    pub(crate) remarks: Vec<String>,
    /// Packets of the file that are not handed out and are not excluded by a setting.
    pub(crate) rejected: Vec<Rejection>,
    pub(crate) failure: Option<Cause>,
    has_ended: bool,
}

/// Opens the file of a source.
pub(crate) fn open(address: &CaptureAddress) -> Result<Capture, RecorderError> {
    let open = |source| RecorderError::OpenCapture { path: address.path.clone(), source };
    let file = File::open(&address.path).map_err(open)?;
    // A hint, which pipes do not know.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
    let fail = |source| RecorderError::Capture { path: address.path.clone(), source };
    Capture::open(file, address.port).map_err(fail)
}

impl CaptureFeed {
    /// Starts a thread that reads `capture`. Returns the feed and a descriptor that is readable while the
    /// feed has packets.
    pub(crate) fn start(
        capture: Capture,
        keeps_pace: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, OwnedFd), Cause> {
        let waker = Waker::new().map_err(|error| Cause::of(&error))?;
        let descriptor = waker.as_fd().try_clone_to_owned().map_err(|error| Cause::new(error.to_string()))?;
        let (sender, messages) = sync_channel(CHUNKS + 1);
        let (empty, chunks) = sync_channel(CHUNKS);
        (0..CHUNKS).for_each(|_| drop(empty.try_send(Chunk::default())));
        let mut reader = Reader { capture, chunks, spare: Vec::new(), sender, waker: waker.clone() };
        std::thread::Builder::new()
            .name("ku-capture".to_owned())
            .spawn(move || {
                if let Err(why) = catch_panic(|| reader.run(keeps_pace.then_some(clock))) {
                    let failure = Some(Cause::new(why).with_hint(REPORT));
                    reader.hand_over(Message::End { remarks: Vec::new(), rejected: Vec::new(), failure });
                }
            })
            .map_err(|error| Cause::new(format!("cannot start a thread: {error}")))?;
        let feed = Self {
            messages,
            empty,
            waker,
            chunk: Chunk::default(),
            next: 0,
            remarks: Vec::new(),
            rejected: Vec::new(),
            failure: None,
            has_ended: false,
        };
        Ok((feed, descriptor))
    }

    /// Fills `batch` with the next packets.
    pub(crate) fn fill(&mut self, batch: &mut Batch) -> Fill {
        let mut is_cleared = false;
        while self.chunk.packet(self.next).is_none() {
            let chunk = std::mem::take(&mut self.chunk);
            if !chunk.is_empty() {
                // Fails only when the thread has ended.
                let _ = self.empty.try_send(chunk);
            }
            if self.has_ended {
                return Fill::End;
            }
            match self.messages.try_recv() {
                Ok(Message::Chunk(chunk)) => (self.chunk, self.next) = (chunk, 0),
                Ok(Message::End { remarks, rejected, failure }) => {
                    (self.remarks, self.rejected) = (remarks, rejected);
                    (self.failure, self.has_ended) = (failure, true);
                }
                // The thread may have handed over something just before the clearing.
                Err(TryRecvError::Empty) if !is_cleared => {
                    self.waker.clear();
                    is_cleared = true;
                }
                Err(TryRecvError::Empty) => return Fill::Empty,
                Err(TryRecvError::Disconnected) => {
                    self.failure = Some(Cause::new("the thread that reads the file failed"));
                    self.has_ended = true;
                }
            }
        }
        if is_cleared {
            // There may be more behind what was found.
            self.waker.wake();
        }
        batch.clear();
        let (mut count, mut bytes) = (0, 0);
        while let Some(packet) = self.chunk.packet(self.next) {
            if !batch.put(packet.payload, (packet.sender, Some(packet.destination)), packet.captured_ns) {
                break;
            }
            (self.next, count, bytes) = (self.next + 1, count + 1, bytes + packet.payload.len());
        }
        Fill::Packets(count, bytes)
    }

    /// Whether the file has been read up to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

/// Pace of a capture.
#[derive(Default)]
struct Pace {
    /// Time of the clock and of the capture at a packet.
    start: Option<(u64, u64)>,
    /// Time of the last packet.
    last_ns: u64,
    /// Steps of the capture's clock, and the first one, s.
    steps: u64,
    first_step_s: i64,
}

impl Pace {
    /// When packets that were captured from `first_ns` to `last_ns` are due; the clock shows `now_ns`.
    fn due_ns(&mut self, (first_ns, last_ns): (u64, u64), now_ns: u64) -> u64 {
        let is_step = |from: u64, to: u64| to < from || to - from > PAUSE_NS_MAX;
        let before_ns = if self.start.is_some() { self.last_ns } else { first_ns };
        for (from, to) in [(before_ns, first_ns), (first_ns, last_ns)] {
            if is_step(from, to) {
                let step_s = to.cast_signed().saturating_sub(from.cast_signed()) / 1_000_000_000;
                self.first_step_s = if self.steps == 0 { step_s } else { self.first_step_s };
                self.steps = self.steps.saturating_add(1);
                self.start = Some((now_ns, to));
            }
        }
        self.last_ns = last_ns;
        let (clock_ns, captured_ns) = *self.start.get_or_insert((now_ns, first_ns));
        clock_ns.saturating_add(last_ns.saturating_sub(captured_ns))
    }

    fn remark(&self) -> Option<String> {
        let Self { steps, first_step_s, .. } = self;
        (*steps > 0).then(|| {
            format!(
                "the clock of the capture was set {steps} times, first by {first_step_s} s: no wait there"
            )
        })
    }
}

/// The thread's end.
struct Reader {
    capture: Capture,
    chunks: Receiver<Chunk>,
    /// Chunks that came back while the thread waited.
    spare: Vec<Chunk>,
    sender: SyncSender<Message>,
    waker: Waker,
}

impl Reader {
    /// Reads until the end of the file, or until the feed is dropped. With a clock, at the pace of the
    /// capture.
    fn run(&mut self, clock: Option<Arc<dyn Clock>>) {
        let span_ns = if clock.is_some() { PACE_SPAN_NS } else { u64::MAX };
        let mut pace = Pace::default();
        let failure = loop {
            let Some(mut chunk) = self.spare.pop().or_else(|| self.chunks.recv().ok()) else { return };
            let read = self.capture.read(&mut chunk, span_ns);
            if let (Some(clock), Some(last_ns)) = (&clock, chunk.last_ns()) {
                let first_ns = chunk.packet(0).map_or(last_ns, |packet| packet.captured_ns);
                let due_ns = pace.due_ns((first_ns, last_ns), clock.now_ns());
                if !self.sleep_until(clock.as_ref(), due_ns) {
                    return;
                }
            }
            match chunk.is_empty() {
                true => self.spare.push(chunk),
                false => self.hand_over(Message::Chunk(chunk)),
            }
            match read {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(Cause::of(&error)),
            }
        };
        let (mut remarks, rejected) = (self.capture.remarks(), self.capture.rejected());
        remarks.extend(pace.remark());
        self.hand_over(Message::End { remarks, rejected, failure });
    }

    fn hand_over(&self, message: Message) {
        // Never waits: the channel has space for all chunks and the end.
        if self.sender.send(message).is_ok() {
            self.waker.wake();
        }
    }

    /// Sleeps; returns whether the feed still exists.
    fn sleep_until(&mut self, clock: &dyn Clock, due_ns: u64) -> bool {
        loop {
            match self.chunks.try_recv() {
                Ok(chunk) => self.spare.push(chunk),
                Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => {
                    let now_ns = clock.now_ns();
                    if now_ns >= due_ns {
                        return true;
                    }
                    clock.sleep_until_ns(due_ns.min(now_ns + SLEEP_NS));
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "capture_feed_tests.rs"]
mod tests;
