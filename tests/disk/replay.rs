//! `keepup replay` and `replay-set`: files receive the requests of the trace, in every mode, on real volumes;
//! impossible replays are refused.
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use keepup_testkit::Run;
use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::root::{SmallDisk, allowed, skip};
use keepup_trace::{Flags, Hints, Operation, Record, Trace};
use serde_json::Value;

use crate::common::{
    FILE_SERVER, TestDirectory, busy_directory, directory, has_event, json, keepup, start, until,
};
use crate::disk::trace_real::{blkreplay_trace, darshan_trace, dbench_trace};

const PERSONALITIES: [&str; 7] =
    ["web-server", "file-server", "mail-server", "database", "desktop-start", "office", "image-editing"];

/// Generates a synthetic trace of length `time`.
fn make(here: &Path, personality: &str, out: &str, time: &str) {
    let run = keepup(here, &["trace", "make", personality, out, "--time", time, "--seed", "5"]);
    assert_eq!(run.code(), 0, "{run:#?}");
}

fn volumes(place: &TestDirectory) -> [&'static str; 2] {
    ["a", "b"].map(|volume| {
        std::fs::create_dir_all(place.path().join(volume)).unwrap();
        volume
    })
}

fn replayed(here: &Path, arguments: &[&str]) -> Value {
    let run = keepup(here, &[arguments, &["--json"]].concat());
    let found = json(&run);
    assert_eq!(found["failure"], Value::Null, "{found:#}");
    assert_eq!(run.code(), if is_inconclusive(&found) { 5 } else { 0 }, "{run:#?}");
    found
}

/// Whether every warm pass was inconclusive because this machine issued requests too late. That is
/// possible only in a replay with the original times.
fn is_inconclusive(found: &Value) -> bool {
    let is_late = |pass: &Value| pass["fidelity"]["is_kept"] == false;
    let warm = || passes(found).iter().filter(|pass| pass["is_cold"] == false);
    warm().any(|pass| {
        let same = |other: &&Value| other["trace"] == pass["trace"] && other["place"] == pass["place"];
        warm().filter(same).all(is_late)
    })
}

fn passes(found: &Value) -> &Vec<Value> {
    found["passes"].as_array().unwrap()
}

fn integer(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value:#}"))
}

/// Checks every result, independent of the machine.
fn consistent(found: &Value) {
    for pass in passes(found) {
        let traces = found["traces"].as_array().unwrap();
        let trace = traces.iter().find(|trace| trace["trace"] == pass["trace"]).unwrap();
        for (key, of) in
            [("requests", "records"), ("bytes_read", "bytes_read"), ("bytes_written", "bytes_written")]
        {
            assert_eq!(integer(pass, key), integer(trace, of), "{pass:#}");
        }
        assert_eq!(integer(pass, "failed"), 0);
        assert!(integer(pass, "outstanding_max") <= integer(pass, "outstanding_limit"), "{pass:#}");
        assert_eq!(pass["is_cold"], integer(pass, "pass") == 1);
        let parts = ["reads", "writes", "flushes", "discards"]
            .map(|kind| pass[kind]["requests"].as_u64().unwrap_or(0));
        assert_eq!(parts.iter().sum::<u64>(), integer(&pass["all"], "requests"));
        let seconds = |key: &str| pass[key].as_f64().unwrap();
        assert!(seconds("busy_seconds") <= seconds("seconds") + 1e-6, "{pass:#}");
        let is_open = ["timed", "paced"].contains(&pass["mode"].as_str().unwrap());
        let fidelity = &pass["fidelity"];
        assert_eq!(fidelity.is_null(), !is_open);
        if is_open {
            let is_on_time = integer(&pass["lateness"], "p99_ns") <= integer(fidelity, "lateness_allowed_ns");
            let is_as_long = fidelity["span_error"].as_f64().unwrap() <= 0.01;
            let is_kept = is_on_time && is_as_long && integer(pass, "blocked") == 0;
            assert_eq!(fidelity["is_kept"], is_kept, "{pass:#}");
        }
    }
}

#[test]
#[ignore = "system"]
fn synthetic_and_real_traces_are_compared_on_two_volumes() {
    let test = "seven_made_up_traces_and_real_ones";
    let place = directory();
    let here = place.path();
    volumes(&place);
    std::fs::create_dir(here.join("traces")).unwrap();
    for personality in PERSONALITIES {
        make(here, personality, &format!("traces/{personality}.trace"), "1 s");
    }
    let mut count = PERSONALITIES.len();
    let real = [dbench_trace(test, here), darshan_trace(test, here), blkreplay_trace(test, here)];
    for real in real.into_iter().flatten() {
        std::fs::rename(&real, here.join("traces").join(real.file_name().unwrap())).unwrap();
        count += 1;
    }
    let set = ["replay-set", "traces", "--volume", "a", "--volume", "b", "--baseline", "a"];
    let part = ["--max-records", "500", "--map", "scale", "--size", "64MB"];
    let found = replayed(here, &[&set[..], &part, &["--mode", "afap", "--depth", "8"]].concat());
    consistent(&found);
    assert_eq!(passes(&found).len(), count * 2 * 3);
    let index = &found["index"];
    assert_eq!((&index["baseline"], &index["metric"]), (&"a".into(), &"mean_service".into()));
    let [a, b] = &index["places"].as_array().unwrap()[..] else { panic!("{index:#}") };
    assert_eq!((&a["index"], &a["loss_percent"]), (&1.0.into(), &0.0.into()));
    assert!(b["index"].as_f64().unwrap() > 0.0 && b["ratios"].as_array().unwrap().len() == count);
    assert!(
        b["lower"].as_f64() <= b["index"].as_f64() && b["index"].as_f64() <= b["upper"].as_f64(),
        "{b:#}"
    );
    for volume in ["a", "b"] {
        assert_eq!(std::fs::read_dir(here.join(volume)).unwrap().count(), 0, "no files remain");
    }
    // The order of targets reverses from pass to pass.
    let order: Vec<&str> = passes(&found)[..6].iter().map(|pass| pass["place"].as_str().unwrap()).collect();
    assert_eq!(order, ["a", "b", "b", "a", "a", "b"]);
}

#[test]
#[ignore = "system"]
fn a_set_is_compared_without_and_with_a_load() {
    let place = busy_directory();
    let here = place.path();
    volumes(&place);
    std::fs::create_dir(here.join("traces")).unwrap();
    make(here, "web-server", "traces/web.trace", "1 s");
    let load = "disk=25MB/s@b,read,size=64 MiB";
    let set = ["replay-set", "traces", "--volume", "a", "--baseline", "a", "--mode", "dep", "--load", load];
    let found = replayed(here, &[&set[..], &["--out", "results"]].concat());
    consistent(&found);
    let names: Vec<&str> = passes(&found).iter().map(|pass| pass["place"].as_str().unwrap()).collect();
    let loaded = "a + loads";
    assert_eq!(names, ["a", loaded, loaded, "a", "a", loaded]);
    for pass in passes(&found) {
        let loads = pass["loads"].as_array().unwrap();
        assert_eq!(loads.len(), usize::from(pass["place"] == loaded), "{pass:#}");
        assert!(loads.iter().all(|load| load["failure"].is_null()), "{pass:#}");
    }
    let places = found["index"]["places"].as_array().unwrap();
    assert_eq!((places.len(), &places[1]["place"]), (2, &loaded.into()));
    let kept = std::fs::read_dir(here.join("results")).unwrap().next().unwrap().unwrap().path();
    let events = std::fs::read_to_string(kept.join("events.jsonl")).unwrap();
    assert_eq!(events.lines().filter(|line| line.contains("\"replay_pass\"")).count(), 6, "{events}");
    let summary: Value = serde_json::from_slice(&std::fs::read(kept.join("result.json")).unwrap()).unwrap();
    assert_eq!(summary, found);
}

/// The records of a trace.
fn read(trace: &Path) -> Vec<Record> {
    let mut trace = Trace::open(&[trace.to_owned()], &Hints::default(), None).unwrap();
    let mut records = Vec::new();
    while trace.fill(&mut records).unwrap() {}
    records
}

#[test]
#[ignore = "system"]
fn a_trace_captured_from_a_replay_equals_the_original() {
    let place = busy_directory();
    let here = place.path();
    volumes(&place);
    make(here, "mail-server", "mail.trace", "2 s");
    let original = read(&here.join("mail.trace"));
    for (n, mode) in ["timed", "afap", "dep"].into_iter().enumerate() {
        let out = format!("captured-{n}.trace");
        let verb = ["trace", "record", &out, "--", "replay", "mail.trace", "--volume", "a", "--json"];
        let more: &[&str] = if mode == "afap" { &["--depth", "1"] } else { &[] };
        let found = replayed(here, &[&verb[..], &["--mode", mode], more].concat());
        consistent(&found);
        // The last pass follows the filling, the other passes, and their flushes.
        let captured = read(&here.join(&out));
        let last = &captured[captured.len() - original.len()..];
        let what = |records: &[Record]| -> Vec<(Operation, u64, u32)> {
            records.iter().map(|record| (record.operation, record.offset, record.bytes)).collect()
        };
        let (mut asked, mut done) = (what(&original), what(last));
        if mode == "dep" {
            // Independent requests have no order.
            asked.sort_unstable();
            done.sort_unstable();
        }
        assert_eq!(asked, done, "{mode}");
        if mode == "timed" {
            let late_ns = integer(&passes(&found)[2]["lateness"], "max_ns");
            // To 0.1 % and 1 us, the resolution of histograms. The capture reads its clock a moment later.
            let allowed_ns = late_ns + late_ns / 500 + 200_000;
            // On a busy machine this moment may be long for one request in a hundred.
            let pairs = original.iter().zip(last);
            let mut begins: Vec<i128> =
                pairs.clone().map(|(a, d)| i128::from(d.issue_ns) - i128::from(a.issue_ns)).collect();
            begins.sort_unstable();
            let begin = begins[begins.len() / 2];
            let late = begins.iter().filter(|of| of.abs_diff(begin) > u128::from(allowed_ns)).count();
            assert!(late <= begins.len() / 100, "{late} of {} by more than {allowed_ns} ns", begins.len());
        }
    }
}

#[test]
#[ignore = "system"]
fn each_device_of_a_trace_goes_to_its_own_directory() {
    let place = busy_directory();
    let here = place.path();
    volumes(&place);
    // Two devices, in turns; the second has flushes too.
    let line = |n: u64| match n % 4 {
        3 => format!("8,16 1 {n} 0.{:09} 697 Q FN [x]\n", n * 100_000),
        1 => format!("8,16 1 {n} 0.{:09} 697 Q W {} + 16 [x]\n", n * 100_000, n % 64 * 16),
        _ => format!("8,0 1 {n} 0.{:09} 697 Q W {} + 8 [x]\n", n * 100_000, n * 8),
    };
    std::fs::write(here.join("two.txt"), (0..400).map(line).collect::<String>()).unwrap();
    let assigned = ["--assign", "8,0=a", "--assign", "8,16=b"];
    let verb =
        ["trace", "record", "out.trace", "--", "replay", "two.txt", "--mode", "afap", "--json", "--check"];
    let found = replayed(here, &[&verb[..], &assigned].concat());
    consistent(&found);
    let last = &passes(&found)[2];
    assert_eq!((&last["place"], &last["check"]["wrong"]), (&"8,0=a + 8,16=b".into(), &0.into()));
    let devices: Vec<_> = last["devices"].as_array().unwrap().iter().collect();
    let requests = |device: &Value| integer(&device["times"], "requests");
    assert_eq!(
        devices.iter().map(|d| (d["device"].as_str().unwrap(), requests(d))).collect::<Vec<_>>(),
        [("8,0", 200), ("8,16", 200)]
    );
    // Each pass writes to each file what the trace writes to its device, and the flushes go to the second.
    let mut trace = Trace::open(&[here.join("out.trace")], &Hints::default(), None).unwrap();
    let mut records = Vec::new();
    while trace.fill(&mut records).unwrap() {}
    let file =
        |name: &str| trace.devices().iter().position(|device| device.name.contains(name)).unwrap() as u16;
    let (first, second) = (file("/a/"), file("/b/"));
    let count = |device: u16, operation, bytes| {
        let is =
            |record: &&Record| (record.device, record.operation, record.bytes) == (device, operation, bytes);
        records.iter().filter(is).count()
    };
    assert_eq!((count(first, Operation::Write, 4096), count(second, Operation::Write, 8192)), (600, 300));
    assert!(count(second, Operation::Flush, 0) >= 300, "{}", count(second, Operation::Flush, 0));
    assert!(count(first, Operation::Flush, 0) < 300);
    for volume in ["a", "b"] {
        assert_eq!(std::fs::read_dir(here.join(volume)).unwrap().count(), 0, "no files remain");
    }
    let replay = |more: &[&str]| keepup(here, &[&["replay", "two.txt"], more].concat());
    refused(&replay(&["--assign", "8,0=a"]), 2, "no directory is assigned to its device 8,16");
    let other = [&assigned[..], &["--assign", "sda=a"]].concat();
    refused(&replay(&other), 2, "it has no requests to a device sda");
    let many: Vec<String> = (0..17).map(|n| format!("9,{n}=a")).collect();
    let line = |n: u64| format!("9,{n} 1 {n} 0.{:09} 697 Q R 0 + 8 [x]\n", n * 100_000);
    std::fs::write(here.join("many.txt"), (0..17).map(line).collect::<String>()).unwrap();
    let flags = many.iter().flat_map(|place| ["--assign", place.as_str()]);
    let run = keepup(here, &["replay", "many.txt"].into_iter().chain(flags).collect::<Vec<_>>());
    refused(&run, 2, "it has 17 devices; at most 16");
    refused(&replay(&[&assigned[..], &["--map", "wrap"]].concat()), 2, "each device keeps its addresses");
}

#[test]
#[ignore = "system"]
fn flushes_before_writes_fua_and_discards_reach_the_disk() {
    let place = busy_directory();
    let here = place.path();
    volumes(&place);
    // A write with a flush before it and FUA, a discard of it, a flush, and a read.
    let lines = ["Q FWFS 80 + 8 [x]", "Q D 0 + 4096 [x]", "Q FN [x]", "Q R 8192 + 8 [x]"];
    let line = |(n, rest): (usize, &&str)| format!("8,0 1 {n} 0.000{n}00000 697 {rest}\n");
    let text: String = lines.iter().enumerate().map(line).collect();
    std::fs::write(here.join("ordered.txt"), text).unwrap();
    for engine in ["auto", "sync"] {
        let out = format!("{engine}.trace");
        let verb = ["trace", "record", &out, "--", "replay", "ordered.txt", "--volume", "a", "--json"];
        let found =
            replayed(here, &[&verb[..], &["--mode", "afap", "--depth", "1", "--engine", engine]].concat());
        consistent(&found);
        let trace = &found["traces"][0];
        let counts =
            ["discards", "ordered_writes", "flushes", "orders_not_kept"].map(|key| integer(trace, key));
        assert_eq!(counts, [1, 1, 1, 0], "{trace:#}");
        let captured = read(&here.join(&out));
        let last = &captured[captured.len() - 5..];
        let what: Vec<_> =
            last.iter().map(|record| (record.operation, record.flags.has(Flags::FUA))).collect();
        let expected = [
            (Operation::Flush, false),
            (Operation::Write, true),
            (Operation::Discard, false),
            (Operation::Flush, false),
            (Operation::Read, false),
        ];
        assert_eq!(what, expected, "{engine}");
        assert_eq!((last[2].offset, last[2].bytes), (0, 4096 * 512));
    }
}

#[test]
#[ignore = "system"]
fn a_disk_slower_than_the_trace_is_reported() {
    let place = busy_directory();
    let here = place.path();
    make(here, "database", "db.trace", "2 s");
    let slow = ["replay", "db.trace", "--target", "throttled=2MB/s", "--speed", "50", "--window", "..400ms"];
    let found = replayed(here, &slow);
    consistent(&found);
    assert!(passes(&found).iter().all(|pass| pass["blocked"] == 0), "4096 requests fit: {found:#}");
    // All requests are issued within 100 ms and take a hundred times as long.
    make(here, "database", "long.trace", "4 s");
    let run =
        keepup(here, &["replay", "long.trace", "--target", "throttled=8MB/s", "--speed", "40", "--json"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let found = json(&run);
    let fidelity = &passes(&found)[1]["fidelity"];
    assert_eq!((&fidelity["is_kept"], &fidelity["is_target"]), (&false.into(), &true.into()), "{fidelity:#}");
    assert!(integer(&passes(&found)[1], "blocked") > 0);
    assert_eq!(integer(&passes(&found)[1], "outstanding_max"), 4096);
}

#[test]
#[ignore = "system"]
fn written_data_is_read_back() {
    let test = "written_data_is_read_back";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let mut disk = match FaultyDisk::mount(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    // The block at 0 is filled first, and written once by each pass.
    let rows = "128166372000000000,a,0,Write,0,4096,5\n128166372000000100,a,0,Write,8192,4096,5\n";
    std::fs::write(here.join("two.csv"), rows).unwrap();
    let replay = ["replay", "two.csv", "--volume", "disk", "--mode", "afap", "--check", "--json"];
    let found = replayed(here, &replay);
    let check = &passes(&found)[2]["check"];
    assert_eq!((integer(check, "blocks"), integer(check, "wrong")), (2, 0), "{check:#}");
    disk.do_wrong("target", 0, 3, "lose").unwrap();
    let run = keepup(here, &replay);
    assert_eq!(run.code(), 1, "{run:#?}");
    let check = json(&run)["passes"][2]["check"].clone();
    assert_eq!((integer(&check, "blocks"), integer(&check, "wrong")), (2, 1), "{check:#}");
    assert!(check["first_wrong"].as_str().unwrap().contains("at 0: written last by write"), "{check:#}");
}

#[test]
#[ignore = "system"]
fn a_broken_disk_ends_the_replay_and_keeps_its_results() {
    let test = "a_disk_that_breaks_ends_it";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let mut disk = match FaultyDisk::mount(&here.join("disk"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    make(here, "file-server", "files.trace", "1 s");
    let out = ["--json", "--out", "results", "--passes", "200"];
    let run = start(here, &[&["replay", "files.trace", "--volume", "disk"], &out[..]].concat());
    until("a pass ends", || has_event(&here.join("results"), "replay_pass"));
    disk.break_down().unwrap();
    let run = run.wait();
    assert_eq!(run.code(), 4, "{run:#?}");
    let found = json(&run);
    let failure = found["failure"].as_str().unwrap();
    assert!(failure.contains("nput/output error") && run.stderr.contains("hint:"), "{run:#?}");
    assert!(!passes(&found).is_empty() && integer(&passes(&found)[0], "failed") == 0, "{found:#}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "its files are removed");
}

#[test]
fn an_interrupted_replay_keeps_its_finished_passes() {
    let place = directory();
    let here = place.path();
    volumes(&place);
    make(here, "office", "office.trace", "5 s");
    let mut run = start(here, &["replay", "office.trace", "--volume", "a", "--passes", "900", "--json"]);
    run.line("timed");
    until("its file is there", || std::fs::read_dir(here.join("a")).unwrap().count() > 0);
    std::thread::sleep(Duration::from_millis(500));
    run.signal("INT");
    let run = run.wait();
    assert_eq!(run.code(), 130, "{run:#?}");
    assert_eq!(json(&run)["interrupted"], true);
    assert_eq!(std::fs::read_dir(here.join("a")).unwrap().count(), 0, "no files remain");
}

/// A block device over a file.
struct LoopDevice(String);

impl LoopDevice {
    fn over(file: &Path) -> Result<Self, String> {
        let found = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let found = found.map_err(|e| e.to_string())?;
        let name = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        if found.status.success() { Ok(Self(name)) } else { Err("no loop devices".into()) }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        drop(Command::new("losetup").args(["--detach", &self.0]).status());
    }
}

#[test]
#[ignore = "system"]
fn a_raw_device_is_only_read() {
    let test = "a_raw_device_is_only_read";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let content: Vec<u8> = (0..8 << 20).map(|n: u32| (n / 4096 * 31) as u8).collect();
    std::fs::write(here.join("image"), &content).unwrap();
    let device = match LoopDevice::over(&here.join("image")) {
        Ok(device) => device,
        Err(why) => return skip(test, &why),
    };
    make(here, "database", "db.trace", "1 s");
    let raw = ["replay", "db.trace", "--raw", &device.0, "--mode", "afap", "--map", "wrap"];
    let run = keepup(here, &raw);
    assert_eq!(run.code(), 2, "{run:#?}");
    let hint = "hint: skip writes with --reads-only";
    assert!(run.stderr.contains("is only read") && run.stderr.contains(hint), "{run:#?}");
    let found = replayed(here, &[&raw[..], &["--reads-only"]].concat());
    consistent(&found);
    assert_eq!(integer(&found["traces"][0]["map"], "target_bytes"), 8 << 20);
    assert!(integer(&found["traces"][0], "writes_left_out") > 0);
    assert!(std::fs::read(here.join("image")).unwrap() == content, "no byte was changed");
    let run = keepup(here, &["replay", "db.trace", "--raw", "image", "--reads-only"]);
    assert!(run.code() != 0 && run.stderr.contains("is not a block device"), "{run:#?}");
}

fn refused(run: &Run, code: i32, words: &str) {
    assert_eq!(run.code(), code, "{run:#?}");
    assert!(run.stderr.contains(words) && run.stderr.contains("hint:"), "no {words:?}: {run:#?}");
}

#[test]
fn impossible_replays_are_refused_before_the_first_write() {
    let place = directory();
    let here = place.path();
    volumes(&place);
    make(here, "web-server", "web.trace", "1 s");
    let replay = |more: &[&str]| keepup(here, &[&["replay", "web.trace", "--volume", "a"], more].concat());
    refused(&replay(&["--baseline", "c"]), 2, "the baseline c is not among the targets");
    refused(&replay(&["--size", "1 MiB"]), 2, "--map clip, wrap or scale");
    refused(&replay(&["--window", "10s..20s"]), 2, "no request is left");
    refused(&replay(&["--check", "--access", "buffered"]), 2, "would read the cache");
    for (more, words) in [
        (&["--speed", "2", "--mode", "afap"][..], "cannot use --speed: it applies to --mode timed or dep"),
        (&["--depth", "2"], "cannot use --depth: it applies to --mode afap"),
        (&["--mode", "paced"], "cannot use --mode paced without --rate"),
        (&["--passes", "2"], "2 is not in 3..=1000"),
        (&["--volume", "a"], "cannot use target a twice"),
        (&["--window", "5s..2s"], "ends before it starts"),
    ] {
        let run = replay(more);
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(run.stderr.contains(words), "no {words:?}: {run:#?}");
    }
    std::fs::write(here.join("old.iolog"), "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n").unwrap();
    refused(&keepup(here, &["replay", "old.iolog", "--volume", "a"]), 2, "has no times, only an order");
    std::fs::create_dir(here.join("none")).unwrap();
    let set = ["replay-set", "none", "--volume", "a", "--baseline", "a"];
    refused(&keepup(here, &set), 2, "cannot replay none: the directory has no traces");
    let run = keepup(here, &["replay", "web.trace", "--volume", "nowhere"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("a")).unwrap().count(), 0);
    let plan = replay(&["--dry-run"]);
    assert!(plan.code() == 0 && plan.stdout.contains("3 passes each"), "{plan:#?}");
    assert_eq!(std::fs::read_dir(here.join("a")).unwrap().count(), 0);
}

#[test]
#[ignore = "system"]
fn a_disk_without_free_space_is_refused() {
    let test = "a_disk_without_free_space_is_refused";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    let Ok(_disk) = SmallDisk::mount(&here.join("small"), 20) else {
        return skip(test, "no tmpfs can be mounted");
    };
    make(here, "database", "db.trace", "1 s");
    let run = keepup(here, &["replay", "db.trace", "--volume", "small", "--access", "buffered"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("small"), "{run:#?}");
}
