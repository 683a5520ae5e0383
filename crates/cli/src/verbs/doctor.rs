//! `keepup doctor`: checks of host settings.
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_qualify::doctor::{Needs, STALL, judge, notes};
use keepup_report::listing;
use keepup_results::{DOCTOR_SCHEMA_VERSION, DoctorCounts, DoctorSummary, rfc3339};
use keepup_workload::doctor::{Scope, gather};

use crate::args::nonzero_duration;
use crate::exit::{Exit, UsageError};
use crate::output::{command, json, print_listing};

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
    /// Fleet file: check all its hosts and the paths between them, see `keepup fleet`
    ///
    /// Starts agents, and sends test packets between the hosts.
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["volume", "interface", "peer"])]
    fleet: Option<PathBuf>,
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
    #[cfg(feature = "fleet")]
    if let Some(file) = &args.fleet {
        let profile = args.profile.as_deref().map(keepup_plan::load).transpose()?;
        let request = keepup_fleet::check::CheckRequest { profile, stall };
        return super::fleet::doctor::run(file, &request, args.json);
    }
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
        false => print_listing(|style| listing::doctor(&summary, style)),
    }
    Ok(if summary.counts.harmful > 0 { Exit::Failed } else { Exit::Done })
}
