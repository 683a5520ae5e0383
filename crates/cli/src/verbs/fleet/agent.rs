//! `keepup fleet agent`: the program on each host.
use std::sync::Arc;

use anyhow::Context as _;
use keepup_fleet::agent_loop::{AgentEvent, AgentLoop, StopRequest};
use keepup_fleet::check::CheckWorker;
use keepup_fleet::directories::Directories;
use keepup_fleet::jobs::{self, Jobs};
use keepup_fleet::join_info::JoinInfo;
use keepup_fleet::link::AgentLink as _;
use keepup_fleet::link::zenoh::ZenohAgent;
use keepup_fleet::record::RecordWorker;
use keepup_fleet::set::SetWorker;
use keepup_fleet::trial::TrialWorker;
use keepup_measure::clock::SystemClock;
use keepup_recording::id::Id;

use crate::exit::Exit;
use crate::output::log;
use crate::signals::stop_flag;
use crate::token::random_hex;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Name of the host, for lists of processes
    #[arg(long)]
    name: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let JoinInfo { controller, host, token, shared, timing, volumes } =
        JoinInfo::read(&mut std::io::stdin().lock())?;
    let flag = stop_flag()?;
    let directories = Directories::open(&volumes)?;
    let check = CheckWorker::new(Arc::new(SystemClock), directories.clone(), &shared);
    let worker = Jobs::new(vec![
        (jobs::CHECK, Box::new(check)),
        (jobs::RECORD, Box::new(RecordWorker::new(Arc::new(SystemClock), host, directories.clone()))),
        (jobs::SET, Box::new(SetWorker::new(Arc::new(SystemClock), directories.clone()))),
        (jobs::TRIAL, Box::new(TrialWorker::new(Arc::new(SystemClock), directories, shared, random_hex))),
    ]);
    let random = Id::random().context("cannot read random bytes")?.to_string();
    let incarnation = u64::from_str_radix(&random[..16], 16).context("cannot read random bytes")?;
    let link = ZenohAgent::connect(controller, host, incarnation, &token)?;
    let closed = StopRequest::new(Arc::clone(&flag));
    closed.watch(std::io::stdin(), link.waker()).context("cannot start a thread")?;
    let mut follow = AgentLoop::new(host, incarnation, timing, link, worker, SystemClock);
    let why = follow.run(&closed, &mut |event| match event {
        AgentEvent::Disconnected => log("the connection to the controller is closed"),
        AgentEvent::Refused(why) => log(&format!("warning: dropped a message: {why}")),
    });
    log(&format!("agent {} ends: {why}", args.name));
    Ok(Exit::Done)
}
