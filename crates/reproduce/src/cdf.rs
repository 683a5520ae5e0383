//! CDF consumer server logger upgrade: how many computers can buffer 80 MB/s of events before tape.
//!
//! Section 2: the page cache, one to four files at once, throttled writers beside a reader, two controllers;
//! section 3: the network by flows and buffers; section 4: bit errors; section 5: the logger itself.
mod findings;
mod tables;

use keepup_results::PaperPage;
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::measured::Reproduced;
use crate::published::PublishedPaper;
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
/// Most concurrent files.
const FILES_MAX: i64 = 4;
/// Size of a file in the paper: 4096 events.
const FILE_BYTES: u64 = 1 << 30;
/// Events in the paper.
const EVENTS: f64 = 20_000.0;
/// First events, reported separately.
const FIRST: f64 = 1000.0;
/// Copies of a file per volume.
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
        let edition = PublishedPaper::of(self.name());
        let mut page = found.new_page(&edition);
        page.tables = tables::all(found, &edition);
        page.curves = tables::curves(found);
        page.findings = findings::findings(found, &edition);
        page.answers = findings::answers(found, &edition);
        page.limits.extend(limits());
        if found.cells_of_kind(TWO_WRITE).is_empty() {
            page.limits
                .push("concurrent volumes were not measured: this requires two --volume options".into());
        }
        page
    }
}

fn limits() -> impl Iterator<Item = String> {
    let limits = [
        "the network test uses loopback, and the source of the logger shares its processors: no network \
         card, switch or second machine was tested",
        "the page cache test writes at most twice the memory of the paper's machine (at full scale): the \
         cache of this machine may be larger",
        "concurrent files are written through the page cache and read uncached; a file counts as written \
         when it is durable, in the paper when the program ended",
        "the throttled writers and their reader bypass the page cache, with up to four events in flight for \
         the reader, because the memory of this machine could hold all data of the paper's test",
        "the bit-error test copied each file only a few times and gives a weak bound; run \
         `keepup soak --state` for weeks to qualify a disk",
        "the file systems are those of the volumes, not ext3, and there is no RAID 10",
    ];
    limits.into_iter().map(str::to_owned)
}

/// Scales a duration, to at least `least` seconds.
fn time(seconds: f64, scale: f64, least: f64) -> Value {
    format!("{:.0} ms", 1e3 * (seconds * scale).max(least)).into()
}

fn list(values: &[Value]) -> Value {
    Value::Array(values.to_vec())
}

/// Disk tests.
fn of_volumes(volumes: &[Value], scale: f64) -> Vec<Value> {
    let file = || scaled(FILE_BYTES, scale, 1 << 20);
    let first = &volumes[..1];
    let mut tests = vec![labelled(
        CACHE,
        &[
            ("verb", "disk cache".into()),
            ("volume", list(first)),
            ("file", scaled(128 << 20, scale, 1 << 20)),
            // Twice the memory of the paper's machine.
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
            ("engine", "sync".into()),
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

/// Network tests.
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

/// Logger and bit-error tests.
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
