//! The result of a command as one stream of bytes: its end, then each file.
//!
//! Lengths are 64 bits, little endian. The end is JSON with its length in front; each file is its relative
//! path and its contents, each with its length in front. A length of 0 instead of a path is the end.
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::plan::CommandEnd;
use crate::reply::{Reply, ReplyError, ReplyWriter, of_io};

/// Limit on the files of a result.
const FILES_MAX: usize = 1_000;
/// Limit on directories in each other.
const DEPTH_MAX: usize = 8;
/// Limit on the length of a path, bytes.
const PATH_BYTES_MAX: u64 = 1_024;
/// Limit on the JSON of the end, bytes.
const END_BYTES_MAX: u64 = 1_024;
/// Bytes that are copied at a time.
const COPY_BYTES: usize = 64 << 10;

/// Packs the end of a command and the files in `directory`.
///
/// # Errors
/// A file that cannot be read, too many files, or too many bytes.
pub(super) fn pack(end: CommandEnd, directory: &Path) -> Result<Reply, ReplyError> {
    let mut writer = ReplyWriter::new();
    let end = serde_json::to_string(&end).map_err(|error| ReplyError::Io(error.to_string()))?;
    write_field(&mut writer, end.as_bytes())?;
    for path in files(directory)? {
        let relative = path.strip_prefix(directory).unwrap_or(&path);
        let failed = |error: io::Error| ReplyError::Io(format!("{}: {error}", relative.display()));
        let name = relative.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
        write_field(&mut writer, name.as_bytes())?;
        let mut file = File::open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        writer.write(&length.to_le_bytes())?;
        copy(&mut file, length, &mut |bytes| writer.write(bytes), failed)?;
    }
    writer.write(&0_u64.to_le_bytes())?;
    writer.finish()
}

fn write_field(writer: &mut ReplyWriter, bytes: &[u8]) -> Result<(), ReplyError> {
    writer.write(&(bytes.len() as u64).to_le_bytes())?;
    writer.write(bytes)
}

/// Regular files below `directory`, sorted.
fn files(directory: &Path) -> Result<Vec<PathBuf>, ReplyError> {
    let mut files = Vec::new();
    let mut open = vec![(directory.to_owned(), 1)];
    while let Some((directory, depth)) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(of_io)? {
            let entry = entry.map_err(of_io)?;
            let kind = entry.file_type().map_err(of_io)?;
            let path = entry.path();
            let why = match () {
                () if kind.is_dir() && depth < DEPTH_MAX => {
                    open.push((path, depth + 1));
                    continue;
                }
                () if kind.is_file() && files.len() < FILES_MAX => {
                    files.push(path);
                    continue;
                }
                () if kind.is_dir() => format!("{}: more than {DEPTH_MAX} directories", path.display()),
                () if kind.is_file() => format!("the result has more than {FILES_MAX} files"),
                () => format!("{}: not a regular file", path.display()),
            };
            return Err(ReplyError::Io(why));
        }
    }
    files.sort();
    Ok(files)
}

/// Passes `length` bytes on in pieces.
fn copy(
    from: &mut impl Read,
    length: u64,
    to: &mut dyn FnMut(&[u8]) -> Result<(), ReplyError>,
    failed: impl Fn(io::Error) -> ReplyError,
) -> Result<(), ReplyError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut left = length;
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match from.read(&mut buffer[..most]).map_err(&failed)? {
            0 => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            read => {
                to(&buffer[..read])?;
                left -= read as u64;
            }
        }
    }
    Ok(())
}

/// Unpacks the result of a command into `directory`, an empty directory. Only regular files and directories
/// below it are created; an existing file is never changed. All of them are flushed, so that a run does not
/// count before its result is stored.
///
/// # Errors
/// [`ReplyError::Malformed`] for a malformed result, a path that leads outside or cannot exist;
/// [`ReplyError::Io`] if this machine cannot store a file.
pub fn unpack(reply: &Reply, directory: &Path) -> Result<CommandEnd, ReplyError> {
    let mut reader = reply.reader();
    let end = read_field(&mut reader, END_BYTES_MAX)?;
    let end = serde_json::from_slice(&end).map_err(|error| malformed(error.to_string()))?;
    let mut directories = BTreeSet::from([directory.to_owned()]);
    for _ in 0..=FILES_MAX {
        let name = read_field(&mut reader, PATH_BYTES_MAX)?;
        if name.is_empty() {
            directories.iter().chain(&parent_of(directory)).try_for_each(|directory| flush(directory))?;
            return Ok(end);
        }
        let path = directory.join(checked(name)?);
        let failed = |error: io::Error| write_error(&path, &error);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let length = read_length(&mut reader)?;
        let mut write = |bytes: &[u8]| io::Write::write_all(&mut file, bytes).map_err(failed);
        copy(&mut reader, length, &mut write, |error| malformed(error.to_string()))?;
        file.sync_all().map_err(failed)?;
        let parents = path.ancestors().skip(1).take_while(|parent| parent.starts_with(directory));
        directories.extend(parents.map(Path::to_owned));
    }
    Err(malformed(format!("more than {FILES_MAX} files")))
}

/// The directory with the entry of `directory`.
fn parent_of(directory: &Path) -> Option<PathBuf> {
    directory.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned)
}

fn flush(directory: &Path) -> Result<(), ReplyError> {
    let flushed = File::open(directory).and_then(|directory| directory.sync_all());
    flushed.map_err(|error| write_error(directory, &error))
}

/// Error of a file that cannot be written. A hostile result can name a file twice or below another file.
fn write_error(path: &Path, error: &io::Error) -> ReplyError {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    let why = format!("{}: {error}", path.display());
    match error.kind() {
        AlreadyExists | InvalidFilename | InvalidInput | IsADirectory | NotADirectory => malformed(why),
        _ => ReplyError::Io(why),
    }
}

fn read_length(reader: &mut impl Read) -> Result<u64, ReplyError> {
    let mut length = [0; 8];
    reader.read_exact(&mut length).map_err(|error| malformed(error.to_string()))?;
    Ok(u64::from_le_bytes(length))
}

fn read_field(reader: &mut impl Read, most: u64) -> Result<Vec<u8>, ReplyError> {
    let length = read_length(reader)?;
    if length > most {
        return Err(malformed(format!("a field of {length} bytes, limit {most}")));
    }
    let mut field = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    reader.read_exact(&mut field).map_err(|error| malformed(error.to_string()))?;
    Ok(field)
}

/// A relative path without `.` and `..`.
fn checked(name: Vec<u8>) -> Result<PathBuf, ReplyError> {
    let name = String::from_utf8(name).map_err(|error| malformed(error.to_string()))?;
    let path = PathBuf::from(&name);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    // Components leave out `.` and slashes that a path does not need.
    let is_written_so = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
    let is_short = path.components().count() <= DEPTH_MAX && !name.contains('\0');
    match is_plain && is_written_so && is_short {
        true => Ok(path),
        false => Err(malformed(format!("the path {name:?}"))),
    }
}

fn malformed(why: impl Into<String>) -> ReplyError {
    ReplyError::Malformed(why.into())
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
