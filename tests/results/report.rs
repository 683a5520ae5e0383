//! Reports: one self-contained file for every result, and clear errors for anything else.
use std::fs;
use std::path::{Path, PathBuf};

use keepup_testkit::Program;

use crate::common::{directory, keepup};

const LARGEST: usize = 1_500_000;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples")
}

/// A result directory with a sample and these events.
fn result(here: &Path, sample: &str, events: &str) -> PathBuf {
    let directory = here.join("result");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(".keepup-result"), "x\n").unwrap();
    fs::copy(samples().join(sample), directory.join("result.json")).unwrap();
    fs::write(directory.join("events.jsonl"), events).unwrap();
    directory
}

/// An event log with samples of a trial, ten per second.
fn log(samples: u64) -> String {
    let line = |n: u64| {
        let (bytes, t_ms) = (n * 8_000_000, n * 100);
        format!(
            "{{\"event\":\"sample\",\"t_unix_ns\":1,\"t_ms\":{t_ms},\"values\":{{\
             \"received_bytes\":{bytes}.0,\"written_bytes\":{bytes}.0,\
             \"stall_ms\":2.5,\"core_0_busy_percent\":31.5}}}}\n"
        )
    };
    (0..samples).map(line).collect()
}

const END: &str = "{\"event\":\"finished\",\"t_unix_ns\":2,\"verdict\":\"FIT\"}\n";

fn page(here: &Path, result: &Path) -> String {
    let run = keepup(here, &["report", result.to_str().unwrap(), "--html", "page.html"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stderr.contains("page.html") && run.stdout.is_empty(), "{run:#?}");
    fs::read_to_string(here.join("page.html")).unwrap()
}

#[test]
fn every_kind_of_result_has_a_report_in_every_format() {
    let place = directory();
    let here = place.path();
    let mut seen = 0;
    for entry in fs::read_dir(samples()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap();
        let html = page(here, &path);
        assert!(html.len() < LARGEST && html.ends_with("</html>"), "{name}: {}", html.len());
        for (flag, begin) in [("--markdown", "# "), ("--badge", "<svg ")] {
            let run = keepup(here, &["report", name, flag]);
            assert_eq!(run.code(), 0, "{name}: {run:#?}");
            assert!(run.stdout.starts_with(begin), "{name}: {run:#?}");
        }
        let run = keepup(here, &["report", name]);
        let has_verdict = run.stdout.lines().any(|line| line.starts_with("[ "));
        assert!(run.code() == 0 && has_verdict, "{name}: {run:#?}");
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn every_report_of_a_result_has_the_same_verdict() {
    let place = directory();
    let here = place.path();
    let directory = result(here, "qualify-v2.json", &(log(50) + END));
    let html = page(here, &directory);
    assert_eq!(html, page(here, &directory.join("result.json")), "a result.json stands for its directory");
    let summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(directory.join("result.json")).unwrap()).unwrap();
    let verdict = summary["verdict"].as_str().unwrap();
    assert!(html.contains(&format!(">{verdict}<")), "{verdict}");
    assert!(html.contains("Over time: rates"), "the samples are plotted");
    for flag in [&[][..], &["--full"], &["--markdown"], &["--badge"]] {
        let run = keepup(here, &[&["report", directory.to_str().unwrap()][..], flag].concat());
        assert!(run.stdout.contains(verdict), "{flag:?}: {run:#?}");
    }
    for limit in summary["limits"].as_array().unwrap() {
        let start: String =
            limit.as_str().unwrap().chars().take_while(|c| c.is_alphanumeric() || *c == ' ').collect();
        assert!(html.contains(&start), "{start}");
    }
}

#[test]
fn a_missing_or_damaged_event_log_is_reported_and_used_up_to_the_damage() {
    let place = directory();
    let here = place.path();
    let directory = result(here, "qualify-v2.json", &log(50));
    let events = directory.join("events.jsonl");
    assert!(page(here, &directory).contains("the event log is truncated"));
    let torn = log(50);
    fs::write(&events, &torn[..torn.len() - 9]).unwrap();
    let html = page(here, &directory);
    assert!(html.contains("the event log is truncated") && html.contains("Over time: rates"));
    fs::write(&events, log(50) + "{nonsense}\n" + &log(9)).unwrap();
    let html = page(here, &directory);
    assert!(html.contains("the event log is damaged") && html.contains("line 51"));
    fs::remove_file(&events).unwrap();
    let html = page(here, &directory);
    assert!(html.contains("the event log is missing") && !html.contains("Over time: rates"));
}

#[test]
fn the_report_of_a_long_log_stays_small() {
    let place = directory();
    let here = place.path();
    let short = page(here, &result(here, "qualify-v2.json", &(log(2000) + END))).len();
    fs::write(here.join("result/events.jsonl"), log(100_000) + END).unwrap();
    let long = page(here, &here.join("result")).len();
    assert!(long < LARGEST && long < short + short / 2, "{short} and {long}");
}

#[test]
fn a_report_of_something_else_is_a_usage_error() {
    let place = directory();
    let here = place.path();
    fs::create_dir(here.join("foreign")).unwrap();
    fs::write(here.join("foreign/result.json"), "{}").unwrap();
    for (path, words) in [("foreign", "keepup did not make it"), ("nowhere", "open the result nowhere")] {
        let run = keepup(here, &["report", path, "--html", "page.html"]);
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(run.stderr.contains(words), "{run:#?}");
        assert!(!here.join("page.html").exists());
    }
    let both = keepup(here, &["report", "x", "--markdown", "--badge"]);
    assert_eq!(both.code(), 2, "{both:#?}");
}

#[test]
fn hostile_names_are_escaped() {
    let place = directory();
    let here = place.path();
    let directory = result(here, "qualify-v2.json", &(log(20) + END));
    let summary = directory.join("result.json");
    let text = fs::read_to_string(&summary).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["profile"] = "</title><script>alert(1)</script>\u{1b}[2J".into();
    value["limits"] = serde_json::json!(["<img src=x onerror=alert(1)>"]);
    fs::write(&summary, value.to_string()).unwrap();
    let html = page(here, &directory);
    assert!(!html.contains("<script>alert") && !html.contains("<img"), "markup in a name is not escaped");
    for flag in [&[][..], &["--markdown"], &["--badge"]] {
        let run = keepup(here, &[&["report", directory.to_str().unwrap()][..], flag].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        assert!(!run.stdout.contains('\u{1b}'), "{flag:?}: {run:#?}");
        assert!(flag.is_empty() || !run.stdout.contains("<script"), "{flag:?}: {run:#?}");
    }
}

/// Runs a small disk test with these arguments before it. Returns its result directory.
fn named(here: &Path, flags: &[&str], variables: &str) -> PathBuf {
    let test = "disk sweep --sizes '64 KiB' --depths 1 --time 50ms --file '1 MiB' --volume . --out out";
    let quoted: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
    let script = format!("exec {variables} {} {} {test}", env!("CARGO_BIN_EXE_keepup"), quoted.join(" "));
    let run = Program::start("sh", &["-c", &script], here).wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let line = run.stderr.lines().find_map(|line| line.strip_prefix("result: "));
    here.join(line.unwrap_or_else(|| panic!("no result: {run:#?}")))
}

#[test]
fn a_result_its_page_its_badge_and_a_comparison_name_the_machine() {
    let place = directory();
    let here = place.path();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let plain = "env -u KEEPUP_LABEL -u KEEPUP_NO_HOST_NAME";
    let label = "env KEEPUP_LABEL='rack 4' KEEPUP_NO_HOST_NAME=1";
    let mut seen = Vec::new();
    for (flags, variables, name) in [
        (&["--label", "rack 3"][..], plain, Some(format!("rack 3 ({host})"))),
        (&["--label", "rack 3", "--no-host-name"], plain, Some("rack 3".into())),
        (&[], plain, Some(host.clone())),
        (&[], label, Some("rack 4".into())),
        (&["--label", "rack 3"], label, Some("rack 3".into())),
        (&["--no-host-name"], plain, None),
    ] {
        let result = named(here, flags, variables);
        let path = result.to_str().unwrap().to_owned();
        let summary: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(result.join("result.json")).unwrap()).unwrap();
        let environment = &summary["environment"];
        assert_eq!(environment["label"].is_string(), name.is_some() && name.as_ref() != Some(&host));
        assert_eq!(environment["host"].is_string(), name.as_ref().is_some_and(|name| name.contains(&host)));
        let shown = keepup(here, &["report", &path]);
        let page = shown.stdout.replace("\n  ", " ");
        let on = name.clone().unwrap_or_else(|| "this machine".to_owned());
        assert!(page.contains(&format!(" on {on}, ")), "{name:?}: {page}");
        let badge = keepup(here, &["report", &path, "--badge"]).stdout;
        assert_eq!(badge.contains(" on "), name.is_some(), "{name:?}: {badge}");
        seen.push((path, name));
    }
    let (first, second) = (format!("old={}", seen[1].0), format!("new={}", seen[3].0));
    let compared = keepup(here, &["compare", &first, &second, "--json"]);
    let systems = serde_json::from_str::<serde_json::Value>(&compared.stdout).unwrap()["systems"].clone();
    assert_eq!(
        (&systems[0]["machines"][0], &systems[1]["machines"][0]),
        (&"rack 3".into(), &"rack 4".into())
    );
    let page = keepup(here, &["compare", &first, &second]).stdout;
    assert!(page.contains("rack 3") && page.contains("rack 4"), "{page}");
}
