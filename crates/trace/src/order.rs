//! Sorts requests by issue time, starting at 0, and checks and counts them.
//!
//! Invariants: memory is limited to one window; output is in ascending time, and in file order for equal
//! times; every change and omission is counted; a request too late to be sorted is an error.
use super::batch::{Batch, NO_TIME, RawRecord, Reader};
use super::error::{FilePosition, ParseError, ReadError};
use super::header::TraceDevice;
use super::record::{Operation, Record};
use super::stages::Stages;
use super::units::UnitCheck;

/// Sorting window in requests: how far behind its place a request may be.
pub const WINDOW: usize = 65_536;
/// Largest plausible step between two times: 30 days.
const IMPLAUSIBLE_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// Largest number of consecutive requests with implausible times that are dropped. More are an error.
const IMPLAUSIBLE_MAX: u32 = 16;
/// Largest end of a request, bytes.
const END_MAX: u64 = i64::MAX as u64;

/// Sorts and checks the requests of a reader.
pub(super) struct Sorter {
    reader: Box<dyn Reader>,
    pub(super) batch: Batch,
    pub(super) stages: Stages,
    /// Requests that were read but not returned yet.
    window: Vec<RawRecord>,
    is_sorted: bool,
    is_ended: bool,
    unit_check: Option<UnitCheck>,
    selection: Option<Selection>,
    /// Time of the first returned request.
    zero_ns: Option<i64>,
    emitted_ns: i64,
    latest_ns: i64,
    plausible_ns: Option<i64>,
    implausible: (u32, u64),
}

/// The selected device.
struct Selection {
    name: String,
    number: Option<u16>,
    /// Devices compared with `name` so far.
    searched: usize,
}

impl Sorter {
    /// `unit_check` enables a check of the unit in the first window. `device` selects requests to that
    /// device.
    pub(super) fn new(reader: Box<dyn Reader>, unit_check: Option<UnitCheck>, device: Option<&str>) -> Self {
        let name = device.map(str::to_owned);
        Self {
            reader,
            batch: Batch::default(),
            stages: Stages::default(),
            window: Vec::new(),
            is_sorted: true,
            is_ended: false,
            unit_check,
            selection: name.map(|name| Selection { name, number: None, searched: 0 }),
            zero_ns: None,
            emitted_ns: i64::MIN,
            latest_ns: i64::MIN,
            plausible_ns: None,
            implausible: (0, 0),
        }
    }

    /// Appends the next requests; false at the end.
    pub(super) fn fill(&mut self, records: &mut Vec<Record>) -> Result<bool, ReadError> {
        while !self.is_ended && self.window.len() < 2 * WINDOW {
            self.is_ended = !self.reader.fill(&mut self.batch)?;
            self.absorb()?;
        }
        if let Some(unit_check) = self.unit_check.take() {
            unit_check.check(&self.window).map_err(ReadError::Ambiguous)?;
        }
        if !self.is_sorted {
            // A stable sort keeps the file order of equal times.
            self.window.sort_by_key(|raw| raw.time_ns);
            self.is_sorted = true;
        }
        let ready = if self.is_ended { self.window.len() } else { WINDOW };
        self.emit(ready, records);
        if self.is_ended {
            self.end()?;
        }
        Ok(!self.is_ended)
    }

    /// Devices of the returned requests.
    pub(super) fn devices(&self) -> &[TraceDevice] {
        match &self.selection {
            None => &self.batch.devices,
            Some(selection) => match selection.number {
                Some(number) => &self.batch.devices[usize::from(number)..=usize::from(number)],
                None => &[],
            },
        }
    }

    /// Moves the batch into the window.
    fn absorb(&mut self) -> Result<(), ReadError> {
        let mut records = std::mem::take(&mut self.batch.records);
        self.window.reserve(records.len());
        for raw in &records {
            if self.is_dropped(raw)? {
                continue;
            }
            if raw.time_ns < self.latest_ns {
                self.batch.corrections.reordered += 1;
                self.is_sorted = false;
                if raw.time_ns < self.emitted_ns {
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
    fn is_dropped(&mut self, raw: &RawRecord) -> Result<bool, ReadError> {
        if let Some(selection) = &mut self.selection
            && !selection.has(raw.device, &self.batch.devices)
        {
            self.batch.corrections.other_devices += 1;
            return Ok(true);
        }
        let plausible_ns = *self.plausible_ns.get_or_insert(raw.time_ns);
        if raw.time_ns.abs_diff(plausible_ns) > IMPLAUSIBLE_NS {
            return self.is_implausible(raw);
        }
        self.implausible.0 = 0;
        self.plausible_ns = Some(raw.time_ns);
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
    fn is_implausible(&mut self, raw: &RawRecord) -> Result<bool, ReadError> {
        self.batch.corrections.absurd_times += 1;
        if self.implausible.0 == 0 {
            self.implausible.1 = raw.position;
        }
        self.implausible.0 += 1;
        if self.implausible.0 <= IMPLAUSIBLE_MAX {
            return Ok(true);
        }
        let days = raw.time_ns.abs_diff(self.plausible_ns.unwrap_or_default()) / (86_400 * 1_000_000_000);
        let what = format!("times jump by {days} days");
        let help = "if the file contains two traces, split it here; otherwise one part has wrong times";
        Err(ParseError::new(what).help(help).at(self.position(self.implausible.1)))
    }

    #[cold]
    fn too_late(&self, raw: &RawRecord) -> ReadError {
        let behind_ns = self.emitted_ns.abs_diff(raw.time_ns);
        let what = format!(
            "it is {}.{:06} ms earlier than a request at least {WINDOW} requests before it",
            behind_ns / 1_000_000,
            behind_ns % 1_000_000
        );
        let help = "sort the file by time; pass the files that blktrace wrote per processor together";
        ParseError::new(what).help(help).at(self.position(raw.position))
    }

    fn position(&self, position: u64) -> FilePosition {
        if self.reader.has_lines() { FilePosition::Line(position) } else { FilePosition::Byte(position) }
    }

    /// Returns the first `count` requests of the window.
    fn emit(&mut self, count: usize, records: &mut Vec<Record>) {
        records.reserve(count);
        let zero_ns = match (self.zero_ns, self.window.first()) {
            (Some(zero_ns), _) => zero_ns,
            (None, Some(raw)) => raw.time_ns,
            (None, None) => return,
        };
        self.zero_ns = Some(zero_ns);
        let is_selected = self.selection.is_some();
        let (mut emitted_ns, mut duplicates, mut early) = (self.emitted_ns, 0, 0);
        for raw in &self.window[..count] {
            duplicates += u64::from(raw.time_ns == emitted_ns);
            emitted_ns = raw.time_ns;
            self.stages.take(raw);
            let device = if is_selected { 0 } else { raw.device };
            let issue_ns = raw.time_ns.wrapping_sub(zero_ns) as u64;
            let is_early = raw.completion_ns != NO_TIME && raw.completion_ns < raw.time_ns;
            early += u64::from(is_early);
            let is_known = raw.completion_ns != NO_TIME && !is_early;
            let completion_ns = is_known.then(|| raw.completion_ns.wrapping_sub(zero_ns) as u64);
            // The size was checked before: it fits into 32 bits.
            let record = Record::new(issue_ns, raw.operation, device, raw.offset, raw.bytes as u32);
            records.push(record.completed(completion_ns).flagged(raw.flags));
        }
        self.emitted_ns = emitted_ns;
        self.batch.corrections.duplicate_times += duplicates;
        self.batch.corrections.early_completions += early;
        self.window.drain(..count);
    }

    /// Checks at the end that the selected device exists.
    fn end(&self) -> Result<(), ReadError> {
        let Some(Selection { name, number: None, .. }) = &self.selection else { return Ok(()) };
        let names: Vec<&str> = self.batch.devices.iter().take(20).map(|device| &*device.name).collect();
        let what = format!("cannot select device {name:?}: the trace does not contain it");
        let help = match names.is_empty() {
            true => "the trace has no requests".to_owned(),
            false => format!("choose one of {}", names.join(", ")),
        };
        Err(ReadError::Usage(ParseError::new(what).help(help)))
    }
}

impl Selection {
    #[inline]
    fn has(&mut self, device: u16, devices: &[TraceDevice]) -> bool {
        if self.number.is_none() {
            let new = &devices[self.searched.min(devices.len())..];
            let at = new.iter().position(|device| device.name == self.name);
            self.number = at.map(|at| (self.searched + at) as u16);
            self.searched = devices.len();
        }
        self.number == Some(device)
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
