//! Order of the images of a PV by their `uniqueId`.
//!
//! The sequence number of an image is the distance of its `uniqueId` from that of the first one; the 32-bit
//! counter wraps around. Servers deliver images out of order, repeat them, set the counter back, or do not
//! count at all. A number that does not continue the stream starts a run, which is held: more images of the
//! run show that the counter was set, an image that continues the stream shows that the run was an oddity.
use keepup_stream::rejected::RejectReason::{self, Conflicting, Contradictory, Late};

use crate::continuity::{Continuity, Place};

/// A jump over more images than this starts a run.
const NEAR_MAX: i64 = 1 << 20;
/// Most numbers that may be missing between two images of a run.
const RUN_GAP_MAX: i32 = 64;
/// Images of a run that show that the counter was set.
const RUN_MIN: usize = 3;
/// Images of a run that show it when nothing follows them.
const RUN_MIN_AT_END: usize = 2;
/// Longest time that a run of at least [`RUN_MIN_AT_END`] images waits for another one, ns.
const WAIT_NS: u64 = 2_000_000_000;

/// What becomes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next image of the stream, with this sequence number.
    Next(u64),
    /// It must be held until its predecessors arrive.
    Early(u64),
    /// It must be added to the run. The reason for which it is rejected if the run is an oddity.
    Run(RejectReason),
    /// It was recorded, with the same content.
    Repeated,
    Rejected(RejectReason),
}

/// An image that has arrived, as far as its order depends on it.
pub(super) struct Candidate<'a> {
    /// Its `uniqueId`.
    pub(super) id: i32,
    /// Whether it has a time of its own. Otherwise two images of equal content are not the same one.
    pub(super) has_time: bool,
    /// Digest of its content and its time.
    pub(super) digest: &'a dyn Fn() -> u64,
}

#[derive(Debug)]
struct Odd<T> {
    id: i32,
    reason: RejectReason,
    bytes: usize,
    image: T,
}

/// Order of a PV's images, each held with a `T`.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// `uniqueId` of the image with sequence number 0.
    origin: Option<i32>,
    pub(super) images: Continuity<T>,
    run: Vec<Odd<T>>,
    run_since_ns: Option<u64>,
    /// Whether the last images had the same `uniqueId`: the server does not count.
    is_unnumbered: bool,
    /// Images of runs that were oddities.
    refused: Vec<(RejectReason, i32)>,
    /// Times that the counter was set.
    pub(super) restarts: u64,
    /// Images with the `uniqueId` of the image before.
    pub(super) repeats: u64,
}

impl<T> Order<T> {
    /// The order of a stream without images.
    pub(super) fn new() -> Self {
        Self {
            origin: None,
            images: Continuity::new(),
            run: Vec::new(),
            run_since_ns: None,
            is_unnumbered: false,
            refused: Vec::new(),
            restarts: 0,
            repeats: 0,
        }
    }

    /// `uniqueId` of the last image that was handed out; `None` before the first one.
    pub(super) fn last_id(&self) -> Option<i32> {
        let last = self.images.next().checked_sub(1)?;
        self.origin.map(|origin| origin.wrapping_add(last as i32))
    }

    /// Judges an image. `of_held` returns the digest of an image that is held.
    pub(super) fn judge(&mut self, found: &Candidate<'_>, of_held: impl Fn(&T) -> u64) -> Arrival {
        let (id, next) = (found.id, self.images.next());
        let origin = *self.origin.get_or_insert(id);
        let step = i64::from(id.wrapping_sub(origin.wrapping_add(next as i32)));
        let is_after_loss = self.images.is_after_loss();
        let is_near = step <= NEAR_MAX || is_after_loss;
        if step >= 0 && is_near {
            if self.run.len() >= RUN_MIN_AT_END && self.continues_run(id) {
                return Arrival::Run(Conflicting);
            }
            self.refuse_run();
            self.is_unnumbered = false;
            let number = next.saturating_add(step.unsigned_abs());
            return match self.images.place(number) {
                Place::Next => Arrival::Next(number),
                Place::Held if self.images.held(number).map(&of_held) == Some((found.digest)()) => {
                    Arrival::Repeated
                }
                Place::Held => Arrival::Rejected(Conflicting),
                _ => Arrival::Early(number),
            };
        }
        if self.is_unnumbered && step == -1 {
            return self.continue_unnumbered(id);
        }
        let mut reason = Contradictory;
        if step < 0 {
            let number = next.checked_sub(step.unsigned_abs());
            let place = number.map(|number| (number, self.images.place(number)));
            let is_only = next == 1 && step == -1;
            match place {
                Some((_, Place::Known(digest)))
                    if (found.has_time || !is_only) && digest == (found.digest)() =>
                {
                    return Arrival::Repeated;
                }
                // A server that does not count.
                _ if is_only && !is_after_loss => return self.continue_unnumbered(id),
                Some((_, Place::Known(_))) => reason = Conflicting,
                Some((number, _))
                    if self.images.remembers(number) && self.run.is_empty() && !is_after_loss =>
                {
                    return Arrival::Rejected(Late);
                }
                _ => reason = Late,
            }
        }
        if is_after_loss {
            // The server was started again.
            self.restarts = self.restarts.saturating_add(1);
            return self.go_on_with(id);
        }
        if !self.run.is_empty() && !self.continues_run(id) {
            if self.run.iter().any(|odd| odd.id == id) {
                self.take_run();
            } else {
                self.refuse_run();
            }
        }
        Arrival::Run(reason)
    }

    /// Continues with an image whose `uniqueId` is that of the image before.
    fn continue_unnumbered(&mut self, id: i32) -> Arrival {
        self.is_unnumbered = true;
        self.repeats = self.repeats.saturating_add(1);
        self.go_on_with(id)
    }

    /// The image `id` follows everything that has arrived.
    fn go_on_with(&mut self, id: i32) -> Arrival {
        let number = self.images.end();
        self.origin = Some(id.wrapping_sub(number as i32));
        if number == self.images.next() { Arrival::Next(number) } else { Arrival::Early(number) }
    }

    /// Whether the image `id` continues the run, maybe after some that are missing.
    fn continues_run(&self, id: i32) -> bool {
        self.run.last().is_some_and(|last| (1..=RUN_GAP_MAX).contains(&id.wrapping_sub(last.id)))
    }

    /// Adds an image of `bytes` that was judged [`Arrival::Run`].
    pub(super) fn add_to_run(&mut self, id: i32, reason: RejectReason, bytes: usize, image: T) {
        self.run.push(Odd { id, reason, bytes, image });
        self.run_since_ns = None;
        if self.run.len() >= RUN_MIN {
            self.take_run();
        }
    }

    /// The counter was set: the run follows everything that has arrived.
    fn take_run(&mut self) {
        let Some(first) = self.run.first().map(|odd| odd.id) else { return };
        let number = self.images.end();
        self.origin = Some(first.wrapping_sub(number as i32));
        self.restarts = self.restarts.saturating_add(1);
        for odd in self.run.drain(..) {
            let step = odd.id.wrapping_sub(first).unsigned_abs();
            self.images.hold(number.saturating_add(step.into()), odd.bytes, odd.image);
        }
        self.images.release();
    }

    /// The run was an oddity.
    fn refuse_run(&mut self) {
        self.refused.extend(self.run.drain(..).map(|odd| (odd.reason, odd.id)));
    }

    /// Decides about the run: nothing follows it.
    fn end_run(&mut self) {
        if self.run.len() >= RUN_MIN_AT_END { self.take_run() } else { self.refuse_run() }
    }

    /// An image was handed out.
    pub(super) fn handed_out(&mut self, number: u64, digest: u64) {
        self.images.handed_out(number, digest);
    }

    /// Images that were rejected after they had been held: reason and `uniqueId`.
    pub(super) fn take_refused(&mut self) -> Vec<(RejectReason, i32)> {
        std::mem::take(&mut self.refused)
    }

    /// The connection was lost: it does not wait for images that were on it.
    pub(super) fn after_loss(&mut self) {
        self.end();
        self.images.after_loss();
    }

    /// Nothing more arrives: all that is held is due.
    pub(super) fn end(&mut self) {
        self.end_run();
        self.images.release();
    }

    /// Decides about what has waited for too long at `now_ns`, monotonic ns.
    pub(super) fn tick(&mut self, now_ns: u64) {
        self.images.tick(now_ns);
        if self.run.len() < RUN_MIN_AT_END {
            self.run_since_ns = None;
        } else if now_ns.saturating_sub(*self.run_since_ns.get_or_insert(now_ns)) >= WAIT_NS {
            self.take_run();
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
