//! Decompression of gzip files: one member after another, and padding behind the last one.
use std::io::{self, BufRead as _, BufReader, Read};

use flate2::bufread::GzDecoder;

/// First bytes of a member (RFC 1952, section 2.3.1).
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reader of the text in a gzip file.
pub(super) struct GzipReader<R>(Option<GzDecoder<BufReader<R>>>);

impl<R: Read> GzipReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self(Some(GzDecoder::new(BufReader::new(source))))
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(error.kind(), "the gzip file is truncated: copy it again")
                }
                kind => io::Error::new(kind, format!("gzip: {error}")),
            })?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut source) = self.0.take().map(GzDecoder::into_inner) else { break };
            if has_member(&mut source)? {
                self.0 = Some(GzDecoder::new(source));
            }
        }
        Ok(0)
    }
}

/// Skips zeros, with which tapes and block devices fill the last block; whether another member follows.
fn has_member(source: &mut BufReader<impl Read>) -> io::Result<bool> {
    loop {
        let rest = source.fill_buf()?;
        let zeros = rest.iter().position(|byte| *byte != 0);
        match (rest.is_empty(), zeros) {
            (true, _) => return Ok(false),
            (false, None) => {
                let length = rest.len();
                source.consume(length);
            }
            (false, Some(zeros)) => {
                source.consume(zeros);
                if source.fill_buf()?.first() == MAGIC.first() {
                    return Ok(true);
                }
                let what = "other data follow the gzip file; decompress it with gzip to ignore them";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
    }
}

/// Whether `head` is that of a gzip file.
pub(super) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

#[cfg(test)]
#[path = "gzip_tests.rs"]
mod tests;
