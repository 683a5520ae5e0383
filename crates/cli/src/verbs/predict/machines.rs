//! Machines by name or file, and predictions for all current machines.
use std::path::Path;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_model::{Machine, ModelError, machine, machine_names, predict};
use keepup_plan::Profile;

use super::{OneArgs, ask, exit, print, summary};
use crate::exit::{Exit, usage};

/// Name prefix of machines that are on the market.
const TODAY: &str = "today/";

/// Loads a machine from the catalogue or from a file.
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

/// Predicts every current machine for a profile, sorted by rate.
pub(super) fn all(profile: &Profile, args: &OneArgs) -> anyhow::Result<Exit> {
    if !args.with.is_empty() || args.sweep.is_some() || args.path.is_some() {
        let why = Cause::new("cannot predict all machines: --with, --sweep and --path apply to one machine");
        return Err(usage(why.with_hint("--on today/camera-pc")));
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
    found.machine.title = "current machines".into();
    found.sweep = Some("machine".into());
    found.points = points;
    // Assumptions differ per machine and are printed with --on.
    found.assumptions.clear();
    found.limits.retain(|limit| !first.notes.contains(limit));
    print(&found, &args.output)?;
    Ok(exit(&found))
}
