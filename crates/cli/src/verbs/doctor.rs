//! `keepup doctor`: checks of host settings.
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_plan::units::{ByteRate, Bytes, Span};
use keepup_qualify::doctor::{Needs, STALL, judge};
use keepup_results::{
    DOCTOR_SCHEMA_VERSION, DoctorCounts, DoctorFinding, DoctorSeverity, DoctorSummary, rfc3339,
};
use keepup_workload::doctor::{Readings, Scope, gather};
use keepup_workload::preflight::common_disks;

use crate::args::nonzero_duration;
use crate::exit::{Exit, UsageError};
use crate::output::{command, json, result, width};

/// Find host settings that would lose data, with the reason and the command to fix each
///
/// The command only reads settings. It changes and sends nothing. Exit code 1 if a setting is harmful.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup doctor                                 for 1 GB/s of datagrams through the fastest card
  keepup doctor jungfrau --volume /data/a --volume /data/b
  keepup doctor csl --interface eth2 --peer 10.1.1.7 --json

The printed commands last until the next boot. Use /etc/sysctl.d or similar to make them permanent.")]
pub(crate) struct Args {
    /// Built-in profile or path of a profile file [default: 1 GB/s of datagrams]
    profile: Option<String>,
    /// Directory on the disk to check; repeatable [default: none]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// Network interface; repeatable [default: route to --peer, or the fastest]
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// Address of the detector, to look up its route; nothing is sent
    #[arg(long, value_name = "ADDR", value_parser = address)]
    peer: Option<IpAddr>,
    /// Longest stall of the receiver that buffers must bridge, such as "100 ms"
    #[arg(long, value_name = "TIME", value_parser = nonzero_duration)]
    stall: Option<Duration>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

fn address(text: &str) -> Result<IpAddr, UsageError> {
    let hint = "use a numeric address such as 10.1.1.7 or fd00::7, because name resolution sends packets";
    let why = || Cause::new(format!("{text:?} is not an IP address")).with_hint(hint);
    text.parse().map_err(|_| UsageError::new(why()))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stall = args.stall.unwrap_or(STALL);
    let needs = match &args.profile {
        Some(profile) => Needs::of(&keepup_plan::load(profile)?, stall),
        None => Needs::of_no_one(stall),
    };
    let scope = Scope { volumes: args.volume.clone(), interfaces: args.interface.clone(), peer: args.peer };
    let readings = gather(&scope, Path::new("/"))?;
    let findings = judge(&readings, &needs);
    let summary = DoctorSummary {
        schema_version: DOCTOR_SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created: rfc3339(SystemClock.unix_ns()),
        command: command(),
        needs: needs.summary(),
        interfaces: readings.interfaces.keys().cloned().collect(),
        volumes: args.volume.iter().map(|volume| volume.display().to_string()).collect(),
        counts: DoctorCounts::of(&findings),
        findings,
        notes: notes(&needs, &readings, &args.volume),
        readings: serde_json::to_value(&readings).context("cannot encode the readings")?,
    };
    match args.json {
        true => json(&serde_json::to_value(&summary).context("cannot encode the result")?),
        false => result(&text(&summary)),
    }
    Ok(if summary.counts.harmful > 0 { Exit::Failed } else { Exit::Done })
}

/// Assumptions of the findings.
fn notes(needs: &Needs, readings: &Readings, volumes: &[PathBuf]) -> Vec<String> {
    let rate = |rate| ByteRate::new(rate).map_or_else(|e| e.to_string(), |rate: ByteRate| rate.to_string());
    let profile = match &needs.profile {
        Some(name) => format!("judged for {name}"),
        None => "no profile given: judged for a single stream".into(),
    };
    let burst = match needs.peak > needs.rate {
        true => format!(", {} in bursts", rate(needs.peak)),
        false => String::new(),
    };
    let plural = if needs.connections == 1 { "" } else { "s" };
    let mut notes = vec![format!(
        "{profile}: {}{burst}, by {}, {} connection{plural}, events of {}, stalls of up to {}",
        rate(needs.rate),
        needs.transport_name(),
        needs.connections,
        Bytes(needs.event_bytes as u64),
        Span(needs.stall)
    )];
    match needs.is_networked() {
        true => notes.extend(
            readings.chosen.as_ref().map(|why| format!("interface {why}; --interface selects others")),
        ),
        false => notes.push("no data arrives over the network, so it is not checked".into()),
    }
    if readings.settings.volumes.is_empty() {
        notes.push("no disk is checked; --volume DIR selects one".into());
    }
    notes.extend(common_disks(volumes));
    notes
}

fn text(summary: &DoctorSummary) -> String {
    let mut lines: Vec<String> = summary.notes.iter().flat_map(|note| wrapped("", note)).collect();
    let of = |severity| summary.findings.iter().filter(move |finding| finding.severity == severity);
    for (severity, title) in
        [(DoctorSeverity::Harmful, "HARMFUL"), (DoctorSeverity::WorthALook, "WORTH A LOOK")]
    {
        for finding in of(severity) {
            lines.push(String::new());
            lines.push(format!("{title}  {}", finding.setting));
            lines.extend(rows(finding));
        }
    }
    let DoctorCounts { harmful, worth_a_look, not_judged, fine } = summary.counts;
    lines.push(String::new());
    lines.push(format!(
        "{harmful} harmful, {worth_a_look} worth a look, {not_judged} not judged, {fine} fine; \
         nothing was changed"
    ));
    lines.extend(
        of(DoctorSeverity::NotJudged)
            .flat_map(|finding| wrapped("not judged  ", &format!("{}: {}", finding.setting, finding.why))),
    );
    let fine = |finding: &DoctorFinding| {
        format!("{} {}", finding.setting, finding.value.as_deref().unwrap_or_default())
    };
    let fine: Vec<String> = of(DoctorSeverity::Fine).map(fine).collect();
    if !fine.is_empty() {
        lines.extend(wrapped("fine        ", &fine.join("; ")));
    }
    lines.join("\n")
}

/// Formats a finding with all its rows.
fn rows(finding: &DoctorFinding) -> Vec<String> {
    let rows = [
        ("  is       ", finding.value.as_deref()),
        ("  wanted   ", finding.wanted.as_deref()),
        ("  why      ", Some(finding.why.as_str())),
        ("  source   ", Some(finding.source.as_str())),
    ];
    let mut lines: Vec<String> =
        rows.iter().filter_map(|(title, text)| text.map(|text| wrapped(title, text))).flatten().collect();
    // Not wrapped, so that the command can be copied.
    lines.extend(finding.command.as_ref().map(|command| format!("  command  {command}")));
    lines
}

/// Wraps text after a title, with a hanging indent.
fn wrapped(title: &str, text: &str) -> Vec<String> {
    let columns = width().saturating_sub(title.len()).max(20);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let indent = " ".repeat(title.len());
    let prefix = |at: usize| if at == 0 { title } else { indent.as_str() };
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}", prefix(at))).collect()
}
