//! Which commands a host of a fleet runs, and what they write to.
//!
//! Invariant: every flag of a command that measures is in one of the lists, so a new flag is refused until
//! somebody has decided whether it names something that is written.
use std::path::PathBuf;
use std::process::Command;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, parser::ValueSource};
use keepup_error::Cause;
use keepup_fleet::command::Program;
use keepup_plan::LoadSpec;
use keepup_registers::{RegisterError, Target, TargetProfile};

use crate::Cli;
use crate::output::{LOG_VARIABLE, hint_of_flags};

/// Flags that name no path, or one that is only read; as in the code, with underscores.
const PLAIN: &str = "\
    access baseline block bytes cached cap_gap characters check chunk compressible congestion \
    connections copies cpu cpus delays depth depths device digest direct direction directory discard \
    drain drain_to dsync duplicate endurance engine event events fifo file files fill first flows format \
    frames_per_second full generic identity intake_cpus intake_threads keep_files kind log map max \
    max_rate max_records max_write message method mode no_delay no_verify offset outstanding passes \
    pause per_second placement pool probe protocol quick ramp rate raw read read_back read_delays \
    read_token_file readers reads_only receive receive_buffer reduce reduce_threads reference repeats \
    request round search seeks segment send send_buffer servers shared size sizes soak source source_cpus \
    source_token_file space span speed streams target time time_unit to_null together token_file traces \
    trials udp unflushed unit until_steady waits width window writer_cpus writers zero_copy";
/// Flags that a host refuses: the agent sets them, they change a device or open a port, or they are for the
/// controller of a fleet.
const REFUSED: &str = "\
    out json dry_run bind write read_to_clear http http_name fleet recorders each help";
/// Flags for which a command without `--volume` does not write to the default directory.
const INSTEAD_OF_VOLUMES: &[&str] = &["assign", "group", "raw", "target", "to_null"];

/// keepup as the program of a host's commands.
pub(super) struct Keepup {
    /// Path of this executable.
    pub(super) program: PathBuf,
}

impl Program for Keepup {
    fn paths_written(&self, arguments: &[String]) -> Result<Vec<PathBuf>, String> {
        paths_written(arguments)
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_remove(LOG_VARIABLE);
        command
    }
}

/// All paths that a command writes to, see [`Program::paths_written`].
fn paths_written(arguments: &[String]) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: clap::Error| {
        Cause::new(error.to_string()).with_hint(hint_of_flags(&error).unwrap_or_default()).to_text()
    };
    let parser = Cli::command();
    let words = std::iter::once("keepup").chain(arguments.iter().map(String::as_str));
    let matches = parser.clone().try_get_matches_from(words).map_err(wrong)?;
    let cli = Cli::from_arg_matches(&matches).map_err(wrong)?;
    if !cli.verb.keeps_a_result() {
        return Err("it is not a command that measures".to_owned());
    }
    let (mut parser, mut matches, mut verb) = (&parser, &matches, String::new());
    let mut paths = Vec::new();
    loop {
        for argument in parser.get_arguments().chain(Cli::command().get_arguments()) {
            let id = argument.get_id().as_str();
            if matches.try_contains_id(id).is_ok()
                && matches.value_source(id) == Some(ValueSource::CommandLine)
            {
                paths.extend(paths_of(&verb, id, &values(matches, id)?)?);
            }
        }
        let Some((name, inner)) = matches.subcommand() else { break };
        let found = parser.find_subcommand(name).ok_or("it is not a command")?;
        if verb.is_empty() {
            name.clone_into(&mut verb);
        }
        (parser, matches) = (found, inner);
    }
    let has = |id: &str| {
        let is_known = matches.try_contains_id(id).is_ok();
        is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let has_volumes = parser.get_arguments().any(|argument| argument.get_id() == "volume");
    if has_volumes && !has("volume") && !INSTEAD_OF_VOLUMES.iter().any(|id| has(id)) {
        let why = Cause::new("it would write to ./keepup-data");
        return Err(why.with_hint("set volume to a directory of the host").to_text());
    }
    if verb == "register" {
        let profile = values(matches, "profile")?;
        check_registers(&values(matches, "target")?.concat(), profile.first().map(String::as_str))?;
    }
    Ok(paths)
}

fn values(matches: &ArgMatches, id: &str) -> Result<Vec<String>, String> {
    let raw = matches.get_raw(id).into_iter().flatten();
    let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
    raw.map(|value| text(value).ok_or_else(|| format!("--{id} is no text"))).collect()
}

/// Paths written because of the flag `id` of `verb`.
fn paths_of(verb: &str, id: &str, values: &[String]) -> Result<Vec<PathBuf>, String> {
    let flag = id.replace('_', "-");
    let refused = |why: &str| Err(format!("a host does not accept --{flag}: {why}"));
    match id {
        "volume" | "files_in" | "state" => Ok(values.iter().map(PathBuf::from).collect()),
        "group" => Ok(values.iter().flat_map(|value| value.split(',')).map(PathBuf::from).collect()),
        "assign" => {
            let directory = |value: &String| value.split_once('=').map(|(_, directory)| directory.into());
            values.iter().map(directory).collect::<Option<_>>().ok_or_else(|| "not DEVICE=DIR".to_owned())
        }
        "loads" => {
            let specs: Vec<LoadSpec> = values
                .iter()
                .map(|value| value.parse())
                .collect::<Result<_, _>>()
                .map_err(|error: keepup_plan::LoadSpecError| error.to_string())?;
            Ok(specs.into_iter().filter_map(directory_of).collect())
        }
        "target" if verb == "register" && values.iter().any(|value| value.contains(',')) => {
            Err("a host does not accept settings of a VME window: they would be changed".to_owned())
        }
        "profile" => Ok(Vec::new()),
        _ if has_word(PLAIN, id) => Ok(Vec::new()),
        _ if has_word(REFUSED, id) => refused("it is allowed only in commands on the host itself"),
        _ => refused("it is not in the list of flags allowed on hosts"),
    }
}

/// Checks that a measurement of registers changes nothing on the host. Only a profile lists the registers
/// that change when read; the DMA engine of a profile is written.
fn check_registers(target: &str, profile: Option<&str>) -> Result<(), String> {
    let target: Target = target.parse().map_err(|error: RegisterError| Cause::of(&error).to_text())?;
    let Some(name) = profile else {
        return match target {
            Target::Ram | Target::IpbusSelf => Ok(()),
            _ => {
                let why = "a host does not read a device without a profile: a read may change it";
                let hint = "set profile; read-to-clear lists the registers that change";
                Err(Cause::new(why).with_hint(hint).to_text())
            }
        };
    };
    let profile = TargetProfile::find(name).map_err(|error| Cause::of(&error).to_text())?;
    match profile.dma {
        None => Ok(()),
        Some(_) => {
            Err("a host does not accept --profile with a DMA engine: it would write to the card".to_owned())
        }
    }
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|other| other == word)
}

/// Directory of a background load.
fn directory_of(load: LoadSpec) -> Option<PathBuf> {
    match load {
        LoadSpec::Disk { directory, .. } => Some(directory),
        LoadSpec::Net { .. } | LoadSpec::Memory { .. } | LoadSpec::Cpu { .. } => None,
    }
}

#[cfg(test)]
#[path = "host_command_tests.rs"]
mod tests;
