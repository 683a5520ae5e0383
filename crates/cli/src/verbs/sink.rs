//! `keepup sink`: destination of a drain.
use std::path::PathBuf;

use keepup_peer::Endpoint;
use keepup_recorder::RecorderConfig;
use keepup_results::live::RunSettings;

use super::record::{RecordOptions, record, target};
use crate::args::{RecorderArgs, byte_rate};
use crate::exit::Exit;

/// Receive a drained recording and store or drop it
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup sink --to /tape                            writes a recording below /tape
  keepup sink --to-null --rate '20 MB/s'            drops the data, at most 20 MB/s")]
pub(crate) struct Args {
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7612")]
    listen: Endpoint,
    /// Directory to write to; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    to: Vec<PathBuf>,
    /// Count events and drop them
    #[arg(long)]
    to_null: bool,
    /// Limit on the received rate, such as "20 MB/s"
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Directory name of the recording [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Continue after the last drain has ended, until stopped
    #[arg(long)]
    stay: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recording: RecorderArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let target = target(args.to_null, &args.to)?;
    let mut config = RecorderConfig::new(args.listen.clone(), target, String::new());
    config.segment_auto = true;
    args.recording.apply(&mut config);
    (config.rate_max, config.stay, config.is_copy) = (args.rate, args.stay, true);
    record(
        config,
        RunSettings { name: args.name.clone(), ..RunSettings::default() },
        RecordOptions { json: args.json, ..RecordOptions::default() },
    )
}
