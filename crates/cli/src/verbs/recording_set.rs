//! `info`, `verify`, `export` and `recover` of a recording set: the recordings of a run on several hosts.
//!
//! Invariant: a recording that is not here is named in the output, and the exit code is that of an incomplete
//! recording.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_measure::clock::{Clock as _, SystemClock};
use keepup_recording::recover::RecoverOptions;
pub(crate) use keepup_recording::set::verify_options as options;
use keepup_recording::set::{
    LocalDirectories, OpenSet, Presence, describe_set, recover_set, set_path, verify_set,
};
use keepup_report::listing;
#[cfg(feature = "fleet")]
use keepup_results::shell::quoted;
use keepup_sources::split_path;

#[cfg(feature = "fleet")]
use super::fleet::set::with_agents;
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
    /// For a set: let the agents of this fleet file read or recover the recordings, each on its host
    ///
    /// Starts the agents of the hosts of the set and ends them. Nothing has to be mounted. Not for `export`.
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "FILE", conflicts_with = "at")]
    fleet: Option<PathBuf>,
}

/// A recording set and who reads it.
pub(crate) enum FoundSet {
    /// Its recordings are read on this machine.
    Here(OpenSet),
    /// The agents of a fleet file read them.
    #[cfg(feature = "fleet")]
    Fleet(keepup_recording::set::RecordingSet, FleetPaths),
}

/// Paths of a set that the agents of a fleet read.
#[cfg(feature = "fleet")]
pub(crate) struct FleetPaths {
    /// The set, as given.
    set: PathBuf,
    /// The fleet file.
    file: PathBuf,
}

impl FoundSet {
    /// Command that recovers the set, if its recordings are on other hosts.
    fn recover_command(&self) -> Option<String> {
        match self {
            Self::Here(_) => None,
            #[cfg(feature = "fleet")]
            Self::Fleet(_, FleetPaths { set, file }) => {
                let [set, file] = [set, file].map(|path| quoted(&path.display().to_string()));
                Some(format!("keepup recover {set} --fleet {file}"))
            }
        }
    }
}

impl RecordingOrSet {
    /// Opens the set, if this is one.
    pub(crate) fn set(&self) -> anyhow::Result<Option<FoundSet>> {
        let Some(path) = self.directories.iter().find_map(|path| set_path(path)) else {
            #[cfg(feature = "fleet")]
            if self.fleet.is_some() {
                return Err(usage("cannot use --fleet: this is not a recording set"));
            }
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
        #[cfg(feature = "fleet")]
        if let Some(file) = &self.fleet {
            let set = keepup_recording::set::RecordingSet::read(&path)?;
            let given = self.directories.first().unwrap_or(&path).clone();
            return Ok(Some(FoundSet::Fleet(set, FleetPaths { set: given, file: file.clone() })));
        }
        self.open_here(&path).map(|open| Some(FoundSet::Here(open)))
    }

    /// Opens the set file `path` with local paths.
    fn open_here(&self, path: &Path) -> anyhow::Result<OpenSet> {
        let mut at = LocalDirectories::new();
        for (host, directories) in &self.at {
            if at.insert(host.clone(), directories.clone()).is_some() {
                return Err(usage(format!("cannot use --at {host}=... twice")));
            }
        }
        let open = OpenSet::open(path, &at)?;
        let hosts: Vec<&str> = open.members.iter().map(|member| member.entry.host.as_str()).collect();
        if let Some(host) = at.keys().find(|host| !hosts.contains(&host.as_str())) {
            let why = Cause::new(format!("cannot use --at {host}=...: the set has no such host"));
            return Err(usage(why.with_hint(format!("its hosts: {}", hosts.join(", ")))));
        }
        Ok(open)
    }
}

/// Parses `HOST=DIR[,DIR...]`; `,,` is a comma in a path.
fn host_directories(text: &str) -> Result<(String, Vec<PathBuf>), String> {
    let form = || "it is not HOST=DIR[,DIR...]; write a comma in a path as ,,".to_owned();
    let (host, mut rest) = text.split_once('=').ok_or_else(form)?;
    let mut directories = Vec::new();
    while !rest.is_empty() {
        let (path, more) = split_path(rest);
        directories.push(PathBuf::from(path));
        rest = more;
    }
    let is_empty = directories.is_empty()
        || host.is_empty()
        || directories.iter().any(|directory| directory.as_os_str().is_empty());
    if is_empty { Err(form()) } else { Ok((host.to_owned(), directories)) }
}

/// Describes a set.
pub(crate) fn info(set: &FoundSet, with_segments: bool, as_json: bool) -> anyhow::Result<Exit> {
    let info = match set {
        FoundSet::Here(open) => describe_set(open, with_segments),
        #[cfg(feature = "fleet")]
        FoundSet::Fleet(set, paths) => {
            match with_agents(&paths.file, set, |set| set.describe(with_segments))? {
                Some(info) => info,
                None => return Ok(Exit::Interrupted),
            }
        }
    };
    match as_json {
        true => json(&serde_json::to_value(&info).context("cannot encode the description")?),
        false => print_listing(|style| listing::set_info(&info, style)),
    }
    let mut described = info.recordings.iter().filter_map(|found| found.info.as_ref());
    let is_readable = described.all(|info| info.damaged_lines.is_empty()) && info.account.faults.is_empty();
    let is_here = info.recordings.iter().all(|found| found.member.problem.is_none());
    Ok(if is_readable && is_here { Exit::Done } else { Exit::Failed })
}

/// Verifies a set; without `threads`, each machine uses all its CPUs.
pub(crate) fn verify(set: &FoundSet, threads: Option<u16>, as_json: bool) -> anyhow::Result<Exit> {
    let recover = set.recover_command();
    let report = match set {
        FoundSet::Here(open) => {
            if !open.has_checksum {
                log(
                    "note: the set file has no checksum, so a change since it was written would not be found",
                );
            }
            let (line, now_ns) = (ReadingLine::new(), || SystemClock.now_ns());
            verify_set(open, options(threads), &now_ns, &|progress| line.show(progress))
        }
        #[cfg(feature = "fleet")]
        FoundSet::Fleet(set, paths) => match with_agents(&paths.file, set, |set| set.verify(threads))? {
            Some(report) => report,
            None => return Ok(Exit::Interrupted),
        },
    };
    match as_json {
        true => json(&serde_json::to_value(&report).context("cannot encode the report")?),
        false => print_listing(|style| listing::set_verification(&report, recover.as_deref(), style)),
    }
    Ok(if report.whole { Exit::Done } else { Exit::Failed })
}

/// Recovers the recordings of a set.
pub(crate) fn recover(set: &FoundSet, options: RecoverOptions, as_json: bool) -> anyhow::Result<Exit> {
    let report = match set {
        FoundSet::Here(open) => {
            let line = ReadingLine::new();
            recover_set(open, options, &mut |progress| line.show(progress))
        }
        #[cfg(feature = "fleet")]
        FoundSet::Fleet(set, paths) => {
            match with_agents(&paths.file, set, |set| set.recover(options.without_locks))? {
                Some(report) => report,
                None => return Ok(Exit::Interrupted),
            }
        }
    };
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
