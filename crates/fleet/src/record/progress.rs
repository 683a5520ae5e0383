//! Counters of the current recorder, for heartbeats.
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keepup_recorder::counters::{Counters as RecorderCounters, StreamCounters};

use crate::message::Counters;

/// Counters of the current recorder, for heartbeats.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Option<Watched>>>);

struct Watched {
    counters: Arc<RecorderCounters>,
    streams: Vec<Arc<StreamCounters>>,
}

impl Progress {
    pub(super) fn watch(&self, counters: Arc<RecorderCounters>) {
        *self.lock() = Some(Watched { counters, streams: Vec::new() });
    }

    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    pub(super) fn counters(&self) -> Counters {
        let mut watched = self.lock();
        let Some(Watched { counters, streams }) = watched.as_mut() else { return Counters::default() };
        counters.streams.catch_up(streams);
        let has = |is_set: fn(&StreamCounters) -> bool| {
            let set = streams.iter().filter(|stream| is_set(stream)).count();
            u32::try_from(set).unwrap_or(u32::MAX)
        };
        let intakes = &counters.intakes;
        Counters {
            events: intakes.iter().map(|intake| intake.received_events.load(Relaxed)).sum(),
            bytes: intakes.iter().map(|intake| intake.received_bytes.load(Relaxed)).sum(),
            durable_events: counters.volumes.iter().map(|volume| volume.durable_events.load(Relaxed)).sum(),
            connected_streams: has(|stream| stream.connected.load(Relaxed)),
            ended_streams: has(|stream| stream.ended.load(Relaxed)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
