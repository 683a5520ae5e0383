//! Initial file system of a guest: a cpio archive in `newc` format, unpacked by the kernel.
//!
//! Invariant: the same entries give the same bytes, for reproducible guests that count
//! instructions. Format: the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`.

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// Magic number and chunk size of the kernel's `lib/decompress_unlz4.c`.
const LZ4_LEGACY: u32 = 0x184C_2102;
const LZ4_CHUNK: usize = 8 << 20;

/// An archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: usize,
}

impl Archive {
    /// Adds a directory; its parents come first.
    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[], [0, 0]);
    }

    /// Adds an executable file.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content, [0, 0]);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK, target.as_bytes(), [0, 0]);
    }

    /// Adds a character device.
    pub(crate) fn device(&mut self, name: &str, major: usize, minor: usize) {
        self.entry(name, CHARACTER_DEVICE, &[], [major, minor]);
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], [0, 0]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8], device: [usize; 2]) {
        self.entries += 1;
        let mode = mode as usize;
        // Inode, mode, user, group, links, time, size, device, special device, name, checksum.
        let [major, minor] = device;
        let fields = [self.entries, mode, 0, 0, 1, 0, content.len(), 0, 0, major, minor, name.len() + 1, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// An archive as the kernel unpacks it: blocks of LZ4, in its legacy frame format. Uncompressed, keepup would
/// be in the guest's memory twice.
pub(crate) fn compressed(archive: &[u8]) -> Vec<u8> {
    let mut frame = LZ4_LEGACY.to_le_bytes().to_vec();
    for chunk in archive.chunks(LZ4_CHUNK) {
        let block = lz4_flex::block::compress(chunk);
        // At most a hundredth more than the chunk.
        frame.extend((block.len() as u32).to_le_bytes());
        frame.extend(block);
    }
    frame
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
