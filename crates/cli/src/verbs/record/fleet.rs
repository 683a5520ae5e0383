//! Flags of `keepup record --fleet`.
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use keepup_recorder::{RecorderConfig, Target};
use keepup_results::live::RunSettings;

use super::Args;
use crate::exit::Exit;
use crate::verbs::fleet::record::{FleetRecord, run as record};

/// Flags of a recording on several hosts.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FleetArgs {
    /// Record on all recorders of this fleet file, as one run
    ///
    /// Volumes and addresses are those of the fleet file. Clients ask any recorder where their streams are
    /// recorded. The recording ends on Ctrl-C, at a limit (--stop-after), after `keepup fleet down FILE`, or
    /// when at least one stream has ended and no client has been connected for 5 s.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "listen", "from", "series", "volume", "to_null", "keep", "after_seal", "stay", "controlled",
            "qualified_by", "simplon", "expect", "return_timeout", "cpus", "intake_cpus",
            "writer_cpus", "engine",
        ],
    )]
    pub(super) fleet: Option<PathBuf>,
    /// With --fleet, directory for the set files of the runs [default: ./FLEET]
    #[arg(long, value_name = "DIR", requires = "fleet")]
    fleet_output: Option<PathBuf>,
    /// With --fleet, port of the recorders; those with the same address use the next ones
    #[arg(long, value_name = "PORT", default_value = "7611", requires = "fleet")]
    fleet_port: u16,
}

/// Records on the fleet of `file`.
pub(super) fn run(args: &Args, file: &Path) -> anyhow::Result<Exit> {
    let settings = RunSettings { name: args.name.clone(), ..args.run.settings()? };
    // Each recorder has the volumes of its host.
    let target = Target::Volumes(vec![PathBuf::from(".")]);
    let mut config = RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), target, String::new());
    config.segment_auto = true;
    if let Some(profile) = &args.profile {
        config = keepup_workload::detector::recorder_config(&keepup_plan::load(profile)?, &config);
    }
    args.recording.apply(&mut config);
    config.event_bytes_max = args.max_event.unwrap_or(config.event_bytes_max);
    config.connections_max = args.max_connections.unwrap_or(config.connections_max);
    config.slow_after = args.slow_after;
    config.peer_timeout = args.peer_timeout;
    record(FleetRecord {
        file,
        output: args.fleet.fleet_output.as_deref(),
        config: &config,
        settings,
        port: args.fleet.fleet_port,
        http: &args.http,
        json: args.json,
    })
}
