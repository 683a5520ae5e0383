//! `keepup fleet trial`: a trial on all recorders of a fleet at once.
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use keepup_fleet::file::FleetFile;
use keepup_fleet::trial::{ReadBack, TrialEnd, TrialRate, TrialRequest, plans};

use super::conduct::{Detector, FleetTrials};
use super::events::Reporter;
use super::up::{Session, end};
use crate::args::{byte_rate, nonzero_duration, size};
use crate::exit::Exit;
use crate::output::{json, log, result};

#[derive(clap::Args)]
pub(super) struct Args {
    /// Fleet file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Built-in profile (see `keepup profile list`) or path of a profile file
    profile: String,
    /// Rate of all streams together [default: the profile's]
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Duration
    #[arg(long, value_parser = nonzero_duration, value_name = "TIME", default_value = "10s")]
    time: Duration,
    /// Number of streams, at least one per recorder [default: the profile's]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Payload size of every event [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    event: Option<u64>,
    /// Seal and checksum blocks, then drop them, to test without disks
    #[arg(long)]
    to_null: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let request = request(args)?;
    let asked = args.rate.unwrap_or_else(|| request.profile.required_bytes_per_second());
    let mut file = FleetFile::read(&args.file)?;
    file.timing = file.timing.of_trial();
    let plans = plans(&file, &request)?;
    let mut session = Session::open(&args.file, file.clone())?;
    let mut reporter = Reporter::new(&file);
    let mut trials = FleetTrials::new(&mut session, &mut reporter);
    let ended = trials.gather().and_then(|()| trials.trial(&plans, Some(asked)));
    let is_interrupted = trials.is_ending();
    end(&mut session, &mut reporter, "the trial is over");
    let TrialEnd { trial, missing, .. } = ended?;
    let others = missing.iter().filter(|missing| trial.hosts.iter().all(|host| host.host != missing.name));
    others.for_each(|missing| log(&format!("warning: {}: {}", missing.name, missing.why)));
    if args.json {
        json(&serde_json::to_value(&trial)?);
    } else {
        result(&trial.table());
    }
    Ok(match trial.is_whole() && missing.is_empty() {
        // Hosts that are ended early verify nothing.
        _ if is_interrupted => Exit::Interrupted,
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn request(args: &Args) -> anyhow::Result<TrialRequest> {
    let detector = Detector { profile: &args.profile, streams: args.streams, event_bytes: args.event };
    Ok(TrialRequest {
        profile: detector.load()?,
        rate: args.rate.map_or(TrialRate::Profile, TrialRate::Bytes),
        time: args.time,
        to_null: args.to_null,
        check: ReadBack::Whole,
        cut_off: false,
        without: BTreeSet::new(),
    })
}
