//! What people do at a desktop: start it, write in an office, edit images.
//!
//! How many requests there are, which of them go on where the one before ended, and how many bytes they
//! have in the mean is published for recorded desktops; each personality says where. How sizes are
//! distributed about their mean is not: they are lognormal, as sizes of files are, with medians of ours
//! unless a source is named. Into which steps requests are divided, how long a user thinks, and how many
//! files there are, are choices of ours too.
use super::draw::Sizes;
use super::{Personality, Requests, Step};
use crate::replay::trace::{Flags, Operation};

/// Requests of no special kind.
const fn requests(operation: Operation, count: u64, bytes: Sizes, goes_on: f64) -> Step {
    Step::Requests(Requests { operation, count, bytes, goes_on, flags: Flags::NONE })
}

/// Data of the file system, a page each. One request in five: a choice of ours.
const LOOK_UP: Step = Step::Requests(Requests {
    operation: Operation::Read,
    count: 21,
    bytes: Sizes::Fixed(4096),
    goes_on: 0.0,
    flags: Flags::META,
});
const LOAD: Step = requests(Operation::Read, 63, Sizes::Lognormal { median: 6000.0, mean: 28_000.0 }, 0.06);
// Its mean is below that of the source, for nothing is shorter than a page.
const NOTE: Step = requests(Operation::Write, 16, Sizes::Lognormal { median: 4096.0, mean: 6000.0 }, 0.06);

/// A part of a start: of the system, of a session, or a program; 400 requests.
///
/// H. Klein, "Remarks on Windows disk and file IO during system boot", 2013: 62,000 requests in 330 s, 188
/// per second, 16 % of them writes. Of PCMark05's traces, as PC Perspective describes them, 10 % of the start
/// and 17 % of loading programs are writes. A start watched with hIOmon (EduGeek forum, "SSD drives in
/// education"): 20,000 requests of 20,000 bytes in the mean, 420 MB read, 24 MB written, 95 % random, most
/// reads of up to 6000 bytes.
pub(super) const DESKTOP_START: Personality = Personality {
    name: "desktop-start",
    about: "a part of the system or a program is started: 336 reads of 21 kB in the mean, 84 of them of the \
            file system's own data, and 64 small writes, 5 % of all one behind the other",
    rounds_per_second: 0.47,
    files: 2048,
    file_bytes: Sizes::Fixed(1 << 20),
    round: &[LOOK_UP, LOAD, NOTE, LOOK_UP, LOAD, NOTE, LOOK_UP, LOAD, NOTE, LOOK_UP, LOAD, NOTE],
};

const SAVED: Sizes = Sizes::Lognormal { median: 65_536.0, mean: 92_700.0 };

/// A document: a hundredth of PCMark 8's traces of Word, Excel and PowerPoint together.
///
/// These have 280 sequential and 10,891 random reads of 263 MB, 1014 sequential and 399 random writes of
/// 131 MB ("How we test storage", Tom's Hardware, 2015). That most of what is written is forced to the disk
/// is from Harter et al., "A file is not a file", SOSP 2011. The rate makes 6 requests per second: C. Dirik's
/// traces of notebooks have 5 to 21, of 26 KB in the mean.
pub(super) const OFFICE: Personality = Personality {
    name: "office",
    about: "a document is opened with 112 reads of 24 kB in the mean, 2.5 % of them one behind the other; \
            after 8 s of work it is saved by 4 writes of 93 kB and a flush, after 8 s more by 10 and a flush",
    rounds_per_second: 0.05,
    files: 1024,
    file_bytes: Sizes::Fixed(512 << 10),
    round: &[
        requests(Operation::Read, 112, Sizes::Lognormal { median: 8192.0, mean: 23_500.0 }, 0.025),
        Step::Think(8.0),
        // The first of each save goes on nowhere: 72 % of all do.
        requests(Operation::Write, 4, SAVED, 0.84),
        Step::Flush,
        Step::Think(8.0),
        requests(Operation::Write, 10, SAVED, 0.84),
        Step::Flush,
    ],
};

/// What is written behind one another, bytes: near the mean of the source's writes.
const STRIP: Sizes = Sizes::Fixed(120 << 10);

/// An image: a 64th of PCMark 8's trace "Photoshop heavy".
///
/// It has 4277 sequential and 18,655 random reads of 468 MB, 44,742 sequential and 2065 random writes of
/// 5640 MB ("How we test storage", Tom's Hardware, 2015), and was played in 360 s on the SSD of that
/// magazine's test of the Plextor M6e (2014), from which the rate is. The source does not divide bytes
/// between sequential and random requests.
pub(super) const IMAGE_EDITING: Personality = Personality {
    name: "image-editing",
    about: "an image is read by 67 requests of 64 KiB, beside 291 random reads of 10 kB in the mean; 480 \
            writes of 120 KiB go to a scratch file, 32 of 64 KiB to tiles; it is saved by 219 of 120 KiB \
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
