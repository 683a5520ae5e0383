//! `keepup reproduce`: campaign of a published paper on this machine.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::Context as _;
use keepup_campaign::parse;
use keepup_reproduce::{
    FleetRequest, NamedVolume, PaperRequest, Reproduction, RequestOption, campaign_text,
    check_result_of_other, names, reproduction, users_of,
};
use keepup_results::StoredResult;

use super::campaign::{RunOptions, start};
use crate::args::volumes_or_default;
use crate::exit::{Exit, UsageError};
use crate::output::{LOG_VARIABLE, log, result};

/// Repeat the measurements of a published paper on this machine, with the paper's tables
///
/// Runs a campaign with the paper's measurements. The report contains the paper's tables and figures with
/// this machine next to the published systems, the findings, and claims that do not follow from the paper's
/// own figures. The campaign directory holds all results and a report.html.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup reproduce esrf-2007 --volume /data/a --dry-run
  keepup reproduce cdf-csl --volume /data/a --volume /data/b
  keepup reproduce romanis --volume /data/a --volume /data/b --raid /data/striped
  keepup reproduce esrf-2007 --volume raid0=/data/r0 --volume raid5=/data/r5 --host 192.168.1.2
  keepup reproduce romanis --fleet hall.toml      how many hosts; needs the cargo feature `fleet`
  keepup reproduce tweakers-pci --scale 0.1
  keepup reproduce cern-vme --target pci:0000:04:00.0/bar0 --with crate-7.json
  keepup reproduce esrf-2007 --print > mine.toml      the campaign file, for changes")]
pub(crate) struct Args {
    /// esrf-2007, cdf-csl, cern-vme, tweakers-pci or romanis
    #[arg(value_name = "PAPER", value_parser = known)]
    paper: String,
    /// Directory on a disk to measure, and its name in tables; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "[NAME=]DIR", value_parser = named_volume)]
    volume: Vec<NamedVolume>,
    /// Directory on a RAID 0 of the same disks, for romanis
    #[arg(long, value_name = "DIR")]
    raid: Option<PathBuf>,
    /// Target of `keepup register read`, for cern-vme; repeatable
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
    /// Host with `keepup net serve` for the network tests [default: loopback]
    ///
    /// For esrf-2007 and cdf-csl. The token is in the variable KEEPUP_NET_TOKEN.
    #[arg(long, value_name = "HOST[:PORT]")]
    host: Option<String>,
    /// Include the tests of cdf-csl that take days: burn-in, and all copies of the bit-error test
    #[arg(long)]
    long: bool,
    /// Result of the same reproduction on another machine, added to the tables; repeatable
    ///
    /// For cern-vme also a result of `keepup register`.
    #[arg(long, value_name = "RESULT")]
    with: Vec<PathBuf>,
    /// Share of the paper's amount of data
    #[arg(long, default_value_t = 1.0, value_parser = scale, value_name = "SHARE")]
    scale: f64,
    /// Runs per cell [default: depends on the paper]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// Print the campaign file, then exit
    #[arg(long)]
    print: bool,
    /// List the cells with data written, space and time, then exit
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Store the campaign in a new subdirectory of DIR
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    // The last one: its heading holds for what follows.
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: super::fleet::reproduce::FleetArgs,
}

fn known(text: &str) -> Result<String, String> {
    match reproduction(text) {
        Some(paper) => Ok(paper.name().to_owned()),
        None => Err(format!("unknown paper, expected one of {}", names().join(", "))),
    }
}

fn scale(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("{text:?} is not a share above 0 and at most 1"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let paper = reproduction(&args.paper)
        .ok_or_else(|| UsageError::new(format!("unknown paper {:?}", args.paper)))?;
    check_options(paper, args)?;
    for path in &args.with {
        check_result_of_other(paper, &StoredResult::open(path)?)?;
    }
    let fleet = fleet(args)?;
    let volumes = match paper.uses(RequestOption::Volume) && fleet.is_none() {
        true => volumes(&args.volume)?,
        false => Vec::new(),
    };
    let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    // `canonicalize` fails for a directory that does not exist yet.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let request = PaperRequest {
        // Absolute, so that the campaign can be resumed from another directory.
        volumes,
        scale: args.scale,
        repetitions: args.repeats,
        raid: args.raid.as_ref().map(real),
        targets: args.target.clone(),
        simulated: paper.uses(RequestOption::Target).then(simulated).unwrap_or_default(),
        host: args.host.clone(),
        is_long: args.long,
        cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        fleet,
        with: args.with.iter().map(real).collect(),
        id: format!("{:x}", unix_ms()),
        // The scale changes the length of traces, so each scale has its own.
        traces: absolute(&args.out).join(format!("{}-traces-{}", args.paper, args.scale)),
    };
    let text = campaign_text(paper, &request)?;
    if args.print {
        result(&text);
        return Ok(Exit::Done);
    }
    make_traces(paper, &request)?;
    let campaign = parse(&text, &args.paper, &names())?;
    let options = RunOptions { out: &args.out, dry_run: args.dry_run, json: args.json, fleet: None };
    start(&campaign, &text, &options)
}

/// The fleet to measure, if one is given.
#[cfg(feature = "fleet")]
fn fleet(args: &Args) -> anyhow::Result<Option<FleetRequest>> {
    args.fleet.request()
}

/// A build without the feature measures no fleet.
#[cfg(not(feature = "fleet"))]
fn fleet(_: &Args) -> anyhow::Result<Option<FleetRequest>> {
    Ok(None)
}

fn simulated() -> Vec<(String, Option<String>)> {
    let devices = keepup_registers::simulated_devices(Path::new("/")).into_iter();
    devices.map(|device| (device.target, device.profile)).collect()
}

fn unix_ms() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_millis())
}

/// Refuses options that the paper does not use.
fn check_options(paper: &dyn Reproduction, args: &Args) -> anyhow::Result<()> {
    let given = [
        (RequestOption::Volume, "--volume", !args.volume.is_empty()),
        (RequestOption::Raid, "--raid", args.raid.is_some()),
        (RequestOption::Target, "--target", !args.target.is_empty()),
        (RequestOption::Host, "--host", args.host.is_some()),
        (RequestOption::Long, "--long", args.long),
        #[cfg(feature = "fleet")]
        (RequestOption::Fleet, "--fleet", args.fleet.is_given()),
    ];
    match given.into_iter().find(|(option, _, is_given)| *is_given && !paper.uses(*option)) {
        None => Ok(()),
        Some((option, flag, _)) => {
            let users = users_of(option).join(", ");
            let what = format!("cannot use {flag} with {}: it is an option of {users}", paper.name());
            Err(UsageError::new(what).into())
        }
    }
}

/// Parses "NAME=DIR" or "DIR". A directory that contains "=" needs a name or a "/" before it.
fn named_volume(text: &str) -> Result<NamedVolume, String> {
    match text.split_once('=').filter(|(name, _)| !name.contains('/')) {
        Some((name, path)) if name.is_empty() || path.is_empty() => Err(format!("{text:?} is not NAME=DIR")),
        Some((name, _)) if name.contains(',') => Err(format!("the name {name:?} contains a comma")),
        Some((name, path)) => Ok(NamedVolume { name: name.to_owned(), path: path.into() }),
        None => Ok(NamedVolume { name: text.to_owned(), path: text.into() }),
    }
}

/// The given volumes with absolute paths, or the default one.
fn volumes(given: &[NamedVolume]) -> anyhow::Result<Vec<NamedVolume>> {
    let paths: Vec<PathBuf> = given.iter().map(|volume| volume.path.clone()).collect();
    let paths = volumes_or_default(&paths)?;
    let mut volumes: Vec<NamedVolume> = Vec::new();
    for (n, path) in paths.iter().enumerate() {
        // Absolute, so that the campaign can be resumed from another directory.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let named = given.get(n).filter(|volume| volume.path.as_os_str() != volume.name.as_str());
        let name = named.map_or_else(|| path.display().to_string(), |volume| volume.name.clone());
        if volumes.iter().any(|known| known.name == name) {
            return Err(UsageError::new(format!("cannot use two volumes named {name}")).into());
        }
        volumes.push(NamedVolume { name, path });
    }
    Ok(volumes)
}

/// Generates missing traces with `keepup trace make`.
fn make_traces(paper: &dyn Reproduction, request: &PaperRequest) -> anyhow::Result<()> {
    let traces = paper.traces(request.scale);
    for wanted in traces {
        let directory = request.traces.join(wanted.folder);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let path = directory.join(format!("{}.trace", wanted.personality));
        if !path.exists() {
            log(&format!("generating trace {}", path.display()));
            make_trace(wanted.personality, &wanted.time, &path)?;
        }
    }
    Ok(())
}

fn make_trace(personality: &str, time: &str, path: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find the keepup executable")?;
    let mut command = Command::new(program);
    command.args(["trace", "make", personality]).arg(path).args(["--time", time]).env_remove(LOG_VARIABLE);
    let ended = command.stdin(Stdio::null()).output().context("cannot run keepup trace make")?;
    match ended.status.success() {
        true => Ok(()),
        false => anyhow::bail!(
            "cannot generate the {personality} trace: {}",
            String::from_utf8_lossy(&ended.stderr).trim_start_matches("error: ").trim_end()
        ),
    }
}
