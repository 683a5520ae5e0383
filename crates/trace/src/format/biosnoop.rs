//! Output of bcc's biosnoop: one line per completed request.
//!
//! The first line names the columns: TIME(s), COMM, PID, DISK, T, SECTOR, BYTES, QUE(ms) with `-Q`,
//! LAT(ms), and PATTERN with `-P`. The issue time is TIME - LAT, also minus QUE if present, so lines are
//! not in issue order. Sectors have 512 bytes. Lost: requests in flight at the end, flags, and
//! operations that biosnoop counts as writes. The biosnoop of bpftrace has neither sector nor size and
//! is refused.
use super::in_bytes;
use crate::batch::{Batch, NO_TIME, RawRecord};
use crate::error::ParseError;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, shown, time_ns, words};

const SECONDS: usize = 9;
const MILLISECONDS: usize = 6;
const COLUMNS_MAX: usize = 16;
/// Largest number of words in a line: a program name may contain spaces.
const WORDS_MAX: usize = 32;
/// Required columns, in the order of [`Columns`].
const NEEDED: [&str; 7] = ["TIME(s)", "COMM", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"];
/// Known columns that are ignored.
const IGNORED: [&str; 2] = ["PID", "PATTERN"];
const QUEUED: &str = "QUE(ms)";

/// Parser of biosnoop's lines.
pub(super) struct Biosnoop {
    pub(super) unit: Unit,
    pub(super) columns: Option<Columns>,
}

/// Positions of the columns. Those after COMM are counted from the end of the line, since a program name may
/// contain spaces.
pub(super) struct Columns {
    count: usize,
    time: usize,
    disk: usize,
    kind: usize,
    sector: usize,
    bytes: usize,
    latency: usize,
    queued: Option<usize>,
}

impl Columns {
    fn of(line: &[u8]) -> Result<Self, ParseError> {
        let (fields, count) = words::<COLUMNS_MAX>(line);
        let fields = &fields[..count.min(COLUMNS_MAX)];
        let at = |name: &str| fields.iter().position(|field| *field == name.as_bytes());
        let mut places = [0; NEEDED.len()];
        for (position, name) in places.iter_mut().zip(NEEDED) {
            let Some(at) = at(name) else {
                let what = format!("it has no column {name}: {}", shown(line));
                return Err(ParseError::new(what)
                    .help("use the output of bcc's biosnoop; bpftrace's has neither sector nor size"));
            };
            *position = at;
        }
        let known = |field: &&[u8]| {
            let all = NEEDED.iter().chain(&IGNORED).chain([&QUEUED]);
            all.into_iter().any(|name| name.as_bytes() == *field)
        };
        if let Some(other) = fields.iter().find(|field| !known(field)) {
            return Err(ParseError::new(format!("unknown column {}", shown(other))));
        }
        let [time, comm, disk, kind, sector, bytes, latency] = places;
        if comm != time + 1 || [disk, kind, sector, bytes, latency].iter().any(|column| *column < comm) {
            return Err(ParseError::new("its columns are not in biosnoop's order"));
        }
        Ok(Self { count, time, disk, kind, sector, bytes, latency, queued: at(QUEUED) })
    }
}

impl LineFormat for Biosnoop {
    fn line(&mut self, line: &[u8], position: u64, batch: &mut Batch) -> Result<(), ParseError> {
        let (fields, count) = words::<WORDS_MAX>(line);
        if count == 0 {
            return Ok(());
        }
        let Some(columns) = &self.columns else {
            self.columns = Some(Columns::of(line)?);
            return Ok(());
        };
        // The name of an ended program is blank.
        if count + 1 < columns.count || count > WORDS_MAX {
            let what = format!("it has {count} words for {} columns", columns.count);
            return Err(ParseError::new(what));
        }
        // Only the name, in the second column, can be missing.
        let field = |column: usize| fields[column + count - columns.count];
        let done_ns = time_ns(fields[columns.time], SECONDS, "TIME(s)")?;
        let operation = match field(columns.kind) {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            b"D" => Operation::Discard,
            b"F" => Operation::Flush,
            other => return Err(bad(other, "T", "R or W")),
        };
        let device = batch.device(field(columns.disk))?;
        // Sector -1 means none, for requests without a size.
        let sector = field(columns.sector);
        let sector = if sector == b"-1" { 0 } else { number(sector, "SECTOR")? };
        let (mut offset, mut bytes) = (in_bytes(sector, self.unit)?, number(field(columns.bytes), "BYTES")?);
        if operation == Operation::Flush {
            (offset, bytes) = (0, 0);
        }
        // With the column QUE, the latency is that of driver and device.
        let sent_ns = done_ns.saturating_sub(time_ns(field(columns.latency), MILLISECONDS, "LAT(ms)")?);
        let (time_ns, dispatch_ns) = match columns.queued {
            None => (sent_ns, NO_TIME),
            Some(queued) => (sent_ns.saturating_sub(time_ns(field(queued), MILLISECONDS, QUEUED)?), sent_ns),
        };
        let flags = Flags::NONE;
        let completion_ns = done_ns;
        batch.records.push(RawRecord {
            time_ns,
            completion_ns,
            dispatch_ns,
            offset,
            bytes,
            position,
            device,
            operation,
            flags,
        });
        Ok(())
    }
}

#[cfg(test)]
#[path = "biosnoop_tests.rs"]
mod tests;
