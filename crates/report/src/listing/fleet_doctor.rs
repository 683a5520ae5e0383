//! Hosts and findings of a fleet, by `doctor --fleet`.

use keepup_results::{
    ClockFacts, DoctorCounts, DoctorSeverity, FleetDoctorSummary, FleetFinding, HostCheck, HostFacts,
    InterfaceFacts,
};

use super::doctor::facts;
use super::render;
use crate::Style;
use crate::format::bytes;
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Shown for what is not known.
const UNKNOWN: &str = "-";

/// Reports the hosts, every finding that needs attention, and the number of the others.
#[must_use]
pub fn fleet_doctor(summary: &FleetDoctorSummary, style: Style) -> String {
    let of = |severity| summary.findings.iter().filter(move |found| found.finding.severity == severity);
    let columns = vec![
        left("host"),
        left("role"),
        right("clock (ms)"),
        left("sync"),
        left("NIC"),
        right("MTU"),
        right("free"),
        right("memlock"),
    ];
    let table = Table { columns, rows: summary.hosts.iter().map(row).collect() };
    let notes = summary.notes.iter().cloned().map(Item::Text).collect();
    let mut blocks =
        vec![Block::new("", notes), Block::new(format!("fleet {}", summary.fleet), vec![Item::Table(table)])];
    for (severity, title) in
        [(DoctorSeverity::Harmful, "HARMFUL"), (DoctorSeverity::WorthALook, "WORTH A LOOK")]
    {
        blocks.extend(of(severity).map(|found| finding(title, found)));
    }
    let DoctorCounts { harmful, worth_a_look, not_judged, fine } = summary.counts;
    let counts = format!(
        "{harmful} harmful, {worth_a_look} worth a look, {not_judged} not judged, {fine} fine; \
         nothing was changed"
    );
    let unjudged = of(DoctorSeverity::NotJudged).map(|found| {
        let (hosts, finding) = (found.hosts.join(", "), &found.finding);
        Fact::new("not judged", format!("{hosts}: {}: {}", finding.setting, finding.why))
    });
    blocks.push(Block::new(counts, vec![Item::Facts(unjudged.collect())]));
    render(blocks, style)
}

fn finding(title: &str, found: &FleetFinding) -> Block {
    let label = if found.hosts.len() == 1 { "host" } else { "hosts" };
    let mut rows = vec![Fact::new(label, found.hosts.join(", "))];
    rows.extend(facts(&found.finding));
    Block::new(format!("{title}  {}", found.finding.setting), vec![Item::Facts(rows)])
}

fn row(host: &HostCheck) -> Vec<Cell> {
    let ms = |ns: f64| ns / 1e6;
    let clock = host.clock_offset_ns.zip(host.clock_error_ns).map_or_else(unknown, |(offset, error)| {
        format!("{:+.2} ±{:.2}", ms(offset as f64), ms(error as f64))
    });
    let Some(facts) = &host.facts else {
        let mut cells: Vec<Cell> = vec![host.host.as_str().into(), host.role.as_str().into()];
        cells.push(UNKNOWN.into());
        cells.push(Cell::toned("NOT CHECKED", Tone::Bad));
        cells.resize_with(8, || UNKNOWN.into());
        return cells;
    };
    vec![
        host.host.as_str().into(),
        host.role.as_str().into(),
        clock.into(),
        synchronised(&facts.clock),
        each(facts, nic).into(),
        each(facts, |interface| interface.mtu.map(|mtu| mtu.to_string())).into(),
        facts.volumes.iter().filter_map(|volume| volume.free_bytes).min().map_or_else(unknown, bytes).into(),
        memlock(facts).into(),
    ]
}

/// A value of each interface.
fn each(facts: &HostFacts, value: fn(&InterfaceFacts) -> Option<String>) -> String {
    let values: Vec<String> =
        facts.interfaces.iter().map(|interface| value(interface).unwrap_or_else(unknown)).collect();
    if values.is_empty() { unknown() } else { values.join(", ") }
}

/// Name and speed.
fn nic(interface: &InterfaceFacts) -> Option<String> {
    let speed = interface.speed_mbit.map(|mbit| format!(" {}G", mbit as f64 / 1e3));
    Some(format!("{}{}", interface.name, speed.unwrap_or_default()))
}

fn synchronised(clock: &ClockFacts) -> Cell {
    let programs = clock.programs.as_deref().unwrap_or_default().join(", ");
    match clock.is_synchronised {
        None => UNKNOWN.into(),
        Some(false) => Cell::toned("no", Tone::Doubtful),
        Some(true) if programs.is_empty() => "yes".into(),
        Some(true) => programs.into(),
    }
}

/// Limit of locked memory; a number is in bytes.
fn memlock(facts: &HostFacts) -> String {
    let text = facts.memlock.clone().unwrap_or_else(unknown);
    text.parse().map_or(text, bytes)
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}
