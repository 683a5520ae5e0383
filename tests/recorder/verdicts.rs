//! What `qualify` says of paths whose slow stage is known: the verdict, and the bottleneck, which a
//! counter-trial must confirm. Noise of the machine changes no answer, so the tests are in the system tier:
//!
//! - Throttled volume, shaped link, slow drain: the required rate is a twentieth of what the path carries, or
//!   six times as much.
//! - Slow reduction: it is several times slower than the path without it. Its thread has a high priority, so
//!   that other tests do not take its processor.
//! - Small pool: the test sets the length of the stalls, and the rates set what arrives in one. The
//!   counter-trial enlarges the pool by four, so no amount can be three times away from both sizes. The
//!   margin is 1.2 to the small pool and 2.3 to the large one: noise can make a stall longer, not shorter.
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use keepup_testkit::cable::Cable;
use keepup_testkit::root::{ShapedNamespace, SmallSockets, ThrottledWrites, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{TestDirectory, busy_directory, count, directory, json, qualified, secret_file};
use crate::net::TOKEN;

/// Events of 64 KiB.
const EVENT_BYTES: f64 = 65_536.0;
/// Rate of the throttled volume, in bytes per second.
const VOLUME: u64 = 10_000_000;
/// Rate of the shaped link, in megabits per second.
const LINK: u32 = 80;
/// What both carry, in bytes per second.
const PATH: f64 = 10e6;
/// Events per second: a twentieth of what a path carries, and six times as much.
const FAR_BELOW: u32 = 8;
const FAR_ABOVE: u32 = 916;

/// A profile with events of 64 KiB, and with runs that fit on a volume with little space: these verdicts are
/// about rates. `event` has further lines of that table; `more` follows the last table, `record`.
pub(super) fn profile(events_per_second: u32, buffer: &str, event: &str, more: &str) -> String {
    format!(
        "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n{event}\
        [source]\nrate = \"{events_per_second} /s\"\nbuffer = \"{buffer}\"\nstreams = 1\n\
        transport = \"tcp\"\n[run]\nduration = \"10 min\"\n[record]\nsegment = \"64 MiB\"\n{more}"
    )
}

/// Creates a volume and stores the profile in `place`.
pub(super) fn with_profile(place: TestDirectory, profile: &str) -> TestDirectory {
    std::fs::create_dir(place.path().join("disk")).unwrap();
    std::fs::write(place.path().join("small.toml"), profile).unwrap();
    place
}

/// The buffer of the source and the pool bridge seconds in which the machine stands still.
fn prepared(events_per_second: u32, more: &str) -> TestDirectory {
    with_profile(directory(), &profile(events_per_second, "64 MiB", "", more))
}

/// A short qualification on what [`with_profile`] prepares.
pub(super) const QUALIFY: [&str; 10] = [
    "qualify",
    "./small.toml",
    "--volume",
    "disk",
    "--quick",
    "--soak",
    "3s",
    "--max-write",
    "48 GB",
    "--json",
];
const POOL: [&str; 2] = ["--pool", "32 MiB"];

/// Qualifies by a shell, which runs `before` first.
fn shell(here: &Path, before: &str, more: &[&str]) -> Run {
    let quoted: Vec<String> = QUALIFY.iter().chain(more).map(|a| format!("'{a}'")).collect();
    let script = format!("{before} {} {}", env!("CARGO_BIN_EXE_keepup"), quoted.join(" "));
    Program::start("sh", &["-c", &script], here).wait()
}

fn rate(found: &Value, key: &str) -> f64 {
    found[key].as_f64().unwrap_or_else(|| panic!("no {key} in {found:#}"))
}

/// FIT: the rate is proven without loss, the stage that sets the path's rate is named, and nothing faster
/// than the path is promised.
fn is_fit(run: &Run, stage: &str) {
    let found = json(run);
    let answer = (run.code(), &found["verdict"]);
    assert_eq!(answer, (0, &"FIT".into()), "{:#}: {run:#?}", found["verdict_reasons"]);
    let (required, qualified) =
        (rate(&found, "required_bytes_per_second"), rate(&found, "qualified_bytes_per_second"));
    assert!((required - f64::from(FAR_BELOW) * EVENT_BYTES).abs() < 1.0, "{found:#}");
    assert!(qualified >= required && qualified < 1.2 * PATH, "{found:#}");
    assert_eq!(count(&found["ledger"]["lost"]), (0, 0), "{found:#}");
    assert_eq!(count(&found["ledger"]["verified"]), count(&found["ledger"]["durable"]), "{found:#}");
    names(&found, stage);
}

/// NOT FIT, and `stage` is named.
fn is_refused(run: &Run, stage: &str) -> Value {
    let found = json(run);
    assert_eq!(
        (run.code(), &found["verdict"]),
        (1, &"NOT FIT".into()),
        "{:#}: {run:#?}",
        found["verdict_reasons"]
    );
    names(&found, stage);
    found
}

/// NOT FIT: nothing near the required rate is promised, and the stage that sets the path's rate is named.
fn is_not_fit(run: &Run, stage: &str) {
    let found = is_refused(run, stage);
    let required = rate(&found, "required_bytes_per_second");
    assert!((required - f64::from(FAR_ABOVE) * EVENT_BYTES).abs() < 1.0, "{found:#}");
    assert!(promised(&found) < 1.2 * PATH, "{found:#}");
}

/// The qualified rate, bytes per second; 0 if there is none.
fn promised(found: &Value) -> f64 {
    found["qualified_bytes_per_second"].as_f64().unwrap_or(0.0)
}

fn names(found: &Value, stage: &str) {
    let is_right = is_named(found, stage) || is_crowded_out(found);
    assert!(is_right, "{stage} is not named, or not confirmed: {found:#}");
}

/// Whether other programs on the machine took the processor from the recorder, so that a processor without
/// time was a candidate, too, and no stage was named: its threads waited longer for a core than they ran on
/// one.
fn is_crowded_out(found: &Value) -> bool {
    let threads = found["cpu"]["recorder_threads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sum = |key: &str| threads.iter().filter_map(|thread| thread[key].as_f64()).sum::<f64>();
    let candidates = found["bottleneck"]["evidence"].as_str().unwrap_or_default();
    found["bottleneck"]["stage"] == "not resolved"
        && candidates.contains("processor (")
        && sum("run_delay_seconds") > sum("seconds")
}

/// Whether the bottleneck is `stage`, and a counter-trial of that stage confirms it.
pub(super) fn is_named(found: &Value, stage: &str) -> bool {
    let bottleneck = &found["bottleneck"];
    let named = bottleneck["stage"].as_str().unwrap_or_default();
    let counters = bottleneck["counter_trials"].as_array().map(Vec::as_slice).unwrap_or_default();
    let confirms = |counter: &Value| counter["stage"] == named && counter["confirmed"] == true;
    named.starts_with(stage) && counters.iter().any(confirms)
}

/// Qualifies on a throttled volume.
fn on_a_throttled_volume(test: &str, events_per_second: u32) -> Option<Run> {
    if !allowed(test) {
        return None;
    }
    let place = prepared(events_per_second, "");
    let group = format!("keepup-{events_per_second}-{}", std::process::id());
    let throttled = match ThrottledWrites::create(&group, place.path(), VOLUME) {
        Ok(throttled) => throttled,
        Err(why) => {
            skip(test, &why);
            return None;
        }
    };
    let run = shell(place.path(), &format!("echo $$ > {}; exec", throttled.entry().display()), &POOL);
    let alone = json(&run)["ceilings"]["volumes"][0]["bytes_per_second"].as_f64().unwrap();
    assert!(alone < 1.5 * PATH, "the throttle holds: {alone}");
    Some(run)
}

/// Qualifies over a shaped link.
fn over_a_shaped_link(test: &str, events_per_second: u32) -> Option<Run> {
    if !allowed(test) {
        return None;
    }
    let place = prepared(events_per_second, "");
    let name = format!("keepup-{events_per_second}-{}", std::process::id());
    match ShapedNamespace::create(&name, LINK) {
        Ok(namespace) => {
            Some(shell(place.path(), &format!("exec ip netns exec {}", namespace.name()), &POOL))
        }
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

#[test]
#[ignore = "system"]
fn a_throttled_volume_is_fit_for_a_twentieth_of_its_rate() {
    if let Some(run) = on_a_throttled_volume("a_throttled_volume_is_fit", FAR_BELOW) {
        is_fit(&run, "volume");
    }
}

#[test]
#[ignore = "system"]
fn a_throttled_volume_is_not_fit_for_six_times_its_rate() {
    if let Some(run) = on_a_throttled_volume("a_throttled_volume_is_not_fit", FAR_ABOVE) {
        is_not_fit(&run, "volume");
    }
}

#[test]
#[ignore = "system"]
fn a_shaped_link_is_fit_for_a_twentieth_of_its_rate() {
    if let Some(run) = over_a_shaped_link("a_shaped_link_is_fit", FAR_BELOW) {
        is_fit(&run, "network");
    }
}

/// Independent of what the search finds within its time limit: the link throttles the saturated source.
#[test]
#[ignore = "system"]
fn a_shaped_link_is_not_fit_for_six_times_its_rate() {
    if let Some(run) = over_a_shaped_link("a_shaped_link_is_not_fit_for_six_times_its_rate", FAR_ABOVE) {
        is_not_fit(&run, "network");
    }
}

#[test]
#[ignore = "system"]
fn a_drain_over_a_shaped_link_is_not_fit() {
    let test = "a_drain_over_a_shaped_link_is_not_fit";
    if !allowed(test) {
        return;
    }
    let cable = match Cable::lay(&format!("kv{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => return skip(test, &why),
    };
    // A sixth of what is recorded.
    cable.shape(0, 8).unwrap();
    let place = prepared(100, "[drain]\nrate = \"50 MB/s\"\n");
    let listen = format!("{}:0", Cable::address(1));
    let sink = ["sink", "--listen", &listen, "--to-null", "--stay"];
    let at = |end: usize, arguments: &[&str]| {
        let keepup = env!("CARGO_BIN_EXE_keepup");
        Program::start("ip", &[&cable.at(end)[1..], &[keepup], arguments].concat(), place.path())
    };
    let mut sink = at(1, &sink);
    let to = format!("tcp://{}", sink.address());
    let run = at(0, &[&QUALIFY[..], &POOL, &["--drain-to", &to]].concat()).wait();
    let found = is_refused(&run, "drain");
    assert_eq!(found["qualified_bytes_per_second"], Value::Null, "{found:#}");
}

/// A source on another machine, behind a shaped link: the link is measured, and named.
#[test]
#[ignore = "system"]
fn a_shaped_link_from_the_source_is_the_limit() {
    let test = "a_shaped_link_from_the_source_is_the_limit";
    if !allowed(test) {
        return;
    }
    let cable = match Cable::lay(&format!("ks{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => return skip(test, &why),
    };
    cable.shape(1, LINK).unwrap();
    let place = prepared(FAR_BELOW, "");
    secret_file(place.path(), "token", TOKEN);
    let at = |end: usize, arguments: &[&str]| {
        let keepup = env!("CARGO_BIN_EXE_keepup");
        Program::start("ip", &[&cable.at(end)[1..], &[keepup], arguments].concat(), place.path())
    };
    let there = Cable::address(1);
    let mut server = at(1, &["source", "--serve", "--listen", there, "--token-file", "token"]);
    let address = server.address().to_string();
    let source = ["--source", there, "--source-token-file", "token"];
    let run = at(0, &[&QUALIFY[..], &POOL, &source].concat()).wait();
    is_fit(&run, "network");
    let found = json(&run);
    let alone = found["ceilings"]["network_bytes_per_second"].as_f64().unwrap();
    assert!(alone < 1.2 * PATH, "the ceiling is that of the link: {alone}");
    // The source alone does not use the link.
    assert!(found["ceilings"]["source_bytes_per_second"].as_f64().unwrap() > 2.0 * PATH, "{found:#}");
    let limits: Vec<&str> = found["limits"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(limits[0].starts_with("the source ran on ") && limits[0].contains(&address), "{limits:#?}");
    assert!(!limits.iter().any(|limit| limit.contains("loopback")), "{limits:#?}");
    assert_eq!(found["source_host"]["address"], address, "{found:#}");
    server.signal("TERM");
    let served = server.wait();
    assert!(served.code() == 0 && !served.stderr.contains(TOKEN), "{served:#?}");
}

/// Priority of a path beside other tests, which get the processor time that it leaves. Without root it stays
/// normal.
const FIRST: &str = "nice -n -19";

/// A stall of a volume, and the time in which it writes. Each trial of 3 s contains a whole stall.
const STALL: Duration = Duration::from_secs(1);
const FLOW: Duration = Duration::from_millis(500);
/// Limit on what a socket holds in one direction, bytes. By default the sockets of a connection hold 4 to
/// 37 MB, more than the small pool.
const SOCKET_BYTES: u32 = 512 << 10;

/// Runs `work` while the volume stalls again and again.
fn beside_stalls<T>(volume: &ThrottledWrites, work: impl FnOnce() -> T) -> T {
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(FLOW) == Err(RecvTimeoutError::Timeout) {
                volume.limit(1).unwrap();
                std::thread::sleep(STALL);
                volume.limit(0).unwrap();
            }
        });
        // Dropped after `work`, also if that panics.
        let _end = end;
        work()
    })
}

/// Events that arrive in a stall wait in 30 blocks of the pool (7.9 MB), the source's buffer (4.2 MB) and the
/// sockets (1.0 MB), together 13.1 MB:
///
/// - The target, 1.3 times the required rate, sends 32.4 MB in a stall, 2.5 times as much. It loses events,
///   and so does the required rate.
/// - With four times the pool 36.7 MB fit, more than the target sends. The counter-trial uses the lowest rate
///   that lost events, about 16 MB/s: 1.2 times what fits the small pool, and less than half of what fits the
///   large one.
/// - A volume of 200 MB/s carries 67 MB/s beside its stalls, twice the target: throughput suffices.
#[test]
#[ignore = "system"]
fn a_pool_that_does_not_bridge_the_stalls_of_a_volume_is_named() {
    let test = "a_pool_that_does_not_bridge_the_stalls_of_a_volume_is_named";
    if !allowed(test) {
        return;
    }
    let place = with_profile(busy_directory(), &profile(380, "4 MiB", "", "block = \"256 KiB\"\n"));
    let name = format!("keepup-pool-{}", std::process::id());
    let made = ThrottledWrites::create(&name, place.path(), 0)
        .and_then(|volume| Ok((volume, SmallSockets::create(&name, SOCKET_BYTES)?)));
    let (volume, sockets) = match made {
        Ok(made) => made,
        Err(why) => return skip(test, &why),
    };
    let before =
        format!("echo $$ > {}; exec {FIRST} ip netns exec {}", volume.entry().display(), sockets.name());
    let run = beside_stalls(&volume, || shell(place.path(), &before, &["--pool", "8 MiB"]));
    let found = qualified(&run);
    assert!(promised(&found) < rate(&found, "required_bytes_per_second"), "{found:#}");
    // A stall of the machine may be longer than those of the test: then a larger pool carries more, but does
    // not hold, and the volume is named.
    let is_right = is_named(&found, "pool") || is_crowded_out(&found) || carries_more(&found, "pool");
    assert!(is_right, "pool is not named, or not confirmed: {found:#}");
}

/// Whether each counter-trial of `stage` reached clearly more than the trial without the change.
fn carries_more(found: &Value, stage: &str) -> bool {
    let counters = found["bottleneck"]["counter_trials"].as_array().map(Vec::as_slice).unwrap_or_default();
    let pairs = counters.iter().find(|counter| counter["stage"] == stage);
    let pairs = pairs.and_then(|counter| counter["pairs"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let reached = |trial: &Value| rate(trial, "bytes_per_second");
    !pairs.is_empty()
        && pairs.iter().all(|pair| reached(&pair["changed"]) > 1.3 * reached(&pair["unchanged"]))
}

/// Every sample passes eight transforms of two samples: one thread reduces tens of MB/s. Without reduction
/// the path receives and discards hundreds of MB/s. The required rate is 655 MB/s.
#[test]
#[ignore = "system"]
fn a_reduction_slower_than_the_path_is_not_fit() {
    let event = "element = \"f32\"\nshape = [16384]\n";
    let place = with_profile(busy_directory(), &profile(10_000, "4 MiB", event, ""));
    let reduction = ["spectrum size=2"; 8].join(" | ");
    let more = ["--pool", "16 MiB", "--reduce", &reduction, "--reduce-threads", "1"];
    let run = shell(place.path(), &format!("exec {FIRST}"), &more);
    is_refused(&run, "reduction");
}
