//! `keepup fleet agent`: the program on each host.
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use keepup_fleet::directories::Directories;
use keepup_fleet::follow::{Closed, Follow, FollowEvent, Reports, Worker};
use keepup_fleet::host::Done;
use keepup_fleet::link::FollowLink as _;
use keepup_fleet::link::zenoh::ZenohFollow;
use keepup_fleet::message::Counters;
use keepup_fleet::placement::View;
use keepup_fleet::welcome::Welcome;
use keepup_measure::clock::SystemClock;
use keepup_recording::id::Id;

use crate::exit::Exit;
use crate::output::log;
use crate::signals::stop_flag;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Name of the host, for lists of processes
    #[arg(long)]
    name: String,
}

/// Refuses to take part in runs.
struct NoRuns;

impl Worker for NoRuns {
    fn prepare(&mut self, run: u64, _plan: &str, reports: &Reports) {
        let why = "this version of keepup cannot run anything on the hosts of a fleet".to_owned();
        reports.send(Done::Failed { run, why });
    }

    /// Never called: no run was prepared.
    fn start(&mut self, run: u64, _until: Duration, reports: &Reports) {
        self.prepare(run, "", reports);
    }

    /// The run may be ended before its refusal was sent.
    fn finish(&mut self, run: u64, reports: &Reports) {
        self.prepare(run, "", reports);
    }

    fn moved(&mut self, _view: &View) {}

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let Welcome { controller, host, token, timing, volumes } = Welcome::read(&mut std::io::stdin().lock())?;
    let flag = stop_flag()?;
    // No volume is used before a run; but a wrong one should show now.
    Directories::open(&volumes)?;
    let random = Id::random().context("cannot read random bytes")?.to_string();
    let incarnation = u64::from_str_radix(&random[..16], 16).context("cannot read random bytes")?;
    let link = ZenohFollow::connect(controller, host, incarnation, &token)?;
    let closed = Closed::new(Arc::clone(&flag));
    closed.watch(std::io::stdin(), link.waker()).context("cannot start a thread")?;
    let mut follow = Follow::new(host, incarnation, timing, link, NoRuns, SystemClock);
    let why = follow.run(&closed, &mut |event| match event {
        FollowEvent::Disconnected => log("the connection to the controller is closed"),
        FollowEvent::Refused(why) => log(&format!("warning: dropped a message: {why}")),
    });
    log(&format!("agent {} ends: {why}", args.name));
    Ok(Exit::Done)
}
