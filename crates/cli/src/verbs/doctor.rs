//! `keepup doctor`: which settings of this host would lose data, and what changes them.
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

use crate::args::some_time;
use crate::exit::{Exit, UsageError};
use crate::output::{command, json, result, width};

/// Say which settings of this host would lose data of a detector, why, and the command that changes them
///
/// Reads only: nothing is changed, nothing is written, nothing is sent. Exit code 1 when a setting is
/// harmful.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup doctor                                 for 1 GB/s of datagrams, through the fastest card
  keepup doctor jungfrau --volume /data/a --volume /data/b
  keepup doctor csl --interface eth2 --peer 10.1.1.7 --json

Commands last until the machine starts again; /etc/sysctl.d and the like make them stay.")]
pub(crate) struct Args {
    /// A built-in profile (see `keepup profile list`) or the path of a profile file
    /// [default: 1 GB/s of datagrams from one source]
    profile: Option<String>,
    /// Directory that will take data; once for each disk [default: disks are not judged]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// Interface that data comes through; once for each [default: that of the way to --peer, or the fastest]
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// Address of the detector: its route is looked up, nothing is sent
    #[arg(long, value_name = "ADDR", value_parser = address)]
    peer: Option<IpAddr>,
    /// Longest stall of the receiver that buffers must bridge, as in "100 ms"
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    stall: Option<Duration>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

fn address(text: &str) -> Result<IpAddr, UsageError> {
    let hint = "give its number, as in 10.1.1.7 or fd00::7; looking up a name would send something";
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
        readings: serde_json::to_value(&readings).context("cannot encode what was read")?,
    };
    match args.json {
        true => json(&serde_json::to_value(&summary).context("cannot encode the result")?),
        false => result(&text(&summary)),
    }
    Ok(if summary.counts.harmful > 0 { Exit::Failed } else { Exit::Done })
}

/// What the figures hang on.
fn notes(needs: &Needs, readings: &Readings, volumes: &[PathBuf]) -> Vec<String> {
    let rate = |rate| ByteRate::new(rate).map_or_else(|e| e.to_string(), |rate: ByteRate| rate.to_string());
    let profile = match &needs.profile {
        Some(name) => format!("judged for {name}"),
        None => "no profile given: judged for a stream".into(),
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
        true => notes
            .extend(readings.chosen.as_ref().map(|why| format!("interface {why}; --interface names others"))),
        false => notes.push("nothing comes through the network, so it is not judged".into()),
    }
    if readings.settings.volumes.is_empty() {
        notes.push("no disk is judged; --volume DIR names where data will go".into());
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
            lines.extend(told(finding));
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

/// A finding in full.
fn told(finding: &DoctorFinding) -> Vec<String> {
    let rows = [
        ("  is       ", finding.value.as_deref()),
        ("  wanted   ", finding.wanted.as_deref()),
        ("  why      ", Some(finding.why.as_str())),
        ("  source   ", Some(finding.source.as_str())),
    ];
    let mut lines: Vec<String> =
        rows.iter().filter_map(|(title, text)| text.map(|text| wrapped(title, text))).flatten().collect();
    // A command must stay one line, to be copied.
    lines.extend(finding.command.as_ref().map(|command| format!("  command  {command}")));
    lines
}

/// Text behind a title, broken between words, further lines set in as far as the title.
fn wrapped(title: &str, text: &str) -> Vec<String> {
    let room = width().saturating_sub(title.len()).max(20);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let indent = " ".repeat(title.len());
    let begin = |at: usize| if at == 0 { title } else { indent.as_str() };
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}", begin(at))).collect()
}
