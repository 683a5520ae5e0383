//! Reads an object in ranges, several in flight, and passes them on in order.
//!
//! Invariants: memory is one range per request in flight, whatever the server sends; a range of another
//! length than requested is an error.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use bytes::Bytes;
use keepup_measure::clock::Clock;

use crate::error::ArchiveError;
use crate::pace::{POLL, Pace, wait_until};
use crate::store::{Store, get_range, repeat};

/// How objects are read.
pub(crate) struct Download<'a> {
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) stop: &'a AtomicBool,
    /// Most ranges in flight.
    pub(crate) connections: usize,
    /// Size of a range, bytes.
    pub(crate) part_bytes: u64,
}

/// Tasks that are aborted when they are dropped.
#[derive(Default)]
struct Tasks(BTreeMap<u64, tokio::task::JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.values().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Passes the first `bytes` of the object `path` to `sink`, in order.
pub(crate) fn download(
    plan: &Download<'_>,
    path: &str,
    bytes: u64,
    pace: &mut Pace,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let object = plan.store.object(path);
    let count = bytes.div_ceil(plan.part_bytes);
    let (to, from) = channel::<(u64, object_store::Result<Bytes>)>();
    let mut tasks = Tasks::default();
    let mut waiting: BTreeMap<u64, Bytes> = BTreeMap::new();
    let (mut next, mut requested) = (0, 0);
    while next < count {
        while requested < count && requested < next + plan.connections as u64 {
            let range = requested * plan.part_bytes..bytes.min((requested + 1) * plan.part_bytes);
            let until_ns = pace.before(range.end - range.start, plan.clock.now_ns());
            wait_until(plan.clock, until_ns, plan.stop)?;
            let (objects, object, to) = (Arc::clone(&plan.store.objects), object.clone(), to.clone());
            let index = requested;
            tasks.0.insert(
                index,
                plan.store.runtime.spawn(async move {
                    let got = repeat(|| get_range(&*objects, &object, range.clone())).await;
                    let _ = to.send((index, got));
                }),
            );
            requested += 1;
        }
        let (index, got) = loop {
            if plan.stop.load(Ordering::Acquire) {
                return Err(ArchiveError::Stopped);
            }
            match from.recv_timeout(POLL) {
                Ok(got) => break got,
                Err(_) if tasks.0.values().all(|task| task.is_finished()) => {
                    // One that ended between the two looks has sent its outcome.
                    let lost =
                        || ArchiveError::Threads { source: std::io::Error::other("a transfer panicked") };
                    break from.try_recv().map_err(|_| lost())?;
                }
                Err(_) => {}
            }
        };
        tasks.0.remove(&index);
        let part = got.map_err(plan.store.fault("read", path))?;
        let wanted = plan.part_bytes.min(bytes - index * plan.part_bytes);
        if part.len() as u64 != wanted {
            let object = format!("{}/{path}", plan.store.location);
            let what =
                format!("{} bytes instead of {wanted} at offset {}", part.len(), index * plan.part_bytes);
            return Err(ArchiveError::Mismatch { doing: "read", object, what });
        }
        waiting.insert(index, part);
        while let Some(part) = waiting.remove(&next) {
            sink(&part)?;
            next += 1;
        }
    }
    Ok(())
}
