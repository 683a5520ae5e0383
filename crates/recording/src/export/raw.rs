//! One file of payloads per stream, with a table of the events' offsets.
use std::fs;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::{Exported, create, flush_all, missing, not_created, payload_bytes, require_sealed, wants};
use crate::access::{From, StreamReader};
use crate::error::RecordingError;
use crate::merged::MergedRecording;
use crate::progress::Progress;
use crate::seal::link_names;

/// Longest stream name used in a file name, bytes.
const NAME_BYTES_MAX: usize = 200;

/// Writes each selected stream to `NAME.raw` in the new directory `dir`, as consecutive payloads,
/// with `NAME.csv`: sequence number, time in ns, offset and length of each event. `progress` is called often.
///
/// # Errors
/// A segment is unsealed or cannot be read, a block is damaged, or `dir` exists or cannot be
/// written.
pub fn raw<'a>(
    recording: impl Into<MergedRecording<'a>>,
    stream: Option<u32>,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Exported, RecordingError> {
    let recording = &recording.into();
    require_sealed(recording)?;
    fs::create_dir(dir).map_err(not_created("create the directory", dir))?;
    let streams = recording.streams();
    let names = link_names(streams.iter().map(|(&id, stream)| (id, stream.name.as_str())));
    let mut exported = Exported { missing: missing(recording, stream)?, ..Exported::default() };
    let total_bytes = payload_bytes(recording, stream);
    let wanted: Vec<u32> = names.keys().copied().filter(|&id| wants(stream, id)).collect();
    for reader in StreamReader::open_each(recording, &wanted) {
        let mut reader = reader?;
        let id = reader.info().id;
        let Some(name) = names.get(&id) else { continue };
        // A file name has at most 255 bytes on most file systems.
        let name = if name.len() > NAME_BYTES_MAX { &format!("stream-{id}") } else { name };
        let (path, table) = (dir.join(format!("{name}.raw")), dir.join(format!("{name}.csv")));
        let mut out = BufWriter::with_capacity(1 << 20, create(&path)?);
        let mut index = BufWriter::with_capacity(64 << 10, create(&table)?);
        let mut outcome = writeln!(index, "sequence,timestamp_ns,offset,length");
        let mut at = 0;
        let events = reader.read(From::Sequence(0), &mut |event| {
            let length = event.payload.len() as u64;
            outcome = out
                .write_all(event.payload)
                .and_then(|()| writeln!(index, "{},{},{at},{length}", event.sequence, event.timestamp_ns));
            at += length;
            progress(Progress { done_bytes: exported.payload_bytes + at, known_bytes: 0, total_bytes });
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome.and_then(|()| out.flush()).map_err(RecordingError::io("write", &path))?;
        index.flush().map_err(RecordingError::io("write", &table))?;
        exported.streams += 1;
        exported.events += events;
        exported.payload_bytes += at;
    }
    flush_all(dir)?;
    Ok(exported)
}
