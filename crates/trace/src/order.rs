//! From what a file has to what a trace is: requests sorted by time of issue, from 0, checked and counted.
//!
//! Invariants: memory is one window, whatever the file; requests come out in ascending time, those with the
//! same time in the order of the file; what is changed or left out is counted; a request that comes too
//! late to be sorted ends the reading with its place.
use super::batch::{Batch, NO_TIME, Raw, Reader};
use super::error::{Complaint, Fault, Place};
use super::header::TraceDevice;
use super::record::{Operation, Record};
use super::units::Suspicion;

/// Requests over which a late one can still be put into its place.
pub const WINDOW: usize = 65_536;
/// A time this far from the one before is not believed: 30 days.
const ABSURD_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// Requests with absurd times in a row that are left out; more of them are the trace itself.
const ABSURD_MAX: u32 = 16;
/// The end of the last device, bytes.
const END_MAX: u64 = i64::MAX as u64;

/// Sorts what a reader gives.
pub(super) struct Ordered {
    reader: Box<dyn Reader>,
    pub(super) batch: Batch,
    /// What was read and not given: sorted up to `sorted`.
    window: Vec<Raw>,
    is_sorted: bool,
    is_ended: bool,
    suspicion: Option<Suspicion>,
    selection: Option<Selection>,
    /// Time of the first request that was given.
    zero_ns: Option<i64>,
    given_ns: i64,
    latest_ns: i64,
    believed_ns: Option<i64>,
    absurd: (u32, u64),
}

/// The one device that was asked for.
struct Selection {
    name: String,
    number: Option<u16>,
    looked_at: usize,
}

impl Ordered {
    /// `suspicion` says whether the first window is looked at for sectors against bytes; `device` is the only
    /// one whose requests are given.
    pub(super) fn new(reader: Box<dyn Reader>, suspicion: Option<Suspicion>, device: Option<&str>) -> Self {
        let name = device.map(str::to_owned);
        Self {
            reader,
            batch: Batch::default(),
            window: Vec::new(),
            is_sorted: true,
            is_ended: false,
            suspicion,
            selection: name.map(|name| Selection { name, number: None, looked_at: 0 }),
            zero_ns: None,
            given_ns: i64::MIN,
            latest_ns: i64::MIN,
            believed_ns: None,
            absurd: (0, 0),
        }
    }

    /// Adds the next requests; false when there are no more.
    pub(super) fn fill(&mut self, records: &mut Vec<Record>) -> Result<bool, Fault> {
        while !self.is_ended && self.window.len() < 2 * WINDOW {
            self.is_ended = !self.reader.fill(&mut self.batch)?;
            self.take()?;
        }
        if let Some(suspicion) = self.suspicion.take() {
            suspicion.judge(&self.window).map_err(Fault::Asked)?;
        }
        if !self.is_sorted {
            // Stable: what has the same time stays as it was.
            self.window.sort_by_key(|raw| raw.time_ns);
            self.is_sorted = true;
        }
        let ready = if self.is_ended { self.window.len() } else { WINDOW };
        self.give(ready, records);
        if self.is_ended {
            self.end()?;
        }
        Ok(!self.is_ended)
    }

    /// The devices of what is given.
    pub(super) fn devices(&self) -> &[TraceDevice] {
        match &self.selection {
            None => &self.batch.devices,
            Some(selection) => match selection.number {
                Some(number) => &self.batch.devices[usize::from(number)..=usize::from(number)],
                None => &[],
            },
        }
    }

    /// Puts what was read into the window.
    fn take(&mut self) -> Result<(), Fault> {
        let mut records = std::mem::take(&mut self.batch.records);
        self.window.reserve(records.len());
        for raw in &records {
            if self.is_left_out(raw)? {
                continue;
            }
            if raw.time_ns < self.latest_ns {
                self.batch.corrections.reordered += 1;
                self.is_sorted = false;
                if raw.time_ns < self.given_ns {
                    return Err(self.too_late(raw));
                }
            } else {
                self.latest_ns = raw.time_ns;
            }
            self.window.push(*raw);
        }
        records.clear();
        self.batch.records = records;
        Ok(())
    }

    #[inline]
    fn is_left_out(&mut self, raw: &Raw) -> Result<bool, Fault> {
        if let Some(selection) = &mut self.selection
            && !selection.has(raw.device, &self.batch.devices)
        {
            self.batch.corrections.other_devices += 1;
            return Ok(true);
        }
        let believed_ns = *self.believed_ns.get_or_insert(raw.time_ns);
        if raw.time_ns.abs_diff(believed_ns) > ABSURD_NS {
            return self.is_absurd(raw);
        }
        self.absurd.0 = 0;
        self.believed_ns = Some(raw.time_ns);
        let corrections = &mut self.batch.corrections;
        if raw.bytes == 0 && raw.operation != Operation::Flush {
            corrections.zero_sizes += 1;
            return Ok(true);
        }
        if raw.bytes > u64::from(u32::MAX) || raw.offset > END_MAX - raw.bytes {
            corrections.too_large += 1;
            return Ok(true);
        }
        Ok(false)
    }

    #[cold]
    fn is_absurd(&mut self, raw: &Raw) -> Result<bool, Fault> {
        self.batch.corrections.absurd_times += 1;
        if self.absurd.0 == 0 {
            self.absurd.1 = raw.place;
        }
        self.absurd.0 += 1;
        if self.absurd.0 <= ABSURD_MAX {
            return Ok(true);
        }
        let days = raw.time_ns.abs_diff(self.believed_ns.unwrap_or_default()) / (86_400 * 1_000_000_000);
        let what = format!("times are {days} days away from those before, from here on");
        let help = "one of both parts has wrong times, or the file has two traces: cut it in two here";
        Err(Complaint::new(what).help(help).at(self.place(self.absurd.1)))
    }

    #[cold]
    fn too_late(&self, raw: &Raw) -> Fault {
        let behind_ns = self.given_ns.abs_diff(raw.time_ns);
        let what = format!(
            "it is {}.{:06} ms earlier than a request that stands {WINDOW} or more before it",
            behind_ns / 1_000_000,
            behind_ns % 1_000_000
        );
        let help = "sort the file by time first; blktrace's files of single processors are given together";
        Complaint::new(what).help(help).at(self.place(raw.place))
    }

    fn place(&self, place: u64) -> Place {
        if self.reader.has_lines() { Place::Line(place) } else { Place::Byte(place) }
    }

    /// Gives the first `count` of the window.
    fn give(&mut self, count: usize, records: &mut Vec<Record>) {
        records.reserve(count);
        let zero_ns = match (self.zero_ns, self.window.first()) {
            (Some(zero_ns), _) => zero_ns,
            (None, Some(raw)) => raw.time_ns,
            (None, None) => return,
        };
        self.zero_ns = Some(zero_ns);
        let is_selected = self.selection.is_some();
        let (mut given_ns, mut duplicates, mut early) = (self.given_ns, 0, 0);
        for raw in &self.window[..count] {
            duplicates += u64::from(raw.time_ns == given_ns);
            given_ns = raw.time_ns;
            let device = if is_selected { 0 } else { raw.device };
            let issue_ns = raw.time_ns.wrapping_sub(zero_ns) as u64;
            let is_early = raw.completion_ns != NO_TIME && raw.completion_ns < raw.time_ns;
            early += u64::from(is_early);
            let is_known = raw.completion_ns != NO_TIME && !is_early;
            let completion_ns = is_known.then(|| raw.completion_ns.wrapping_sub(zero_ns) as u64);
            // Checked when it was taken: 32 bits are enough.
            let record = Record::new(issue_ns, raw.operation, device, raw.offset, raw.bytes as u32);
            records.push(record.completed(completion_ns).flagged(raw.flags));
        }
        self.given_ns = given_ns;
        self.batch.corrections.duplicate_times += duplicates;
        self.batch.corrections.early_completions += early;
        self.window.drain(..count);
    }

    /// What can only be known at the end.
    fn end(&self) -> Result<(), Fault> {
        let Some(Selection { name, number: None, .. }) = &self.selection else { return Ok(()) };
        let names: Vec<&str> = self.batch.devices.iter().take(20).map(|device| &*device.name).collect();
        let what = format!("the trace has no device {name:?}");
        let help = match names.is_empty() {
            true => "the trace has no requests".to_owned(),
            false => format!("it has {}", names.join(", ")),
        };
        Err(Fault::Usage(Complaint::new(what).help(help)))
    }
}

impl Selection {
    #[inline]
    fn has(&mut self, device: u16, devices: &[TraceDevice]) -> bool {
        if self.number.is_none() {
            let new = &devices[self.looked_at.min(devices.len())..];
            let at = new.iter().position(|device| device.name == self.name);
            self.number = at.map(|at| (self.looked_at + at) as u16);
            self.looked_at = devices.len();
        }
        self.number == Some(device)
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
