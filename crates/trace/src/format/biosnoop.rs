//! Output of bcc's biosnoop: one line per completed request.
//!
//! The first line names the columns: TIME(s), COMM, PID, DISK, T, SECTOR, BYTES, QUE(ms) with `-Q`,
//! LAT(ms), and PATTERN with `-P`. T is R or W, or has letters like those of blkparse. The issue time is
//! TIME - LAT, also minus QUE if present, so lines are not in issue order. Sectors have 512 bytes. Lost:
//! requests in flight at the end, flags, and operations that biosnoop counts as writes. The biosnoop of
//! bpftrace has neither sector nor size and is refused.
use super::blkparse::kind;
use super::in_bytes;
use crate::batch::{Batch, NO_TIME, RawRecord};
use crate::error::ParseError;
use crate::header::Unit;
use crate::record::Operation;
use crate::text::{LineFormat, bad, decimal, number, shown, time_ns, whole, words};

const SECONDS: usize = 9;
const MILLISECONDS: usize = 6;
const COLUMNS_MAX: usize = 16;
/// Largest number of words in a line: a program name may contain spaces.
const WORDS_MAX: usize = 32;
/// Required columns, in the order of [`Columns`].
const NEEDED: [&str; 7] = ["TIME(s)", "COMM", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"];
/// Known columns that are ignored.
const PID: &str = "PID";
const IGNORED: [&str; 2] = [PID, "PATTERN"];
/// Name of the device of requests without one.
const NO_DISK: &[u8] = b"?";
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
    /// Position of PID, if it is in front of DISK.
    pid: Option<usize>,
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
        let pid = at(PID).filter(|pid| pid + 1 == disk);
        Ok(Self { count, time, pid, disk, kind, sector, bytes, latency, queued: at(QUEUED) })
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
        if let Some(lost) = lost_samples(line) {
            batch.corrections.not_kept = batch.corrections.not_kept.saturating_add(lost);
            return Ok(());
        }
        // The name of an ended program is blank.
        if count + 1 < columns.count || count > WORDS_MAX {
            let what = format!("it has {count} words for {} columns", columns.count);
            return Err(ParseError::new(what));
        }
        // Only the name, in the second column, can be missing.
        let field = |column: usize| fields[column + count - columns.count];
        let done_ns = time_ns(fields[columns.time], SECONDS, "TIME(s)")?;
        let letters = field(columns.kind);
        let Some((operation, flags)) = kind(letters) else {
            if letters == b"N" {
                batch.corrections.other_operations += 1;
                return Ok(());
            }
            return Err(bad(letters, "T", "R or W"));
        };
        let device = batch.device(disk(columns.pid.map(field), field(columns.disk))?)?;
        let mut bytes = number(field(columns.bytes), "BYTES")?;
        // Sector -1 means none, for requests without a size.
        let sector = field(columns.sector);
        let sector = if sector == b"-1" { u64::MAX } else { number(sector, "SECTOR")? };
        let mut offset = in_bytes(sector, self.unit);
        if operation == Operation::Flush {
            (offset, bytes) = (0, 0);
        }
        let latency_ns = duration_ns(field(columns.latency), "LAT(ms)")?;
        let queued_ns = columns.queued.map(|queued| duration_ns(field(queued), QUEUED)).transpose()?;
        // Bugs of kernels give latencies of centuries.
        let (Some(latency_ns), None | Some(Some(_))) = (latency_ns, queued_ns) else {
            batch.corrections.absurd_times += 1;
            return Ok(());
        };
        // With the column QUE, the latency is that of driver and device.
        let sent_ns = done_ns.saturating_sub(latency_ns);
        let (time_ns, dispatch_ns) = queued_ns
            .flatten()
            .map_or((sent_ns, NO_TIME), |queued_ns| (sent_ns.saturating_sub(queued_ns), sent_ns));
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

/// Name of the disk. A request of a program that is not known may have none: the process id is in its place.
fn disk<'a>(pid: Option<&[u8]>, disk: &'a [u8]) -> Result<&'a [u8], ParseError> {
    match pid.is_none_or(|pid| whole(pid).is_some()) {
        true => Ok(disk),
        false if whole(disk).is_some() => Ok(NO_DISK),
        false => Err(bad(disk, "DISK", "the name of a disk behind a process id")),
    }
}

/// Number of requests that a line says were lost: `Possibly lost 10 samples`, `Lost 10 samples`, or
/// `lost 10 events on CPU #1`.
fn lost_samples(line: &[u8]) -> Option<u64> {
    let line = line.strip_prefix(b"Possibly ").unwrap_or(line);
    let ([lost, count, what], _) = words::<3>(line);
    let is_loss = lost.eq_ignore_ascii_case(b"lost") && matches!(what, b"samples" | b"events");
    is_loss.then(|| whole(count)).flatten()
}

/// A number of ms as ns; none if it does not fit.
fn duration_ns(field: &[u8], name: &str) -> Result<Option<i64>, ParseError> {
    let is_number = |field: &[u8]| field.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    match decimal(field, MILLISECONDS) {
        None if is_number(field) && field.iter().any(u8::is_ascii_digit) => Ok(None),
        found => found.map(Some).ok_or_else(|| bad(field, name, "a decimal number")),
    }
}

#[cfg(test)]
#[path = "biosnoop_tests.rs"]
mod tests;
