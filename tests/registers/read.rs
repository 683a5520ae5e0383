//! `keepup register read | compare | replay-note`: results are consistent.
use std::path::Path;

use serde_json::Value;

use crate::common::{directory, json, keepup, squeezed};
use crate::registers::ipbus::serve;

pub(crate) fn read(here: &Path, verb: &str, target: &str, more: &[&str]) -> Value {
    let all = [&["register", verb, target, "--json", "--trials", "5"], more].concat();
    let run = keepup(here, &all);
    assert_eq!(run.code(), 0, "{run:#?}");
    json(&run)
}

pub(crate) fn median(point: &Value) -> f64 {
    let mut all: Vec<f64> =
        point["seconds"].as_array().unwrap().iter().map(|seconds| seconds.as_f64().unwrap()).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Checks every result: depths ascend, all trials are present, and every method has a fit.
fn consistent(found: &Value) {
    let run = &found["run"];
    for method in run["methods"].as_array().unwrap() {
        let points = method["points"].as_array().unwrap();
        let depths: Vec<u64> = points.iter().map(|point| point["depth"].as_u64().unwrap()).collect();
        assert!(depths.is_sorted() && !depths.is_empty(), "{method:#}");
        for point in points {
            assert_eq!(point["seconds"].as_array().unwrap().len(), 5, "{method:#}");
            assert_eq!(point["cpu_seconds"].as_array().unwrap().len(), 5, "{method:#}");
        }
        // A hundred times as many registers take longer, with every method.
        let (first, last) = (median(&points[0]), median(&points[points.len() - 1]));
        assert!(depths.len() < 2 || last > first, "{method:#}");
    }
    let count = run["methods"].as_array().unwrap().len();
    assert_eq!(found["fits"].as_array().unwrap().len(), count);
    assert_eq!(found["break_evens"].as_array().unwrap().len(), count * (count - 1) / 2);
    assert_eq!((&found["failure"], &found["interrupted"]), (&Value::Null, &Value::Bool(false)));
}

#[test]
#[ignore = "system"]
fn memory_is_read_by_all_methods() {
    let place = directory();
    let found = read(place.path(), "read", "ram", &["--out", "kept"]);
    consistent(&found);
    let depths: Vec<&Value> =
        found["run"]["methods"][0]["points"].as_array().unwrap().iter().map(|p| &p["depth"]).collect();
    assert_eq!(depths, [1, 0x100, 0x10000, 0x80000]);
    // One call per register never pays off.
    let pair = found["break_evens"].as_array().unwrap().iter().find(|pair| pair["way"] == "mmap").unwrap();
    assert_eq!(pair["simple"], "pread", "{pair:#}");
    // A busy machine may make one register look slower, never 256 of them.
    let elapsed = &pair["elapsed"];
    let is_early = elapsed["verdict"] == "from" && elapsed["upper"].as_f64().unwrap() < 256.0;
    assert!(elapsed["verdict"] == "always" || is_early, "{pair:#}");
    let kept = std::fs::read_dir(place.path().join("kept")).unwrap().next().unwrap().unwrap().path();
    let result: Value = serde_json::from_slice(&std::fs::read(kept.join("result.json")).unwrap()).unwrap();
    assert_eq!(result, found);
    let narrow = read(place.path(), "compare", "ram:", &["--width", "8", "--fifo", "--method", "mmap,pread"]);
    consistent(&narrow);
    assert_eq!((&narrow["run"]["width_bits"], &narrow["run"]["is_fifo"]), (&8.into(), &true.into()));
}

#[test]
#[ignore = "system"]
fn a_board_is_read_by_packets_and_by_blocks() {
    let place = directory();
    let (_board, address) = serve(place.path(), &[]);
    let target = format!("ipbus://{address}");
    let found = read(place.path(), "compare", &target, &["--time", "10 s"]);
    consistent(&found);
    let at = |method: usize, point: usize| median(&found["run"]["methods"][method]["points"][point]);
    let names: Vec<&Value> =
        found["run"]["methods"].as_array().unwrap().iter().map(|method| &method["name"]).collect();
    assert_eq!(names, ["single", "packed", "block"]);
    // One packet per register takes far longer than one packet for 256 registers.
    assert!(at(0, 4) > 3.0 * at(1, 4), "{:#}", found["fits"]);
    let same = |offset: &str, value: &str| {
        let identity = format!("{offset}={value}");
        let all = ["register", "read", &target, "--depth", "1", "--trials", "5", "--identity", &identity];
        keepup(place.path(), &all)
    };
    // IPbus addresses count words; the offset is in bytes.
    assert_eq!(same("0x200000000", "0x6b656570").code(), 0);
    let other = same("0x200000000", "1");
    assert_ne!(other.code(), 0);
    assert!(other.stderr.contains("reads 0x6b656570 instead of 0x1"), "{other:#?}");
}

#[test]
fn unreadable_targets_are_refused_with_hints() {
    let place = directory();
    for (target, more, words) in [
        ("pci:ffff:ff:1f.7/bar0", &[][..], "lspci -D"),
        ("pci-config:ffff:ff:1f.7", &[], "lspci -D"),
        ("xdma:nowhere", &[], "ls /dev/xdma*"),
        ("vme", &[], "hint: ram |"),
        ("ram:", &["--depth", "0x100000"], "reach beyond its 2097152 bytes"),
        ("ram:", &["--offset", "3"], "not a multiple of 4 bytes"),
        ("ram:", &["--method", "dma"], "--method mmap, pread, transfer"),
        ("ipbus://127.0.0.1:9", &[], "127.0.0.1:9"),
    ] {
        let run = keepup(place.path(), &[&["register", "read", target], more].concat());
        assert_ne!(run.code(), 0, "{run:#?}");
        assert!(run.stderr.contains(words), "{run:#?}");
    }
}

#[test]
fn the_figures_of_the_note_are_reproduced() {
    let place = directory();
    let run = keepup(place.path(), &["register", "replay-note"]);
    assert!(run.code() == 0 && squeezed(&run.stdout).contains("from 966 words"), "{run:#?}");
}
