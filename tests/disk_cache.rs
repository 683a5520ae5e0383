//! `disk cache` finds a cache of known size, and says plainly when it found none.
use keepup_testkit::root::{SmallMemory, allowed, skip};
use serde_json::Value;

use crate::common::{directory, directory_alone, json, keepup};

const MIB: u64 = 1 << 20;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_cache_of_known_size_is_found() {
    let test = "a_cache_of_known_size_is_found";
    if !allowed(test) {
        return;
    }
    let place = directory_alone();
    let here = place.path();
    let memory = 256 * MIB;
    let group = match SmallMemory::create(&format!("keepup-cache-{}", std::process::id()), memory) {
        Ok(group) => group,
        Err(why) => return skip(test, &why),
    };
    // A program is charged for its memory from when it enters; the test is given the time to enter it.
    let command = format!(
        "echo $$ > {} && exec {} disk cache --file '16 MiB' --max '1 GiB' --json",
        group.entry().display(),
        env!("CARGO_BIN_EXE_keepup")
    );
    let measure = || {
        let run = keepup_testkit::Program::start("sh", &["-c", &command], here).wait();
        assert_eq!(run.code(), 0, "{run:#?}");
        json(&run)["runs"][0]["finding"].clone()
    };
    let is_right = |told: &Value| {
        let (cached, evicted) = (told["cached_bytes"].as_u64(), told["evicted_bytes"].as_u64());
        let (Some(cached), Some(evicted), Value::Null) = (cached, evicted, &told["unanswered"]) else {
            return false;
        };
        let is_exact = cached < evicted && evicted - cached <= 16 * MIB.max(evicted / 16 / MIB);
        is_exact && memory / 4 <= cached && evicted <= memory + 32 * MIB
    };
    // A disk whose speed changes meanwhile is mistaken for a cache, or a cache for a disk.
    let mut seen = Vec::new();
    let told = loop {
        let told = measure();
        if is_right(&told) {
            break told;
        }
        seen.push(told);
        assert!(seen.len() < 3, "{memory} bytes of memory: {seen:#?}");
    };
    let (cached, evicted) = (number(&told["cached_bytes"]), number(&told["evicted_bytes"]));
    for step in told["steps"].as_array().unwrap() {
        let share = step["cached_share"].as_f64().unwrap();
        let total = number(&step["total_bytes"]);
        assert!(total > cached || share >= 0.5 || step["resident_share"].as_f64() >= Some(0.5), "{step:#}");
        assert!(total < evicted || share < 0.5 || step["resident_share"].as_f64() < Some(0.5), "{step:#}");
    }
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}

#[test]
fn a_limit_that_comes_first_is_said_plainly() {
    let place = directory();
    let here = place.path();
    let arguments = ["disk", "cache", "--file", "4 MiB", "--max", "17 MiB"];
    let run = keepup(here, &arguments);
    assert_eq!(run.code(), 0, "{run:#?}");
    let answers = ["not reached: --max came first", "as fast as one from memory", "the page cache keeps"];
    assert!(answers.iter().any(|answer| run.stdout.contains(answer)), "{run:#?}");
    assert!(run.stdout.contains("of memory available"), "what the kernel says stands beside it: {run:#?}");
    let run = keepup(here, &[&arguments[..], &["--json"]].concat());
    let found = json(&run);
    assert_eq!(number(&found["runs"][0]["finding"]["limit_bytes"]), 16 * MIB);
    let run = keepup(here, &["disk", "cache", "--file", "8 MiB", "--max", "4 MiB"]);
    assert_eq!(run.code(), 2, "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("keepup-data")).unwrap().count(), 0);
}
