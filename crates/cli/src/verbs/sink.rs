//! `keepup sink`: the far end of a drain, a recorder that may be slow on purpose.
use std::path::PathBuf;

use keepup_peer::Endpoint;
use keepup_recorder::RecorderConfig;
use keepup_results::live::RunSettings;

use super::record::{Manner, record, target};
use crate::args::{Recording, byte_rate};
use crate::exit::Exit;

/// Take what a drain sends: write it as a recording, or drop it
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup sink --to /tape                            writes a recording below /tape
  keepup sink --to-null --rate '20 MB/s'            takes no more than 20 MB/s, and keeps nothing")]
pub(crate) struct Args {
    /// Address to listen on; loopback unless told otherwise
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7612")]
    listen: Endpoint,
    /// Directory to write to; once for each disk [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    to: Vec<PathBuf>,
    /// Count and drop
    #[arg(long)]
    to_null: bool,
    /// Take no more than this, as in "20 MB/s"
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Name of the recording's directory [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Go on when the last drain has ended, until stopped
    #[arg(long)]
    stay: bool,
    /// Print the account as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recording: Recording,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let target = target(args.to_null, &args.to)?;
    let mut config = RecorderConfig::new(args.listen.clone(), target, String::new());
    args.recording.apply(&mut config);
    (config.rate_max, config.stay, config.is_copy) = (args.rate, args.stay, true);
    record(
        config,
        RunSettings { name: args.name.clone(), ..RunSettings::default() },
        Manner { json: args.json, ..Manner::default() },
    )
}
