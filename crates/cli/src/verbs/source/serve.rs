//! `keepup source --serve`: runs sources for `keepup qualify --source` on another machine.
use std::path::PathBuf;

use keepup_workload::net::ServerSettings;

use crate::exit::Exit;
use crate::generator::endpoint;
use crate::signals::stop_flag;
use crate::verbs::net::serve_clients;

/// Flags of the server.
#[derive(clap::Args)]
pub(super) struct ServeArgs {
    /// Run sources for `keepup qualify --source` and `keepup trial --source`, until stopped
    #[arg(long, conflicts_with_all = [
        "profile", "to", "rate", "time", "events", "streams", "connections", "buffer", "first_stream", "seed",
        "cpus", "json", "event", "protocol", "frames_per_second", "recorder_timeout",
    ])]
    pub(super) serve: bool,
    /// Address to listen on, with --serve or --as dectris-v1, dectris-v2, pvaccess [default: 127.0.0.1]
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "to")]
    pub(super) listen: Option<String>,
    /// Token file for --serve [default: $KEEPUP_NET_TOKEN, or a new token]
    ///
    /// A new token is printed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "to"])]
    token_file: Option<PathBuf>,
    /// Port for recorders of dectris-v1, dectris-v2 and pvaccess sources, with --serve [default: any]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..),
        conflicts_with_all = ["profile", "to"])]
    detector_port: Option<u16>,
}

pub(super) fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    // Two sources at a time would measure each other.
    let detector_port = args.detector_port.unwrap_or(0);
    let settings = ServerSettings { sources: 1, detector_port, ..ServerSettings::default() };
    let stop = stop_flag()?;
    let listen = endpoint(args.listen.as_deref().unwrap_or("127.0.0.1"))?;
    serve_clients(&listen, args.token_file.as_deref(), settings, stop)
}
