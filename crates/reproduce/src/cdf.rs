//! CDF, the consumer server logger's upgrade: how many computers buffer 80 MB/s of events before tape.
//!
//! Section 2: the page cache, one to four files at once, throttled writers beside a reader, two controllers;
//! section 3: the network by flows and buffers; section 4: bit errors; section 5: the logger itself.
mod findings;
mod tables;

use keepup_results::PaperPage;
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::found::Reproduced;
use crate::published::Edition;
use crate::{PaperRequest, Reproduction, file, labelled, scaled, volumes};

const CACHE: &str = "page cache";
const FILES: &str = "files at once";
const DIRECT: &str = "files past the cache";
const THROTTLE: &str = "throttled writers";
const TWO_WRITE: &str = "volumes at once, write";
const TWO_READ: &str = "volumes at once, read";
const NETWORK: &str = "network";
const BUFFERS: &str = "network by buffers";
const ERRORS: &str = "bit errors";
const LOGGER: &str = "logger";
const TO_NULL: &str = "logger without disk";
/// Most files at once.
const FILES_MAX: i64 = 4;
/// A file there: 1 GB of 4096 events.
const FILE_BYTES: u64 = 1 << 30;
/// Events there.
const EVENTS: f64 = 20_000.0;
/// Of those, the first ones that are told apart.
const FIRST: f64 = 1000.0;
/// Copies of a file on each volume.
const COPIES: i64 = 8;

/// The paper.
pub(crate) struct Cdf;

impl Reproduction for Cdf {
    fn name(&self) -> &'static str {
        "cdf-csl"
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let volumes = volumes(request)?;
        let mut tests = of_volumes(&volumes, request.scale);
        tests.extend(of_network(request.scale));
        tests.extend(of_logger(&volumes, request.scale));
        let title = "The event logger: disks, network, and both together";
        Ok(file(title, 2, Table::new(), [("test", tests)]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = Edition::of(self.name());
        let mut page = found.begun(&edition);
        page.tables = tables::all(found, &edition);
        page.curves = tables::curves(found);
        page.findings = findings::findings(found, &edition);
        page.answers = findings::answers(found, &edition);
        page.limits.extend(limits());
        if found.of_kind(TWO_WRITE).is_empty() {
            page.limits.push("volumes at once were not measured: that takes two, --volume twice".into());
        }
        page
    }
}

fn limits() -> impl Iterator<Item = String> {
    let limits = [
        "the network is this machine's loopback, and the logger's source runs on the same processors as the \
         logger: no card, no switch and no second machine took part",
        "the page cache was looked for up to twice the memory of the paper's machine, at full scale: this \
         machine's may be larger than what the table shows",
        "files at once are written through the page cache and read cold from the disk; a file counts as \
         written when it is durable, where the paper stopped at the program's end",
        "the throttled writers and their reader went past the page cache, with up to four events under way \
         for the reader: this machine's memory would hold all that the paper wrote",
        "the bit-error test copied each file few times: it says how it is done and where its bound lies, and \
         proves no disk; `keepup soak --state` goes on for weeks",
        "neither ext3 nor a RAID 10 was made: the file systems are those of the volumes",
    ];
    limits.into_iter().map(str::to_owned)
}

/// A time for a flag: a part of `seconds`, at least `least`.
fn time(seconds: f64, scale: f64, least: f64) -> Value {
    format!("{:.0} ms", 1e3 * (seconds * scale).max(least)).into()
}

fn list(values: &[Value]) -> Value {
    Value::Array(values.to_vec())
}

/// What is measured of disks.
fn of_volumes(volumes: &[Value], scale: f64) -> Vec<Value> {
    let file = || scaled(FILE_BYTES, scale, 1 << 20);
    let first = &volumes[..1];
    let mut tests = vec![labelled(
        CACHE,
        &[
            ("verb", "disk cache".into()),
            ("volume", list(first)),
            ("file", scaled(128 << 20, scale, 1 << 20)),
            // Twice the memory there.
            ("max", scaled(4 << 30, scale, 1 << 20)),
        ],
    )];
    for volume in volumes {
        let named = |kind: &str| format!("{kind}, {}", volume.as_str().unwrap_or_default());
        let shared =
            [("verb", "disk concurrent".into()), ("volume", volume.clone()), ("files", FILES_MAX.into())];
        let own = [
            ("size", file()),
            ("access", "buffered".into()),
            ("engine", "plain".into()),
            ("space", "new".into()),
            ("depth", 1.into()),
        ];
        tests.push(labelled(&named(FILES), &[&shared[..], &own].concat()));
        tests.push(labelled(&named(DIRECT), &[&shared[..], &[("size", file())]].concat()));
    }
    tests.push(labelled(
        THROTTLE,
        &[
            ("verb", "disk throttle".into()),
            ("volume", list(first)),
            ("writers", "0,1,2,3,4".into()),
            ("delays", "2 ms,5 ms,10 ms,20 ms".into()),
            ("pause", true.into()),
            ("file", file()),
            ("ramp", time(0.5, scale, 0.1)),
            ("time", time(2.0, scale, 0.3)),
        ],
    ));
    if volumes.len() > 1 {
        let shared = [
            ("verb", "disk scale".into()),
            ("group", list(volumes)),
            ("request", "256 KiB".into()),
            ("file", file()),
            ("ramp", time(1.0, scale, 0.1)),
            ("run", time(5.0, scale, 0.5)),
        ];
        tests.push(labelled(TWO_WRITE, &shared));
        tests.push(labelled(TWO_READ, &[&shared[..], &[("read", true.into())]].concat()));
    }
    tests
}

/// What is measured of the network.
fn of_network(scale: f64) -> Vec<Value> {
    let shared = [
        ("verb", Value::from("net tcp")),
        ("args", "self".into()),
        ("flows", "1,2,4".into()),
        ("ramp", time(0.5, scale, 0.1)),
        ("time", time(2.0, scale, 0.3)),
    ];
    let sizes = "64 KiB,256 KiB,1 MiB";
    let buffers = [("send-buffer", sizes.into()), ("receive-buffer", sizes.into())];
    vec![labelled(NETWORK, &shared), labelled(BUFFERS, &[&shared[..], &buffers].concat())]
}

/// What is measured of the logger, and of what it leaves on its disks.
fn of_logger(volumes: &[Value], scale: f64) -> Vec<Value> {
    let mut tests = vec![labelled(
        ERRORS,
        &[
            ("verb", "soak".into()),
            ("volume", list(volumes)),
            ("digest", "md5".into()),
            ("size", scaled(FILE_BYTES, scale, 1 << 20)),
            ("copies", COPIES.into()),
        ],
    )];
    let part = |events: f64| (events * scale).round().max(10.0) as i64;
    let shared = [
        ("verb", "trial".into()),
        ("args", "csl".into()),
        ("rate", "max".into()),
        ("events", part(EVENTS).into()),
        ("first", part(FIRST).into()),
    ];
    for volume in volumes {
        let label = format!("{LOGGER}, {}", volume.as_str().unwrap_or_default());
        tests.push(labelled(&label, &[&shared[..], &[("volume", volume.clone())]].concat()));
    }
    if volumes.len() > 1 {
        let label = format!("{LOGGER}, all volumes");
        tests.push(labelled(&label, &[&shared[..], &[("volume", list(volumes))]].concat()));
    }
    tests.push(labelled(TO_NULL, &[&shared[..], &[("to-null", true.into())]].concat()));
    tests
}

#[cfg(test)]
#[path = "cdf_tests.rs"]
mod tests;
