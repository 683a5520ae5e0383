//! Desktop personalities: system start, office work, image editing.
//!
//! Request counts, sequential shares and mean sizes are published for recorded desktops; each
//! personality names its source. Size distributions are not published: they are lognormal, as file
//! sizes are, with medians of our choice unless a source is named. The division into steps, think
//! times and file counts are our choices too.
use super::draw::Sizes;
use super::{Personality, Requests, Step};
use crate::{Flags, Operation};

/// Requests without special properties.
const fn requests(operation: Operation, count: u64, bytes: Sizes, sequential_share: f64) -> Step {
    Step::Requests(Requests { operation, count, bytes, sequential_share, flags: Flags::NONE })
}

/// File system metadata, one page each. One request in five: our choice.
const LOOK_UP: Step = Step::Requests(Requests {
    operation: Operation::Read,
    count: 21,
    bytes: Sizes::Fixed(4096),
    sequential_share: 0.0,
    flags: Flags::META,
});
const LOAD: Step = requests(Operation::Read, 63, Sizes::Lognormal { median: 6000.0, mean: 28_000.0 }, 0.06);
// Its mean is below the source's, because no request is shorter than a page.
const NOTE: Step = requests(Operation::Write, 16, Sizes::Lognormal { median: 4096.0, mean: 6000.0 }, 0.06);

/// Part of a start of a system, session or program; 400 requests.
///
/// H. Klein, "Remarks on Windows disk and file IO during system boot", 2013: 62,000 requests in 330
/// s, 188 per second, 16 % of them writes. PCMark05's traces, as described by PC Perspective: 10 %
/// writes at start, 17 % when loading programs. A start traced with hIOmon (EduGeek forum, "SSD
/// drives in education"): 20,000 requests of 20,000 bytes on average, 420 MB read, 24 MB written,
/// 95 % random, most reads up to 6000 bytes.
pub(super) const DESKTOP_START: Personality = Personality {
    name: "desktop-start",
    about: "starts part of the system or a program: 336 reads of 21 kB on average, 84 of them of metadata, \
            and 64 small writes; 5 % of all sequential",
    rounds_per_second: 0.47,
    files: 2048,
    file_bytes: Sizes::Fixed(1 << 20),
    round: &[LOOK_UP, LOAD, NOTE, LOOK_UP, LOAD, NOTE, LOOK_UP, LOAD, NOTE, LOOK_UP, LOAD, NOTE],
};

const SAVED: Sizes = Sizes::Lognormal { median: 65_536.0, mean: 92_700.0 };

/// A document: 1/100 of PCMark 8's traces of Word, Excel and PowerPoint together.
///
/// These have 280 sequential and 10,891 random reads of 263 MB, 1014 sequential and 399 random
/// writes of 131 MB ("How we test storage", Tom's Hardware, 2015). Most writes are flushed,
/// according to Harter et al., "A file is not a file", SOSP 2011. The rate gives 6 requests per
/// second: C. Dirik's notebook traces have 5 to 21, of 26 KB on average.
pub(super) const OFFICE: Personality = Personality {
    name: "office",
    about: "opens a document with 112 reads of 24 kB on average, 2.5 % of them sequential; after 8 s saves \
            it with 4 writes of 93 kB and a flush, after 8 s more with 10 writes and a flush",
    rounds_per_second: 0.05,
    files: 1024,
    file_bytes: Sizes::Fixed(512 << 10),
    round: &[
        requests(Operation::Read, 112, Sizes::Lognormal { median: 8192.0, mean: 23_500.0 }, 0.025),
        Step::Think(8.0),
        // The first write of each save is not sequential: 72 % of all are.
        requests(Operation::Write, 4, SAVED, 0.84),
        Step::Flush,
        Step::Think(8.0),
        requests(Operation::Write, 10, SAVED, 0.84),
        Step::Flush,
    ],
};

/// Size of sequential writes, bytes: near the mean of the source's writes.
const STRIP: Sizes = Sizes::Fixed(120 << 10);

/// An image: 1/64 of PCMark 8's trace "Photoshop heavy".
///
/// It has 4277 sequential and 18,655 random reads of 468 MB, 44,742 sequential and 2065 random
/// writes of 5640 MB ("How we test storage", Tom's Hardware, 2015), and took 360 s on the SSD of
/// that magazine's test of the Plextor M6e (2014), which gives the rate. The source does not split
/// bytes between sequential and random requests.
pub(super) const IMAGE_EDITING: Personality = Personality {
    name: "image-editing",
    about: "reads an image with 67 requests of 64 KiB, and 291 random reads of 10 kB on average; writes 480 \
            requests of 120 KiB to a scratch file and 32 tiles of 64 KiB; saves with 219 writes of 120 KiB \
            and a flush",
    rounds_per_second: 0.18,
    files: 16,
    file_bytes: Sizes::Fixed(64 << 20),
    round: &[
        requests(Operation::Read, 67, Sizes::Fixed(64 << 10), 1.0),
        requests(Operation::Read, 291, Sizes::Lognormal { median: 6144.0, mean: 10_000.0 }, 0.0),
        Step::Think(2.0),
        requests(Operation::Write, 480, STRIP, 1.0),
        requests(Operation::Write, 32, Sizes::Fixed(64 << 10), 0.0),
        Step::Think(2.0),
        requests(Operation::Write, 219, STRIP, 1.0),
        Step::Flush,
    ],
};
