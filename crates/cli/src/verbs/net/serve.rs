//! `keepup net serve`: server of network tests.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError};
use keepup_workload::WorkloadError;
use keepup_workload::net::{Listening, PORT, ServerSettings};

use super::loopback::{LISTENING, end_with_parent};
use crate::exit::Exit;
use crate::output::{log, result};
use crate::signals::{stop_flag, stop_flag_of_child};
use crate::token;

/// Serve network tests to clients with the token, until stopped
///
/// Serves many clients at once. The server writes to no disk and sends only to the address of the client.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net serve                                          for tests over loopback
  keepup net serve --listen 192.168.1.2                     for the other machines of that network
  keepup net serve --listen '[::]' --token-file token       on all addresses, with your own token")]
pub(super) struct Args {
    /// Address to listen on
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1", value_parser = endpoint)]
    listen: Endpoint,
    /// Token file for clients [default: $KEEPUP_NET_TOKEN, or a new token]
    ///
    /// A new token is printed.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Limit on concurrent clients
    #[arg(long, default_value_t = ServerSettings::default().sessions, value_name = "N")]
    sessions: u32,
    /// Read the token from the environment and exit when standard input closes
    #[arg(long, hide = true, conflicts_with = "token_file")]
    child: bool,
}

/// Parses `HOST[:PORT]`.
pub(super) fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, PORT)
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let settings = ServerSettings { sessions: args.sessions.max(1), ..ServerSettings::default() };
    let stop = if args.child { stop_flag_of_child()? } else { stop_flag()? };
    if args.child {
        end_with_parent(&stop)?;
    }
    serve_clients(&args.listen, args.token_file.as_deref(), settings, stop)
}

/// Serves clients with the token until `stop` is set. Without a given token a new one is printed.
pub(crate) fn serve_clients(
    listen: &Endpoint,
    token_file: Option<&Path>,
    settings: ServerSettings,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<Exit> {
    let given = token::net_credentials(token_file)?;
    let is_generated = given.is_none();
    let credentials = match given {
        Some(given) => given,
        None => token::new_net_credentials()?,
    };
    let (clock, token) = (Arc::new(SystemClock), credentials.token.clone());
    let listening =
        Listening::bind(listen, credentials, settings, clock, stop).map_err(WorkloadError::from)?;
    log(&format!("{LISTENING}{}", listening.address()));
    if is_generated {
        result(&format!("token: {}", token.reveal()));
    }
    if !listening.address().ip().is_loopback() {
        log("warning: clients with the token can load this machine and its network");
    }
    listening.serve(log);
    Ok(Exit::Done)
}
