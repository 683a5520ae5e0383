//! CPU cost of both ends of a network test, and the settings of the path.

use keepup_results::{NetEnd, NetInterface, NetRun, NetSummary};

use super::NAME_CHARACTERS_MAX;
use crate::format::{fixed, shorten};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

pub(super) fn blocks(summary: &NetSummary, names: &[&str]) -> Vec<Block> {
    let Some(run) = summary.runs.last() else { return Vec::new() };
    let table = Block::new("CPU of both ends, last run", vec![Item::Table(table(run))]);
    let mut facts: Vec<Fact> = Vec::new();
    for name in names {
        let last = summary.runs.iter().rev().find(|run| run.name == *name);
        facts.extend(last.and_then(path).map(|path| Fact::new(shorten(name, NAME_CHARACTERS_MAX), path)));
    }
    let interfaces = run.ends.iter().flat_map(|end| end.interfaces.iter().map(move |one| (end, one)));
    facts.extend(interfaces.map(|(end, one)| Fact::new(end.name.as_str(), interface(one))));
    [table, Block::new("Path settings, last runs", vec![Item::Facts(facts)])].into()
}

fn table(run: &NetRun) -> Table {
    let gb = run.received_bytes() as f64 / 1e9;
    let row = |end: &NetEnd| -> Vec<Cell> {
        let per_gb = |seconds: Option<f64>| seconds.filter(|_| gb > 0.0).map(|seconds| seconds / gb);
        let cores = f64::from(end.cores.unwrap_or(0));
        let share = |seconds: Option<f64>, of: f64| {
            seconds.filter(|_| of > 0.0 && end.seconds > 0.0).map(|s| s * 100.0 / (end.seconds * of))
        };
        vec![
            shorten(&end.name, NAME_CHARACTERS_MAX).into(),
            end.cores.map_or_else(|| "-".to_owned(), |cores| cores.to_string()).into(),
            fixed(per_gb(Some(end.cpu_seconds)), 3).into(),
            fixed(share(Some(end.cpu_seconds), 1.0), 0).into(),
            fixed(share(end.machine_cpu_seconds, cores), 0).into(),
            fixed(share(end.softirq_seconds, cores), 0).into(),
            fixed(end.steal_seconds, 2).into(),
        ]
    };
    let columns = vec![
        left("end"),
        right("cores"),
        right("keepup, s/GB"),
        right("keepup, % of a core"),
        right("all cores, %"),
        right("softirq, %"),
        right("steal, s"),
    ];
    Table { columns, rows: run.ends.iter().map(row).collect() }
}

/// Properties of the path.
fn path(run: &NetRun) -> Option<String> {
    let flow = run.flows.first()?;
    let mut words = Vec::new();
    if let Some(sender) = &flow.sender {
        words.extend(sender.path_mtu_bytes.map(|mtu| format!("MTU {mtu}")));
        words.push(format!("segments of {} B", sender.segment_bytes));
        words.extend(sender.congestion.clone());
        words.push(format!("rtt {} us at the end", sender.rtt_us));
        words.push(format!("send buffer {} B", sender.send_buffer_bytes));
    }
    words.extend(flow.receive_buffer_bytes.map(|size| format!("receive buffer {size} B")));
    (!words.is_empty()).then(|| words.join(", "))
}

/// Name, MTU, speed and offloads of an interface.
fn interface(interface: &NetInterface) -> String {
    let mut words = vec![interface.name.clone()];
    words.extend(interface.mtu_bytes.map(|bytes| format!("MTU {bytes}")));
    words.extend(interface.speed_mbit.map(|speed| format!("{speed} Mbit/s")));
    let NetInterface { tso, gso, gro, lro, receive_checksum, .. } = interface;
    for (name, is_on) in
        [("tso", tso), ("gso", gso), ("gro", gro), ("lro", lro), ("rx-checksum", receive_checksum)]
    {
        words.extend(is_on.map(|is_on| format!("{name} {}", if is_on { "on" } else { "off" })));
    }
    words.join(", ")
}
