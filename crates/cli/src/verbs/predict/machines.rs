//! Machines by name or file, and all of today's for one profile.
use std::path::Path;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_model::{Machine, ModelError, machine, machine_names, predict};
use keepup_plan::Profile;

use super::{OneArgs, ask, exit, summary, tell};
use crate::exit::{Exit, usage};

/// Machines that can be bought.
const TODAY: &str = "today/";

/// One of the catalogue, or a file.
pub(super) fn load(name: &str) -> anyhow::Result<Machine> {
    let is_file = name.ends_with(".toml") || name.starts_with('.') || name.starts_with('/');
    match machine(name) {
        Err(_) if is_file || Path::new(name).is_file() => {
            let text =
                std::fs::read_to_string(name).with_context(|| format!("cannot read the machine {name}"))?;
            Ok(Machine::parse(&text, name)?)
        }
        found => Ok(found?),
    }
}

/// Every machine of today for a profile, the fastest last.
pub(super) fn all(profile: &Profile, args: &OneArgs) -> anyhow::Result<Exit> {
    if !args.with.is_empty() || args.sweep.is_some() || args.path.is_some() {
        let why = Cause::new("cannot predict every machine: --with, --sweep and --path are for one");
        return Err(usage(why.with_hint("name it: --on today/camera-pc")));
    }
    let machines: Result<Vec<Machine>, ModelError> =
        machine_names().filter(|name| name.starts_with(TODAY)).map(machine).collect();
    let mut machines = machines?;
    machines.iter_mut().for_each(|machine| machine.hosts = args.hosts.unwrap_or(machine.hosts));
    let mut points = Vec::new();
    for machine in &machines {
        points.push(predict(machine, &ask(profile, machine, args), &machine.name)?);
    }
    points.sort_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
    let Some(first) = machines.first() else { return Ok(Exit::Failed) };
    let mut found = summary(profile, first, &ask(profile, first, args), args)?;
    found.machine.name = "today".into();
    found.machine.title = "machines of today".into();
    found.sweep = Some("machine".into());
    found.points = points;
    // Each has numbers of its own: they are told with --on.
    found.assumptions.clear();
    found.limits.retain(|limit| !first.notes.contains(limit));
    tell(&found, &args.how)?;
    Ok(exit(&found))
}
