//! The output of bcc's biosnoop: a line for each request when it is completed.
//!
//! Columns are found by the names in the first line: TIME(s), COMM, PID, DISK, T, SECTOR, BYTES, QUE(ms) with
//! `-Q`, LAT(ms), and PATTERN with `-P`. The time of issue is TIME - LAT, with QUE before that when it is
//! there, so lines are not in the order of their requests. Sectors have 512 bytes. Lost: what was under way
//! at the end, flags, and the difference between a write and what biosnoop counts as one. biosnoop of
//! bpftrace has neither sector nor size and is refused.
use super::in_bytes;
use crate::batch::{Batch, Raw};
use crate::error::Complaint;
use crate::header::Unit;
use crate::record::{Flags, Operation};
use crate::text::{LineFormat, bad, number, shown, time_ns, words};

const SECONDS: usize = 9;
const MILLISECONDS: usize = 6;
const COLUMNS_MAX: usize = 16;
/// Words in a line, at most: a program's name may have some.
const WORDS_MAX: usize = 32;
/// What is read, in the order of [`Columns`].
const NEEDED: [&str; 7] = ["TIME(s)", "COMM", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"];
/// What is known besides.
const PASSED_OVER: [&str; 2] = ["PID", "PATTERN"];
const QUEUED: &str = "QUE(ms)";

/// Reads its lines.
pub(super) struct Biosnoop {
    pub(super) unit: Unit,
    pub(super) columns: Option<Columns>,
}

/// Which word of a line is what; those behind COMM count from the end, as a program's name may have blanks.
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
    fn of(line: &[u8]) -> Result<Self, Complaint> {
        let (fields, count) = words::<COLUMNS_MAX>(line);
        let fields = &fields[..count.min(COLUMNS_MAX)];
        let at = |name: &str| fields.iter().position(|field| *field == name.as_bytes());
        let mut places = [0; NEEDED.len()];
        for (place, name) in places.iter_mut().zip(NEEDED) {
            let Some(at) = at(name) else {
                let what = format!("it names no column {name}: {}", shown(line));
                return Err(Complaint::new(what).help(
                    "this must be the first line of bcc's biosnoop; bpftrace's has neither sector nor size",
                ));
            };
            *place = at;
        }
        let known = |field: &&[u8]| {
            let all = NEEDED.iter().chain(&PASSED_OVER).chain([&QUEUED]);
            all.into_iter().any(|name| name.as_bytes() == *field)
        };
        if let Some(other) = fields.iter().find(|field| !known(field)) {
            return Err(Complaint::new(format!("its column {} is not known", shown(other))));
        }
        let [time, comm, disk, kind, sector, bytes, latency] = places;
        if comm != time + 1 || [disk, kind, sector, bytes, latency].iter().any(|column| *column < comm) {
            return Err(Complaint::new("its columns are not in biosnoop's order"));
        }
        Ok(Self { count, time, disk, kind, sector, bytes, latency, queued: at(QUEUED) })
    }
}

impl LineFormat for Biosnoop {
    fn line(&mut self, line: &[u8], place: u64, batch: &mut Batch) -> Result<(), Complaint> {
        let (fields, count) = words::<WORDS_MAX>(line);
        if count == 0 {
            return Ok(());
        }
        let Some(columns) = &self.columns else {
            self.columns = Some(Columns::of(line)?);
            return Ok(());
        };
        // A program that has no name any more is left blank.
        if count + 1 < columns.count || count > WORDS_MAX {
            let what = format!("it has {count} words for {} columns", columns.count);
            return Err(Complaint::new(what));
        }
        // Fewer words than columns only when the name is missing, which is the second column.
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
        // Sector -1 stands for none, with requests of no size.
        let sector = field(columns.sector);
        let sector = if sector == b"-1" { 0 } else { number(sector, "SECTOR")? };
        let (mut offset, mut bytes) = (in_bytes(sector, self.unit)?, number(field(columns.bytes), "BYTES")?);
        if operation == Operation::Flush {
            (offset, bytes) = (0, 0);
        }
        let mut taken_ns = time_ns(field(columns.latency), MILLISECONDS, "LAT(ms)")?;
        if let Some(queued) = columns.queued {
            taken_ns = taken_ns.saturating_add(time_ns(field(queued), MILLISECONDS, QUEUED)?);
        }
        let time_ns = done_ns.saturating_sub(taken_ns);
        let flags = Flags::NONE;
        let completion_ns = done_ns;
        batch.records.push(Raw { time_ns, completion_ns, offset, bytes, place, device, operation, flags });
        Ok(())
    }
}

#[cfg(test)]
#[path = "biosnoop_tests.rs"]
mod tests;
