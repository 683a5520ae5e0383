//! What `qualify` says of paths of a known rate. The rate that is required lies far below the path's, or far
//! above: no noise of a machine moves one past the other, so each verdict is certain.
use std::path::Path;

use keepup_testkit::cable::Cable;
use keepup_testkit::root::{ShapedNamespace, ThrottledWrites, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{TestDirectory, count, directory, json, secret_file};
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

/// A small profile. Its buffer and the pool bridge seconds in which the machine stands still.
fn prepared(events_per_second: u32, more: &str) -> TestDirectory {
    let place = directory();
    std::fs::create_dir(place.path().join("disk")).unwrap();
    let profile = format!(
        "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n\
        [source]\nrate = \"{events_per_second} /s\"\nbuffer = \"64 MiB\"\nstreams = 1\ntransport = \"tcp\"\n\
        [run]\nduration = \"8 h\"\n{more}[record]\nsegment = \"64 MiB\"\n"
    );
    std::fs::write(place.path().join("small.toml"), profile).unwrap();
    place
}

const QUALIFY: [&str; 12] = [
    "qualify",
    "./small.toml",
    "--volume",
    "disk",
    "--quick",
    "--soak",
    "3s",
    "--pool",
    "32 MiB",
    "--max-write",
    "48 GB",
    "--json",
];

fn shell(here: &Path, before: &str) -> Run {
    let quoted: Vec<String> = QUALIFY.iter().map(|a| format!("'{a}'")).collect();
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
    assert_eq!((run.code(), &found["verdict"]), (0, &"FIT".into()), "{run:#?}");
    let (required, qualified) =
        (rate(&found, "required_bytes_per_second"), rate(&found, "qualified_bytes_per_second"));
    assert!((required - f64::from(FAR_BELOW) * EVENT_BYTES).abs() < 1.0, "{found:#}");
    assert!(qualified >= required && qualified < 1.2 * PATH, "{found:#}");
    assert_eq!(count(&found["ledger"]["lost"]), (0, 0), "{found:#}");
    assert_eq!(count(&found["ledger"]["verified"]), count(&found["ledger"]["durable"]), "{found:#}");
    names(&found, stage);
}

/// NOT FIT: nothing near the required rate is promised, and the stage that sets the path's rate is named.
fn is_not_fit(run: &Run, stage: &str) {
    let found = json(run);
    assert_eq!((run.code(), &found["verdict"]), (1, &"NOT FIT".into()), "{run:#?}");
    let required = rate(&found, "required_bytes_per_second");
    assert!((required - f64::from(FAR_ABOVE) * EVENT_BYTES).abs() < 1.0, "{found:#}");
    assert!(found["qualified_bytes_per_second"].as_f64().unwrap_or(0.0) < 1.2 * PATH, "{found:#}");
    names(&found, stage);
}

fn names(found: &Value, stage: &str) {
    let bottleneck = &found["bottleneck"];
    let named = bottleneck["stage"].as_str().unwrap_or_default();
    assert!(named.starts_with(stage), "not {stage}: {found:#}");
    let counters = bottleneck["counter_trials"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_confirmed = counters.iter().any(|counter| counter["confirmed"] == true);
    assert!(is_confirmed, "no counter-trial confirmed {stage}: {bottleneck:#}");
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
    let run = shell(place.path(), &format!("echo $$ > {}; exec", throttled.entry().display()));
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
        Ok(namespace) => Some(shell(place.path(), &format!("exec ip netns exec {}", namespace.name()))),
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
    let run = at(0, &[&QUALIFY[..], &["--drain-to", &to]].concat()).wait();
    let found = json(&run);
    assert_eq!((run.code(), &found["verdict"]), (1, &"NOT FIT".into()), "{run:#?}");
    assert_eq!(found["qualified_bytes_per_second"], Value::Null, "{found:#}");
    names(&found, "drain");
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
    let run = at(0, &[&QUALIFY[..], &["--source", there, "--source-token-file", "token"]].concat()).wait();
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
