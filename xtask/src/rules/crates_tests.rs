//! Rules on the graph of crates, on small made-up graphs.

use serde_json::{Value, json};

use super::check;

/// Metadata of a workspace: edges as (crate, what it uses, kind); `+` marks a package from outside.
fn metadata(edges: &[(&str, &str, Option<&str>)]) -> Value {
    let name = |short: &str| short.strip_prefix('+').map_or(format!("keepup-{short}"), str::to_owned);
    let mut shorts: Vec<&str> = edges.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    shorts.sort_unstable();
    shorts.dedup();
    let of = |short: &str| edges.iter().filter(|edge| edge.0 == short).copied().collect::<Vec<_>>();
    let package = |short: &&str| {
        let dependencies: Vec<Value> =
            of(short).iter().map(|(_, to, kind)| json!({"name": name(to), "kind": kind})).collect();
        json!({"id": name(short), "name": name(short), "dependencies": dependencies})
    };
    let node = |short: &&str| {
        let deps: Vec<Value> = of(short)
            .iter()
            .map(|(_, to, kind)| json!({"pkg": name(to), "dep_kinds": [{"kind": kind}]}))
            .collect();
        json!({"id": name(short), "deps": deps})
    };
    let members: Vec<String> = shorts.iter().filter(|s| !s.starts_with('+')).map(|s| name(s)).collect();
    json!({
        "packages": shorts.iter().map(package).collect::<Vec<_>>(),
        "workspace_members": members,
        "resolve": {"nodes": shorts.iter().map(node).collect::<Vec<_>>()},
    })
}

fn broken(edges: &[(&str, &str, Option<&str>)]) -> Vec<String> {
    check(&metadata(edges)).into_iter().map(|found| format!("{} {}", found.file, found.rule)).collect()
}

#[test]
fn a_crate_uses_those_above_it() {
    let none: [String; 0] = [];
    assert_eq!(
        broken(&[("cli", "plan", None), ("recorder", "stream", None), ("report", "results", None)]),
        none
    );
    assert_eq!(broken(&[("stream", "recorder", None)]), ["crates/stream/Cargo.toml crate-order"]);
    assert_eq!(broken(&[("stream", "recorder", Some("dev"))]), ["crates/stream/Cargo.toml crate-order"]);
    assert_eq!(broken(&[("gadget", "plan", None)]), ["crates/gadget/Cargo.toml crate-order"]);
}

#[test]
fn nothing_uses_the_command_line() {
    assert_eq!(broken(&[("testkit", "cli", None)]), ["testkit/Cargo.toml cli-is-the-top"]);
}

#[test]
fn testkit_is_for_tests() {
    let none: [String; 0] = [];
    assert_eq!(broken(&[("plan", "testkit", Some("dev")), ("testkit", "recorder", None)]), none);
    assert_eq!(broken(&[("plan", "testkit", None)]), ["crates/plan/Cargo.toml testkit-is-for-tests"]);
}

#[test]
fn readers_see_no_crate_that_measures() {
    assert_eq!(broken(&[("report", "recorder", None)]), ["crates/report/Cargo.toml readers-see-results"]);
    assert_eq!(broken(&[("live", "report", None)]), ["crates/live/Cargo.toml readers-see-results"]);
}

#[test]
fn tokio_is_reached_through_its_rooms_only() {
    let none: [String; 0] = [];
    assert_eq!(broken(&[("cli", "live", None), ("live", "+axum", None), ("+axum", "+tokio", None)]), none);
    assert_eq!(broken(&[("stream", "+tokio", Some("dev"))]), none);
    let found = broken(&[("cli", "stream", None), ("stream", "+zeromq", None), ("+zeromq", "+tokio", None)]);
    assert_eq!(found, ["crates/cli/Cargo.toml tokio", "crates/stream/Cargo.toml tokio"]);
}
