//! From the recorder's tap to the page's: a thread that hands on what was copied.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use keepup_live::{EventCopy, TapOutput, TapSource};
use keepup_recorder::tap::{Tap, TapEvent};
use keepup_results::live::TapFilter;

use crate::http::event_card;

/// Memory for copies of events, in bytes.
const TAP_BYTES: usize = 64 << 20;
/// Pause between two looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A tap for a page.
pub(super) fn tap() -> anyhow::Result<Arc<Tap>> {
    Ok(Arc::new(Tap::new(TAP_BYTES).context("cannot make a tap for events")?))
}

/// The recorder's tap, as the page asks for seats.
pub(super) struct Seats(pub(super) Arc<Tap>);

impl TapSource for Seats {
    fn sit(&self, filter: &TapFilter) -> Result<usize, String> {
        self.0.sit(filter.clone()).map_err(|e| e.to_string())
    }

    fn leave(&self, seat: usize) {
        self.0.leave(seat);
    }

    fn missed(&self, seat: usize) -> u64 {
        self.0.missed(seat)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Hands copies on until it is dropped.
pub(super) struct Messenger {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Messenger {
    pub(super) fn start(tap: Arc<Tap>, output: TapOutput) -> anyhow::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("ku-tap".into()).spawn(move || {
            keepup_sys::thread::yield_to_others();
            while !is_over.load(Ordering::Relaxed) {
                if let Some(event) = tap.next(LOOK_EVERY) {
                    output.hand_out(event.seats, copy(event));
                }
            }
        });
        Ok(Self { over, thread: Some(thread.context("cannot start a thread for the tap")?) })
    }
}

impl Drop for Messenger {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; the recording goes on without it.
            let _ = thread.join();
        }
    }
}

fn copy(event: TapEvent) -> EventCopy {
    let card = event_card(&event.stream.info, event.sequence, event.timestamp_ns);
    EventCopy::new(card, event.payload)
}
