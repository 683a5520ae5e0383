//! `info`, `verify`, `export` and `recover` of a recording set: the recordings of a run on several hosts.
//!
//! Invariant: a recording that is not here is named in the output, and the exit code is that of an incomplete
//! recording.
use std::path::PathBuf;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_measure::clock::{Clock as _, SystemClock};
use keepup_recording::recover::RecoverOptions;
use keepup_recording::set::{
    LocalDirectories, OpenSet, Presence, describe_set, recover_set, set_path, verify_set,
};
use keepup_recording::verify::VerifyOptions;
use keepup_report::listing;

use crate::exit::{Exit, usage};
use crate::output::{json, log, log_cause, print_listing};
use crate::progress::ReadingLine;

/// Directories of one recording, or a recording set.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordingOrSet {
    /// Directory of the recording, one is enough unless a volume was moved; or a recording set
    ///
    /// A set is a file keepup-set.json, or its directory. The command then works on all recordings of the
    /// set that are on this machine.
    #[arg(required = true, value_name = "RECORDING")]
    pub(crate) directories: Vec<PathBuf>,
    /// For a set: directories of a host's recording on this machine, instead of those in the set
    ///
    /// For example where they are mounted or were copied to. Can be given once for each host.
    #[arg(long, value_name = "HOST=DIR[,DIR...]", value_parser = host_directories)]
    at: Vec<(String, Vec<PathBuf>)>,
}

impl RecordingOrSet {
    /// Opens the set, if this is one.
    pub(crate) fn set(&self) -> anyhow::Result<Option<OpenSet>> {
        let Some(path) = self.directories.iter().find_map(|path| set_path(path)) else {
            return match self.at.first() {
                None => Ok(None),
                Some((host, _)) => {
                    Err(usage(format!("cannot use --at {host}=...: this is not a recording set")))
                }
            };
        };
        if self.directories.len() > 1 {
            let why = Cause::new(format!("cannot use {} with other recordings", path.display()));
            return Err(usage(why.with_hint("--at HOST=DIR gives the directories of a host")));
        }
        let mut at = LocalDirectories::new();
        for (host, directories) in &self.at {
            if at.insert(host.clone(), directories.clone()).is_some() {
                return Err(usage(format!("cannot use --at {host}=... twice")));
            }
        }
        let open = OpenSet::open(&path, &at)?;
        let hosts: Vec<&str> = open.members.iter().map(|member| member.entry.host.as_str()).collect();
        if let Some(host) = at.keys().find(|host| !hosts.contains(&host.as_str())) {
            let why = Cause::new(format!("cannot use --at {host}=...: the set has no such host"));
            return Err(usage(why.with_hint(format!("its hosts: {}", hosts.join(", ")))));
        }
        Ok(Some(open))
    }
}

/// Parses `HOST=DIR[,DIR...]`.
fn host_directories(text: &str) -> Result<(String, Vec<PathBuf>), String> {
    let form = || "it is not HOST=DIR[,DIR...]".to_owned();
    let (host, directories) = text.split_once('=').ok_or_else(form)?;
    let directories: Vec<PathBuf> = directories.split(',').map(PathBuf::from).collect();
    let is_empty = host.is_empty() || directories.iter().any(|directory| directory.as_os_str().is_empty());
    if is_empty { Err(form()) } else { Ok((host.to_owned(), directories)) }
}

/// Describes a set.
pub(crate) fn info(open: &OpenSet, with_segments: bool, as_json: bool) -> anyhow::Result<Exit> {
    let info = describe_set(open, with_segments);
    match as_json {
        true => json(&serde_json::to_value(&info).context("cannot encode the description")?),
        false => print_listing(|style| listing::set_info(&info, style)),
    }
    let mut described = info.recordings.iter().filter_map(|found| found.info.as_ref());
    let is_readable = described.all(|info| info.damaged_lines.is_empty()) && info.account.faults.is_empty();
    let is_here = info.recordings.iter().all(|found| found.member.problem.is_none());
    Ok(if is_readable && is_here { Exit::Done } else { Exit::Failed })
}

/// Verifies a set.
pub(crate) fn verify(open: &OpenSet, options: VerifyOptions, as_json: bool) -> anyhow::Result<Exit> {
    let line = ReadingLine::new();
    let report = verify_set(open, options, &|| SystemClock.now_ns(), &|progress| line.show(progress));
    drop(line);
    match as_json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => print_listing(|style| listing::set_verification(open, &report, style)),
    }
    Ok(if report.whole { Exit::Done } else { Exit::Failed })
}

/// Recovers the recordings of a set.
pub(crate) fn recover(open: &OpenSet, options: RecoverOptions, as_json: bool) -> anyhow::Result<Exit> {
    let line = ReadingLine::new();
    let report = recover_set(open, options, &mut |progress| line.show(progress));
    drop(line);
    match as_json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => print_listing(|style| listing::set_recovery(&report, style)),
    }
    Ok(if report.complete { Exit::Done } else { Exit::Failed })
}

/// Warns of recordings that are not, or not completely, here; returns whether there are any.
pub(crate) fn warn_of_absent(open: &OpenSet) -> bool {
    for member in &open.members {
        let host = &member.entry.host;
        match &member.presence {
            Presence::Here(recording) => recording.missing().iter().for_each(|volume| {
                log(&format!("warning: host {host}: volume {} was not found", volume.display()));
            }),
            Presence::NotHere(why) => {
                log(&format!("warning: the recording of host {host} is not here: {why}"))
            }
            Presence::Unusable(cause) => {
                log_cause(&cause.clone().map(|what| format!("warning: host {host}: {what}")));
            }
            Presence::Absent => {}
        }
    }
    !open.incomplete_hosts().is_empty()
}
