//! CDF consumer server logger upgrade: how many computers can buffer 80 MB/s of events before tape.
//!
//! Section 2: the page cache, one to four files at once, throttled writers beside a reader, two controllers;
//! section 3: the network by flows and buffers; section 4: bit errors; section 5: the logger itself.
mod findings;
mod reliability;
mod tables;

use keepup_results::PaperPage;
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::fleet::{self, Streams};
use crate::measured::Reproduced;
use crate::published::PublishedPaper;
use crate::{
    NamedVolume, PaperRequest, Reproduction, RequestOption, file, label, labelled, network_target, scaled,
    values, volumes,
};

const CACHE: &str = "page cache";
const FILES: &str = "files at once";
const DIRECT: &str = "files past the cache";
const THROTTLE: &str = "throttled writers";
const TOGETHER: &str = "throttled writers together";
const BURN_IN: &str = "burn-in";
const TWO_WRITE: &str = "volumes at once, write";
const TWO_READ: &str = "volumes at once, read";
const NETWORK: &str = "network";
const BUFFERS: &str = "network by buffers";
const ERRORS: &str = "bit errors";
const LOGGER: &str = "logger";
const TO_NULL: &str = "logger without disk";
/// Profile of the logger.
const DETECTOR: &str = "csl";
/// Most concurrent files.
const FILES_MAX: i64 = 4;
/// Size of a file in the paper: 4096 events.
const FILE_BYTES: u64 = 1 << 30;
/// Events in the paper.
const EVENTS: f64 = 20_000.0;
/// First events, reported separately.
const FIRST: f64 = 1000.0;
/// Copies of a file per volume, and as in the paper.
const COPIES: i64 = 8;
const COPIES_LONG: f64 = 3804.0;
/// Duration of the burn-in, and a couple of days as in the paper, seconds.
const BURN_IN_SECONDS: f64 = 60.0;
const BURN_IN_LONG_SECONDS: f64 = 2.0 * 86_400.0;

/// The paper.
pub(crate) struct Cdf;

impl Reproduction for Cdf {
    fn name(&self) -> &'static str {
        "cdf-csl"
    }

    fn uses(&self, option: RequestOption) -> bool {
        use RequestOption::{Fleet, Host, Long, Volume};
        matches!(option, Volume | Host | Long | Fleet)
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        if let Some(fleet) = &request.fleet {
            let title = "The event logger: number of hosts";
            return Ok(fleet::campaign(title, request, fleet, (DETECTOR, &Streams::Each, Vec::new())));
        }
        let volumes = volumes(request)?;
        let mut tests = of_volumes(volumes, request.scale);
        tests.extend(of_network(request));
        tests.extend(of_errors(volumes, request));
        tests.extend(of_logger(volumes, request.scale));
        let title = "The event logger: disks, network, and both together";
        Ok(file(title, 2, Table::new(), [("test", tests)]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = PublishedPaper::of(self.name());
        if fleet::is_fleet(found) {
            let question = findings::hosts(&edition);
            return fleet::page(found, &edition, &question, Streams::Each);
        }
        let mut page = found.new_page(&edition);
        page.tables = tables::all(found, &edition);
        page.curves = tables::curves(found);
        page.findings = findings::findings(found, &edition);
        page.answers = findings::answers(found, &edition);
        page.limits.extend(limits());
        if !found.cells(&[]).any(|cell| is_remote(&cell.cell.command)) {
            page.limits.push("the network test uses loopback: no network card or switch was tested".into());
        }
        if found.cells_of_kind(TWO_WRITE).is_empty() {
            page.limits
                .push("concurrent volumes were not measured: this requires two --volume options".into());
        }
        page
    }
}

fn limits() -> impl Iterator<Item = String> {
    let limits = [
        "the source of the logger runs on this machine and shares its processors",
        "below full scale, the page cache test writes at most that share of twice the memory of the paper's \
         machine: the cache of this machine may be larger",
        "concurrent files are written through the page cache and read uncached; a file counts as written \
         when it is durable, in the paper when the program ended",
        "the throttled writers and their reader bypass the page cache, with up to four events in flight for \
         the reader, because the memory of this machine could hold all data of the paper's test",
        "without --long, the bit-error test copies each file only a few times and gives a weak bound, and \
         the burn-in takes a minute",
        "file systems and RAID levels are those of the volumes; name them with --volume NAME=DIR",
    ];
    limits.into_iter().map(str::to_owned)
}

/// Whether a network test ran against another host.
fn is_remote(command: &str) -> bool {
    command.starts_with("keepup net tcp") && !command.contains(" self")
}

/// Scales a duration, to at least `least` seconds.
fn time(seconds: f64, scale: f64, least: f64) -> Value {
    format!("{:.0} ms", 1e3 * (seconds * scale).max(least)).into()
}

/// Disk tests.
fn of_volumes(volumes: &[NamedVolume], scale: f64) -> Vec<Value> {
    let file = || scaled(FILE_BYTES, scale, 1 << 20);
    let mut cache = vec![
        ("verb", "disk cache".into()),
        ("volume", values(&volumes[..1])),
        ("file", scaled(128 << 20, scale, 1 << 20)),
    ];
    if scale < 1.0 {
        // Twice the memory of the paper's machine.
        cache.push(("max", scaled(4 << 30, scale, 1 << 20)));
    }
    let mut tests = vec![labelled(CACHE, &cache)];
    for volume in volumes {
        let shared =
            [("verb", "disk concurrent".into()), ("volume", volume.value()), ("files", FILES_MAX.into())];
        let own = [
            ("size", file()),
            ("access", "buffered".into()),
            ("engine", "sync".into()),
            ("space", "new".into()),
            ("depth", 1.into()),
        ];
        tests.push(labelled(&label(FILES, &volume.name), &[&shared[..], &own].concat()));
        tests.push(labelled(&label(DIRECT, &volume.name), &[&shared[..], &[("size", file())]].concat()));
    }
    let throttle = [
        ("verb", "disk throttle".into()),
        ("writers", "0,1,2,3,4".into()),
        ("delays", "2 ms,5 ms,10 ms,20 ms".into()),
        ("pause", true.into()),
        ("file", file()),
        ("ramp", time(0.5, scale, 0.1)),
        ("time", time(2.0, scale, 0.3)),
    ];
    for volume in volumes {
        let settings = [&throttle[..], &[("volume", volume.value())]].concat();
        tests.push(labelled(&label(THROTTLE, &volume.name), &settings));
    }
    if volumes.len() > 1 {
        let all = [("volume", values(volumes)), ("together", true.into())];
        tests.push(labelled(TOGETHER, &[&throttle[..], &all].concat()));
        let shared = [
            ("verb", "disk scale".into()),
            ("group", values(volumes)),
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

/// Network tests; to and from another host, if there is one.
fn of_network(request: &PaperRequest) -> Vec<Value> {
    let shared = [
        ("verb", Value::from("net tcp")),
        ("args", network_target(request)),
        ("flows", "1,2,4".into()),
        ("ramp", time(0.5, request.scale, 0.1)),
        ("time", time(2.0, request.scale, 0.3)),
    ];
    let sizes = "64 KiB,256 KiB,1 MiB";
    let buffers = [("send-buffer", sizes.into()), ("receive-buffer", sizes.into())];
    let directions: &[&str] = if request.host.is_some() { &["send", "receive"] } else { &["send"] };
    let of_direction = |direction: &&str| {
        let settings = [&shared[..], &[("direction", (*direction).into())]].concat();
        let of_kind =
            |kind, more: &[(&str, Value)]| labelled(&label(kind, direction), &[&settings[..], more].concat());
        [of_kind(NETWORK, &[]), of_kind(BUFFERS, &buffers)]
    };
    directions.iter().flat_map(of_direction).collect()
}

/// Reliability tests.
fn of_errors(volumes: &[NamedVolume], request: &PaperRequest) -> [Value; 2] {
    let copies = match request.is_long {
        true => (COPIES_LONG * request.scale).round().max(1.0) as i64,
        false => COPIES,
    };
    let bits = [
        ("verb", "soak".into()),
        ("volume", values(volumes)),
        ("digest", "md5".into()),
        ("size", scaled(FILE_BYTES, request.scale, 1 << 20)),
        ("copies", copies.into()),
    ];
    let seconds = if request.is_long { BURN_IN_LONG_SECONDS } else { BURN_IN_SECONDS };
    let mut burn_in = vec![
        ("verb", "soak".into()),
        ("volume", values(volumes)),
        ("mode", "burn-in".into()),
        ("size", scaled(256 << 20, request.scale, 1 << 20)),
        ("time", time(seconds, request.scale, 2.0)),
    ];
    if request.is_long {
        // One for each reproduction, so that an interrupted one continues and a new one starts again.
        let state = request.traces.with_file_name(format!("cdf-csl-burn-in-{}.jsonl", request.id));
        burn_in.push(("state", state.display().to_string().into()));
    }
    [labelled(BURN_IN, &burn_in), labelled(ERRORS, &bits)]
}

/// Logger tests.
fn of_logger(volumes: &[NamedVolume], scale: f64) -> Vec<Value> {
    let part = |events: f64| (events * scale).round().max(10.0) as i64;
    let shared = [
        ("verb", "trial".into()),
        ("args", "csl".into()),
        ("rate", "max".into()),
        ("events", part(EVENTS).into()),
        ("first", part(FIRST).into()),
    ];
    let on = |place: &str, volume: Value| {
        labelled(&label(LOGGER, place), &[&shared[..], &[("volume", volume)]].concat())
    };
    let mut tests: Vec<Value> = volumes.iter().map(|volume| on(&volume.name, volume.value())).collect();
    if volumes.len() > 1 {
        tests.push(on("all volumes", values(volumes)));
    }
    tests.push(labelled(TO_NULL, &[&shared[..], &[("to-null", true.into())]].concat()));
    tests
}

#[cfg(test)]
#[path = "cdf_tests.rs"]
mod tests;
