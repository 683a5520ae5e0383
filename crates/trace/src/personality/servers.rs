//! Server personalities after filebench's workload files (`webserver.f`, `fileserver.f`,
//! `varmail.f`, `oltp.f`; filebench 1.5). They have no rates, so those are our choice.
use super::draw::Sizes;
use super::{Personality, Step};

/// `webserver.f`: ten files read, then a log append.
pub(super) const WEB_SERVER: Personality = Personality {
    name: "web-server",
    about: "reads 10 whole files of 16 KiB on average, then appends up to 16 KiB to a log",
    rounds_per_second: 50.0,
    files: 1000,
    file_bytes: Sizes::Gamma(16_384.0),
    round: &[
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::ReadFile,
        Step::Append(16 << 10),
    ],
};

/// `fileserver.f`: one file written, one appended to, one read.
pub(super) const FILE_SERVER: Personality = Personality {
    name: "file-server",
    about: "writes a file of 128 KiB on average, appends up to 16 KiB, reads another file",
    rounds_per_second: 100.0,
    files: 10_000,
    file_bytes: Sizes::Gamma(131_072.0),
    round: &[Step::WriteFile, Step::Append(16 << 10), Step::ReadFile],
};

/// `varmail.f`: a mail arrives, one is read and changed, one is read.
pub(super) const MAIL_SERVER: Personality = Personality {
    name: "mail-server",
    about: "stores a mail of up to 16 KiB and flushes; reads a mail, appends to it and flushes; reads a mail",
    rounds_per_second: 100.0,
    files: 1000,
    file_bytes: Sizes::Gamma(16_384.0),
    round: &[
        Step::Append(16 << 10),
        Step::Flush,
        Step::ReadFile,
        Step::Append(16 << 10),
        Step::Flush,
        Step::ReadFile,
    ],
};

/// `oltp.f`: a read per round; its semaphores allow a write every 1000 reads and a log write every
/// 3200.
pub(super) const DATABASE: Personality = Personality {
    name: "database",
    about: "reads 2 KiB at random offsets in 10 files of 10 MiB; 100 durable writes of 2 KiB every 1000 \
            reads, one of 256 KiB every 3200",
    rounds_per_second: 2000.0,
    files: 10,
    file_bytes: Sizes::Fixed(10 << 20),
    round: &[
        Step::ReadAt(2 << 10),
        Step::WriteEvery { rounds: 1000, writes: 100, bytes: 2 << 10 },
        Step::WriteEvery { rounds: 3200, writes: 1, bytes: 256 << 10 },
    ],
};
