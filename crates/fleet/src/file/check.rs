//! Validation of a fleet file.
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Component, Path};
use std::time::Duration;

use keepup_error::Cause;
use keepup_peer::Endpoint;
use keepup_plan::units::Span;

use super::launcher::Template;
use super::{
    Base, FleetFile, Form, HostEntry, HostForm, JOIN_TIME, LauncherForm, PARALLEL, PROGRAM, TimingForm,
    about, names,
};
use crate::message::Role;
use crate::timing::Timing;

/// Limit on hosts.
const HOSTS_MAX: usize = 4_096;
/// Limits on the volumes of a host and their paths. All of them fit the first line for an agent.
const VOLUMES_MAX: usize = 64;
const VOLUME_BYTES_MAX: usize = 512;
/// Limit on agents that are started at a time.
const PARALLEL_MAX: usize = 1_024;
/// Default port of the controller.
const PORT: u16 = 7650;
/// Shortest deadline for the end of a part with drain hosts, ns: a still drain is given up before.
const FINISH_NS_OF_DRAINS: u64 = 60_000_000_000;
/// Shortest and longest interval of [`Timing`].
const INTERVAL_MIN: Duration = Duration::from_millis(20);
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);
/// Fewest heartbeats in a lease: two may be lost.
const HEARTBEATS_PER_LEASE: u64 = 3;

pub(super) fn checked(form: Form) -> Result<FleetFile, Cause> {
    names::check_name("the fleet's name", &form.name)?;
    if form.host.is_empty() {
        return Err(
            Cause::new("it has no hosts").with_hint("one [[host]] table for each, with name and role")
        );
    }
    if form.host.len() > HOSTS_MAX {
        return Err(Cause::new(format!("it has {} hosts, limit {HOSTS_MAX}", form.host.len())));
    }
    let launcher = &form.launcher;
    let program = launcher.program.as_deref().unwrap_or(PROGRAM);
    names::check_program(program)?;
    let template = template(launcher)?;
    let mut seen = BTreeSet::new();
    let mut hosts = Vec::with_capacity(form.host.len());
    for host in &form.host {
        hosts.push(checked_host(host, &template, program)?);
        if !seen.insert(&host.name) {
            return Err(Cause::new(format!("two hosts have the name {:?}", host.name)));
        }
    }
    if !hosts.iter().any(|host| host.role == Role::Recorder) {
        return Err(Cause::new("no host is a recorder").with_hint("role = \"recorder\""));
    }
    let join_time = launcher.join_time.map_or(Ok(JOIN_TIME), |span| interval("join_time", span))?;
    let parallel = launcher.parallel.unwrap_or(PARALLEL);
    if !(1..=PARALLEL_MAX).contains(&parallel) {
        return Err(Cause::new(format!("launcher: parallel is {parallel}, not 1 to {PARALLEL_MAX}")));
    }
    let (listen, timing) = (listen(&form.listen)?, checked_timing(&form.timing)?);
    if hosts.iter().any(|host| host.role == Role::Drain) && timing.finish_ns < FINISH_NS_OF_DRAINS {
        let why = "timing: finish is shorter than 60 s; a drain that stands still is given up after 30 s";
        return Err(Cause::new(why).with_hint("finish = \"60 s\""));
    }
    let (name, tls) = (form.name, form.tls.unwrap_or(true));
    Ok(FleetFile { name, listen, tls, timing, join_time, parallel, hosts })
}

/// Listening address. Agents connect to it, so it must be a specific address.
fn listen(text: &str) -> Result<SocketAddr, Cause> {
    let hint = "the management address of this machine, such as \"192.168.1.2:7650\"";
    let endpoint = Endpoint::with_default_port(text, PORT).map_err(|error| about("listen", &error))?;
    let address = endpoint.address();
    if address.ip().is_unspecified() || address.port() == 0 {
        let why = format!("listen: agents cannot connect to {address}");
        return Err(Cause::new(why).with_hint(hint));
    }
    Ok(address)
}

fn template(launcher: &LauncherForm) -> Result<Template, Cause> {
    match (launcher.preset, &launcher.command) {
        (Some(preset), None) => Ok(Template::of_preset(preset)),
        (None, Some(words)) => {
            Template::of_words(words).map_err(|why| why.map(|why| format!("launcher: {why}")))
        }
        _ => Err(Cause::new("launcher: it needs either a preset or a command")
            .with_hint("preset = \"ssh\", or command = \"ssh -p 2222 {host} {agent}\"")),
    }
}

fn checked_host(host: &HostForm, template: &Template, program: &str) -> Result<HostEntry, Cause> {
    let name = &host.name;
    names::check_name("the host's name", name)?;
    let address = host.address.as_deref().unwrap_or(name);
    names::check_address(name, address)?;
    if host.volumes.len() > VOLUMES_MAX {
        return Err(Cause::new(format!("host {name}: {} volumes, limit {VOLUMES_MAX}", host.volumes.len())));
    }
    for (at, volume) in host.volumes.iter().enumerate() {
        check_volume(name, volume)?;
        if host.volumes[..at].contains(volume) {
            return Err(Cause::new(format!("host {name}: the volume {} occurs twice", volume.display())));
        }
    }
    match host.role {
        Role::Recorder | Role::Spare if host.volumes.is_empty() => {
            let why = format!("host {name}: it records, but has no volumes");
            return Err(Cause::new(why).with_hint("volumes = [\"/data/disk0\"]"));
        }
        Role::Source if !host.volumes.is_empty() => {
            return Err(Cause::new(format!("host {name}: a source has no volumes")));
        }
        Role::Recorder | Role::Spare | Role::Source | Role::Drain => {}
    }
    let own = match &host.launcher {
        Some(words) => {
            Some(Template::of_words(words).map_err(|why| why.map(|why| format!("host {name}: {why}")))?)
        }
        None => None,
    };
    let agent = [program, "fleet", "agent", "--name", name].map(str::to_owned);
    let command = own.as_ref().unwrap_or(template).fill(address, &agent);
    let (name, role, volumes, data) = (name.clone(), host.role, host.volumes.clone(), host.data);
    Ok(HostEntry { name, role, volumes, data, command })
}

fn check_volume(host: &str, volume: &Path) -> Result<(), Cause> {
    let is_plain = volume.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if volume.is_absolute() && is_plain && volume.as_os_str().len() <= VOLUME_BYTES_MAX {
        return Ok(());
    }
    let why = format!("host {host}: the volume {:?} is not an absolute path", volume.display().to_string());
    Err(Cause::new(why).with_hint("a directory on that host, such as \"/data/disk0\", without \"..\""))
}

fn checked_timing(form: &TimingForm) -> Result<Timing, Cause> {
    let mut timing = match form.base {
        Base::Recording => Timing::recording(),
        Base::Trial => Timing::trial(),
    };
    for (key, value, field) in [
        ("heartbeat", form.heartbeat, &mut timing.heartbeat_ns),
        ("lease", form.lease, &mut timing.lease_ns),
        ("prepare", form.prepare, &mut timing.prepare_ns),
        ("start_delay", form.start_delay, &mut timing.start_delay_ns),
        ("finish", form.finish, &mut timing.finish_ns),
        ("orphan", form.orphan, &mut timing.orphan_ns),
    ] {
        if let Some(span) = value {
            let checked = interval(key, span).map_err(|why| why.map(|why| format!("timing: {why}")))?;
            *field = u64::try_from(checked.as_nanos()).unwrap_or(u64::MAX);
        }
    }
    if timing.lease_ns < HEARTBEATS_PER_LEASE * timing.heartbeat_ns {
        return Err(Cause::new("timing: the lease is shorter than three heartbeats")
            .with_hint("raise lease, or lower heartbeat: two heartbeats may be lost"));
    }
    if timing.orphan_ns < timing.lease_ns {
        return Err(Cause::new("timing: orphan is shorter than the lease").with_hint("raise orphan"));
    }
    Ok(timing)
}

fn interval(key: &str, Span(span): Span) -> Result<Duration, Cause> {
    match (INTERVAL_MIN..=INTERVAL_MAX).contains(&span) {
        true => Ok(span),
        false => Err(Cause::new(format!("{key} is {span:?}, not 20 ms to 24 h"))),
    }
}
