//! Streams that a client declares: which are known, whether it may feed them, and where new ones start.
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use keepup_error::Cause;
use keepup_measure::sum::Sums;
use keepup_stream::wire::StreamInfo;

use super::Store;
use super::reduced::Prepared;
use crate::intake::stream::Stream;

/// First sequence numbers of streams that other recorders have recorded before, by id.
pub(in crate::intake) type Starts = BTreeMap<u32, u64>;

impl Store {
    /// Connections that feed streams with these ids.
    pub(in crate::intake) fn owners<'a>(
        &'a self,
        declared: &'a [StreamInfo],
    ) -> impl Iterator<Item = (u32, usize)> + 'a {
        declared.iter().filter_map(|info| {
            let owner = self.by_id.get(&info.id).and_then(|&slot| self.streams[slot].owner);
            Some((info.id, owner?))
        })
    }

    /// Gives up the places of those of these streams that have one here and do not exist.
    pub(in crate::intake) fn forget_unknown(&self, declared: &[StreamInfo]) {
        let unknown: Vec<u32> =
            declared.iter().filter(|info| self.known(info).is_none()).map(|info| info.id).collect();
        self.shards.places().forget(&unknown, self.intake);
    }

    /// Number of these streams that exist here.
    pub(in crate::intake) fn count_known(&self, declared: &[StreamInfo]) -> usize {
        declared.iter().filter(|info| self.known(info).is_some()).count()
    }

    fn known(&self, info: &StreamInfo) -> Option<&Stream> {
        self.by_id.get(&info.id).map(|&slot| &self.streams[slot])
    }

    /// Checks whether a new connection may feed those of these streams that are known. Streams of the
    /// connections `replaced` count as free.
    pub(in crate::intake) fn check_known(
        &self,
        declared: &[StreamInfo],
        replaced: &[usize],
    ) -> Result<(), Cause> {
        for info in declared {
            if let Some(stream) = self.known(info) {
                if stream.is_derived() {
                    let (id, name) = (info.id, &stream.info.name);
                    let what = format!(
                        "cannot take stream {id}: this recording makes \"{name}\" with that id itself"
                    );
                    return Err(Cause::new(what).with_hint("another stream id"));
                }
                if stream.owner.is_some_and(|owner| !replaced.contains(&owner)) {
                    let hint = "end that client; one that is silent is replaced after --peer-timeout";
                    let what = format!("cannot take stream {}: another connection sends it", info.id);
                    return Err(Cause::new(what).with_hint(hint));
                }
                if stream.info != *info {
                    let id = info.id;
                    let what = format!(
                        "cannot take stream {id}: it was declared before, with another name or shape"
                    );
                    return Err(what.into());
                }
            }
        }
        Ok(())
    }

    /// Takes the streams of a new connection; all or none. Streams of the connections `replaced`
    /// count as free. New streams begin as `starts` says. Returns their slots in the order
    /// declared.
    pub(in crate::intake) fn adopt(
        &mut self,
        declared: &[StreamInfo],
        owner: usize,
        replaced: &[usize],
        starts: &Starts,
    ) -> Result<Vec<usize>, Cause> {
        self.check_known(declared, replaced)?;
        self.check_starts(starts)?;
        let new: Vec<&StreamInfo> = declared.iter().filter(|info| self.known(info).is_none()).collect();
        let mut claimed = Vec::new();
        let made = self.prepare(&new, &mut claimed).and_then(|made| {
            let shares = self.shares + made.iter().map(Prepared::shares).saturating_sum::<usize>();
            // Known streams have their memory.
            if !made.is_empty() {
                self.check_shares(self.by_id.len() + made.len(), shares)?;
            }
            Ok((shares, made))
        });
        let (shares, made) = made.inspect_err(|_| self.shards.places().forget(&claimed, self.intake))?;
        self.shares = shares;
        for mut prepared in made {
            prepared.start_at(starts);
            self.take_in(prepared)?;
        }
        let slots: Vec<usize> =
            declared.iter().filter_map(|info| self.by_id.get(&info.id).copied()).collect();
        for &slot in &slots {
            self.streams[slot].owner = Some(owner);
            if std::mem::take(&mut self.streams[slot].is_awaited) {
                self.shards.stream_is_back();
            }
            // Events that became durable without a connection are acknowledged now.
            self.streams[slot].dirty = true;
            self.touch(slot);
            self.streams[slot].figures.ended.store(false, Relaxed);
            self.streams[slot].publish();
        }
        Ok(slots)
    }

    /// Checks that no client has acknowledgements of another recorder for events that are due here.
    fn check_starts(&self, starts: &Starts) -> Result<(), Cause> {
        for (id, &start) in starts {
            let due = self.by_id.get(id).map(|&slot| self.streams[slot].next_sequence);
            if let Some(due) = due.filter(|due| *due < start) {
                let what = format!("cannot continue stream {id} at event {start}: event {due} is due here");
                let hint =
                    "close the connection to the other recorder before hello, and ignore its later acks";
                return Err(Cause::new(what).with_hint(hint));
            }
        }
        Ok(())
    }
}
