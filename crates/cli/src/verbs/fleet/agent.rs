//! `keepup fleet agent`: the program on each host.
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use keepup_fleet::agent_loop::{AgentEvent, AgentLoop, StopRequest};
use keepup_fleet::check::CheckWorker;
use keepup_fleet::claim::HostClaim;
use keepup_fleet::command::CommandWorker;
use keepup_fleet::directories::Directories;
use keepup_fleet::jobs::{self, Jobs};
use keepup_fleet::join_info::JoinInfo;
use keepup_fleet::link::zenoh::ZenohAgent;
use keepup_fleet::link::{AgentLink as _, Waker};
use keepup_fleet::record::RecordWorker;
use keepup_fleet::record::drain::DrainWorker;
use keepup_fleet::set::SetWorker;
use keepup_fleet::trial::TrialWorker;
use keepup_measure::clock::SystemClock;
use keepup_recording::id::Id;
use keepup_workload::leftover;

use super::host_command::Keepup;
use crate::exit::Exit;
use crate::output::log;
use crate::signals::stop_flag_of_agent;
use crate::token::random_hex;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Name of the host, for lists of processes
    #[arg(long)]
    name: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let info = JoinInfo::read(&mut std::io::stdin().lock())?;
    let JoinInfo { fleet, controller, host, token, shared, tls, join_time, timing, volumes } = info;
    let closed = StopRequest::new(stop_flag_of_agent()?);
    let wake = watch_input(&closed)?;
    let mut on_wait = || log("waiting until the agent of an earlier controller has ended");
    let is_closed = || closed.is_set();
    let claim = HostClaim::take(&fleet, &args.name, join_time, &SystemClock, &is_closed, &mut on_wait)?;
    let Some(_claim) = claim else {
        log(&format!("agent {} ends: it was asked to end", args.name));
        return Ok(Exit::Done);
    };
    let directories = Directories::open(&volumes)?;
    let left = volumes.iter().filter_map(|volume| leftover::warning(volume));
    left.for_each(|text| log(&format!("warning: {text}")));
    let check = CheckWorker::new(Arc::new(SystemClock), directories.clone(), &shared);
    let program = std::env::current_exe().context("cannot find the keepup executable to run commands")?;
    let command = CommandWorker::new(Box::new(Keepup { program }), directories.clone());
    let worker = Jobs::new(vec![
        (jobs::CHECK, Box::new(check)),
        (jobs::COMMAND, Box::new(command)),
        (jobs::DRAIN, Box::new(DrainWorker::new(Arc::new(SystemClock), directories.clone()))),
        (jobs::RECORD, Box::new(RecordWorker::new(Arc::new(SystemClock), host, directories.clone()))),
        (jobs::SET, Box::new(SetWorker::new(Arc::new(SystemClock), directories.clone()))),
        (jobs::TRIAL, Box::new(TrialWorker::new(Arc::new(SystemClock), directories, shared, random_hex))),
    ]);
    let random = Id::random().context("cannot read random bytes")?.to_string();
    let incarnation = u64::from_str_radix(&random[..16], 16).context("cannot read random bytes")?;
    let link = ZenohAgent::connect(controller, host, incarnation, &token, tls.as_ref())?;
    // Unset until now.
    let _ = wake.set(link.waker());
    let mut follow = AgentLoop::new(host, incarnation, timing, link, worker, SystemClock);
    let why = follow.run(&closed, &mut |event| match event {
        AgentEvent::Disconnected => log("the connection to the controller is closed"),
        AgentEvent::Refused(why) => log(&format!("warning: dropped a message: {why}")),
    });
    log(&format!("agent {} ends: {why}", args.name));
    Ok(Exit::Done)
}

/// Ends the agent when its standard input is closed, also while it waits or connects. The waker is that of
/// its link, which does not exist yet.
fn watch_input(closed: &StopRequest) -> anyhow::Result<Arc<OnceLock<Waker>>> {
    let slot: Arc<OnceLock<Waker>> = Arc::default();
    let later = Arc::clone(&slot);
    let waker = Waker::new(move || later.get().into_iter().for_each(Waker::wake));
    closed.watch(std::io::stdin(), waker).context("cannot start a thread")?;
    Ok(slot)
}
