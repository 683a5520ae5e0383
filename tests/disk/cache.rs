//! `disk cache` finds a cache of known size, and reports if it found none. Reads from the disk are
//! throttled to a hundredth of the speed of memory, so that noise has no influence.
use std::path::Path;

use keepup_testkit::root::{SmallMemory, ThrottledReads, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{directory, json, keepup, kept};

const MIB: u64 = 1 << 20;
/// Rate of reads from the disk, in bytes per second.
const COLD: u64 = 20_000_000;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Runs `disk cache` in these control groups. A program is charged for its memory after it enters them.
fn cache(here: &Path, groups: &[&Path], arguments: &str) -> Run {
    let enter: String = groups.iter().map(|entry| format!("echo $$ > {} && ", entry.display())).collect();
    let command = format!("{enter}exec {} disk cache {arguments}", env!("CARGO_BIN_EXE_keepup"));
    Program::start("sh", &["-c", &command], here).wait()
}

/// Throttled reads; `None` with a message if that is not possible.
fn slow_reads(test: &str, here: &Path) -> Option<ThrottledReads> {
    if !allowed(test) {
        return None;
    }
    let name = format!("{test}-{}", std::process::id());
    ThrottledReads::create(&name, here, COLD).map_err(|why| skip(test, &why)).ok()
}

#[test]
#[ignore = "system"]
fn a_cache_of_known_size_is_measured() {
    let test = "a_cache_of_known_size_is_measured";
    let place = directory();
    let here = place.path();
    let Some(reads) = slow_reads(test, here) else { return };
    let memory = 256 * MIB;
    let group = match SmallMemory::create(&format!("{test}-{}", std::process::id()), memory) {
        Ok(group) => group,
        Err(why) => return skip(test, &why),
    };
    let run = cache(here, &[&group.entry(), &reads.entry()], "--file '16 MiB' --max '1 GiB' --json");
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run)["runs"][0]["finding"].clone();
    assert_eq!(found["unanswered"], Value::Null, "{found:#}");
    let (cached, evicted) = (number(&found["cached_bytes"]), number(&found["evicted_bytes"]));
    assert!(cached < evicted && evicted - cached <= 16 * MIB, "{found:#}");
    // The program itself uses part of the memory.
    assert!(memory - 48 * MIB <= cached && evicted <= memory + 16 * MIB, "{found:#}");
    for step in found["steps"].as_array().unwrap() {
        let share = step["cached_share"].as_f64().unwrap();
        let total = number(&step["total_bytes"]);
        assert!(if total <= cached { share > 0.5 } else { total < evicted || share < 0.5 }, "{step:#}");
    }
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
#[ignore = "system"]
fn a_limit_below_the_cache_size_is_reported() {
    let place = directory();
    let here = place.path();
    let Some(reads) = slow_reads("a_limit_that_comes_first", here) else { return };
    let run = cache(here, &[&reads.entry()], "--file '4 MiB' --max '17 MiB' --out results");
    assert_eq!(run.code(), 0, "{run:#?}");
    let page = run.stdout.replace("\n  ", " ");
    assert!(
        page.contains("page cache size unknown: cache size not reached before the limit (--max)"),
        "{run:#?}"
    );
    assert!(page.contains("of memory available"), "the kernel's value is shown too: {run:#?}");
    let found = kept(&here.join("results"))["runs"][0]["finding"].clone();
    assert_eq!((number(&found["limit_bytes"]), number(&found["cached_bytes"])), (16 * MIB, 16 * MIB));
    assert_eq!((&found["evicted_bytes"], found["steps"].as_array().unwrap().len() > 1), (&Value::Null, true));
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
fn files_larger_than_the_limit_are_refused() {
    let place = directory();
    let run = keepup(place.path(), &["disk", "cache", "--file", "8 MiB", "--max", "4 MiB"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert!(!place.path().join("keepup-data").exists() || entries(&place.path().join("keepup-data")) == 0);
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}
