//! `keepup doctor`: findings follow from the kernel's settings, and nothing is changed.
use std::path::Path;
use std::process::Command;

use keepup_testkit::root::{VethNamespace, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{directory, json, keepup};

/// Settings that its commands would change, except those that concurrent tests change.
const SETTINGS: [&str; 20] = [
    "proc/sys/net/core/rmem_max",
    "proc/sys/net/core/rmem_default",
    "proc/sys/net/core/wmem_max",
    "proc/sys/net/core/netdev_max_backlog",
    "proc/sys/net/core/netdev_budget",
    "proc/sys/net/core/netdev_budget_usecs",
    "proc/sys/net/ipv4/tcp_rmem",
    "proc/sys/net/ipv4/tcp_wmem",
    "proc/sys/net/ipv4/udp_mem",
    "proc/sys/kernel/io_uring_disabled",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/vm/swappiness",
    "proc/sys/vm/zone_reclaim_mode",
    "proc/sys/vm/nr_hugepages",
    "proc/sys/vm/dirty_bytes",
    "proc/sys/vm/dirty_background_bytes",
    "proc/sys/vm/dirty_background_ratio",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/class/net/lo/mtu",
    "sys/class/net/eth0/mtu",
];

/// Current values; `None` for a missing setting.
fn settings() -> Vec<Option<String>> {
    let read = |path| std::fs::read_to_string(Path::new("/").join(path)).ok();
    SETTINGS.into_iter().map(read).collect()
}

fn findings(result: &Value) -> &Vec<Value> {
    result["findings"].as_array().unwrap()
}

fn finding<'a>(result: &'a Value, setting: &str) -> &'a Value {
    let mut found = findings(result).iter().filter(|finding| finding["setting"] == setting);
    found.next().unwrap_or_else(|| panic!("no {setting} in {result:#}"))
}

/// Checks that the numbers of a result agree with each other and with the exit code.
fn consistent(run: &Run) -> Value {
    let result = json(run);
    let kinds = ["harmful", "worth_a_look", "not_judged", "fine"];
    for kind in kinds {
        let found = findings(&result).iter().filter(|finding| finding["severity"] == kind).count();
        assert_eq!(result["counts"][kind].as_u64().unwrap(), found as u64, "{kind}: {result:#}");
    }
    let order: Vec<_> = findings(&result)
        .iter()
        .map(|finding| kinds.iter().position(|kind| finding["severity"] == *kind).unwrap())
        .collect();
    assert!(order.is_sorted(), "{order:?}");
    for finding in findings(&result) {
        let fine = finding["severity"] == "fine";
        assert!(!fine || finding["command"].is_null(), "{finding:#}");
        assert_eq!(finding["severity"] == "not_judged", finding["value"].is_null(), "{finding:#}");
        assert!(!finding["source"].as_str().unwrap().is_empty(), "{finding:#}");
    }
    let harmful = result["counts"]["harmful"].as_u64().unwrap();
    assert_eq!(run.code(), i32::from(harmful > 0), "{run:#?}");
    result
}

#[test]
fn doctor_reports_findings_and_changes_nothing() {
    let directory = directory();
    let before = settings();
    let run = keepup(directory.path(), &["doctor", "--volume", ".", "--json"]);
    let result = consistent(&run);
    assert_eq!(settings(), before, "{SETTINGS:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it wrote something");
    assert_eq!(result["needs"]["profile"], Value::Null);
    assert!(result["notes"][0].as_str().unwrap().contains("no profile"), "{result:#}");
    assert_eq!(result["volumes"], serde_json::json!(["."]));
    let limit = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    assert_eq!(result["readings"]["settings"]["sockets"]["rmem_max"]["value"].to_string(), limit.trim());
}

#[test]
fn the_text_output_contains_the_same_findings() {
    let directory = directory();
    let arguments = ["doctor", "--volume", ".", "--json"];
    let result = consistent(&keepup(directory.path(), &arguments));
    let run = keepup(directory.path(), &arguments[..3]);
    let counts = &result["counts"];
    let summary = format!("{} harmful, {} worth a look", counts["harmful"], counts["worth_a_look"]);
    assert!(run.stdout.contains(&summary) && run.stdout.contains("nothing was changed"), "{run:#?}");
    for finding in findings(&result) {
        let Some(command) = finding["command"].as_str() else { continue };
        // Each command is one line that can be copied.
        assert!(run.stdout.lines().any(|line| line.ends_with(command)), "{command}: {run:#?}");
    }
}

#[test]
fn a_longer_stall_requires_a_larger_buffer() {
    let directory = directory();
    let wanted = |stall: &str| {
        let arguments = ["doctor", "--peer", "127.0.0.1", "--stall", stall, "--json"];
        let result = consistent(&keepup(directory.path(), &arguments));
        let command = finding(&result, "net.core.rmem_max")["command"].as_str().map(str::to_owned);
        command.and_then(|command| command.split_once('=')?.1.parse::<u64>().ok())
    };
    // No default allows 10 GB of locked memory.
    let long = wanted("10 s").unwrap();
    assert!(long >= 10_000_000_000 && wanted("1 ms").is_none_or(|short| short < long), "{long}");
}

#[test]
fn a_slow_detector_over_loopback_causes_few_warnings() {
    let directory = directory();
    let profile =
        "name = \"slow\"\nextends = \"csl\"\n[source]\nrate = \"10 Hz\"\n[run]\nduration = \"1 s\"\n";
    std::fs::write(directory.path().join("slow.toml"), profile).unwrap();
    let run = keepup(directory.path(), &["doctor", "./slow.toml", "--peer", "::1", "--json"]);
    let result = consistent(&run);
    let number_of = |kind: &str| result["counts"][kind].as_u64().unwrap();
    assert!(number_of("harmful") == 0 && number_of("worth_a_look") <= 1, "{result:#}");
    assert_eq!(result["interfaces"], serde_json::json!(["lo"]));
}

#[test]
fn missing_interfaces_and_volumes_are_usage_errors() {
    let directory = directory();
    for (arguments, said) in [
        (["--interface", "no-such0"], "no-such0"),
        (["--volume", "no/such/volume"], "no/such/volume"),
        (["--peer", "detector.example"], "detector.example"),
        (["--stall", "0 s"], "must be above 0"),
    ] {
        let run = keepup(directory.path(), &[&["doctor"], &arguments[..]].concat());
        assert_eq!(run.code(), 2, "{run:#?}");
        assert!(run.stderr.contains(said) && run.stdout.is_empty(), "{run:#?}");
        assert!(said == "must be above 0" || run.stderr.contains("hint: "), "{run:#?}");
    }
    let run = keepup(directory.path(), &["doctor", "csll"]);
    assert!(run.code() == 2 && run.stderr.contains("csl"), "{run:#?}");
}

/// Runs keepup inside a namespace.
fn inside(namespace: &VethNamespace, directory: &Path, arguments: &[&str]) -> Run {
    let mut all = vec!["netns", "exec", namespace.name(), env!("CARGO_BIN_EXE_keepup"), "doctor", "--json"];
    all.extend(arguments);
    Program::start("ip", &all, directory).wait()
}

#[test]
#[ignore = "system"]
fn a_lower_mtu_and_a_link_that_is_down_are_reported() {
    let test = "a_lower_mtu_and_a_link_that_is_down_are_reported";
    if !allowed(test) {
        return;
    }
    let name = format!("keepup-doctor-{}", std::process::id());
    let namespace = match VethNamespace::create(&name, "10.213.0.1/24") {
        Ok(namespace) => namespace,
        Err(why) => return skip(test, &why),
    };
    let directory = directory();
    let peer = ["--peer", "10.213.0.2"];
    let packets = |mtu: &str| {
        namespace.inside("ip", &["link", "set", "veth-a", "mtu", mtu]).unwrap();
        let result = consistent(&inside(&namespace, directory.path(), &peer));
        assert_eq!(result["interfaces"], serde_json::json!(["veth-a"]));
        let on_the_way = finding(&result, "MTU on the route to 10.213.0.2")["value"].clone();
        (finding(&result, "veth-a: MTU").clone(), on_the_way)
    };
    let (large, on_the_way) = packets("9000");
    assert_eq!((large["severity"].as_str(), large["value"].as_str()), (Some("fine"), Some("9000")));
    assert_eq!(on_the_way, "9000");
    let (small, on_the_way) = packets("1400");
    assert_eq!((small["severity"].as_str(), small["value"].as_str()), (Some("harmful"), Some("1400")));
    assert_eq!(small["command"], "ip link set dev veth-a mtu 9000");
    assert_eq!(on_the_way, "1400");
    // The MTU of the route may be lower than that of the interface.
    namespace.inside("ip", &["link", "set", "veth-a", "mtu", "9000"]).unwrap();
    namespace.inside("ip", &["route", "add", "10.213.0.2/32", "dev", "veth-a", "mtu", "1300"]).unwrap();
    let result = consistent(&inside(&namespace, directory.path(), &peer));
    let route = finding(&result, "MTU on the route to 10.213.0.2");
    assert_eq!((route["severity"].as_str(), route["value"].as_str()), (Some("worth_a_look"), Some("1300")));
    namespace.inside("ip", &["link", "set", "veth-a", "down"]).unwrap();
    let result = consistent(&inside(&namespace, directory.path(), &["--interface", "veth-a"]));
    assert_eq!(finding(&result, "veth-a: state")["severity"], "harmful");
    let run = inside(&namespace, directory.path(), &peer);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("10.213.0.2") && run.stderr.contains("hint: "), "{run:#?}");
}

#[test]
#[ignore = "system"]
fn the_printed_commands_fix_the_findings() {
    let test = "the_printed_commands_fix_the_findings";
    if !allowed(test) {
        return;
    }
    let name = format!("keepup-cure-{}", std::process::id());
    let namespace = match VethNamespace::create(&name, "10.214.0.1/24") {
        Ok(namespace) => namespace,
        Err(why) => return skip(test, &why),
    };
    let directory = directory();
    let arguments = ["--interface", "veth-a"];
    namespace.inside("ip", &["link", "set", "veth-a", "mtu", "1400"]).unwrap();
    let before = consistent(&inside(&namespace, directory.path(), &arguments));
    let setting = "veth-a: MTU";
    let command = finding(&before, setting)["command"].as_str().unwrap();
    assert_eq!(finding(&before, setting)["severity"], "harmful");
    namespace.inside("sh", &["-c", command]).unwrap();
    let after = consistent(&inside(&namespace, directory.path(), &arguments));
    assert_eq!(finding(&after, setting)["severity"], "fine");
}

#[test]
fn the_help_states_that_nothing_is_changed() {
    let help = Command::new(env!("CARGO_BIN_EXE_keepup")).args(["doctor", "--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).contains("changes and sends nothing"));
}
