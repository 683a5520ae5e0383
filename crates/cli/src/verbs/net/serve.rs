//! `keepup net serve`: the other end of network tests.
use std::path::PathBuf;
use std::sync::Arc;

use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError};
use keepup_workload::WorkloadError;
use keepup_workload::net::{Credentials, Listening, PORT, ServerLimits};

use super::own::{LISTENING, end_with_parent};
use super::run::credentials;
use crate::exit::Exit;
use crate::output::{result, say};
use crate::signals::stop_flag;
use crate::token;

/// Be the other end of network tests, for all who know the token, until stopped
///
/// Serves many clients at once. It writes to no disk, and sends to nobody but the address that asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net serve                                          for tests over loopback
  keepup net serve --listen 192.168.1.2                     for the other machines of that network
  keepup net serve --listen '[::]' --token-file token       on all addresses, with a token of your own")]
pub(super) struct Args {
    /// Where to listen; loopback unless told otherwise
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1", value_parser = endpoint)]
    listen: Endpoint,
    /// File with the token that clients must know [default: $KEEPUP_NET_TOKEN, or a new one that is
    /// printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Clients served at the same time
    #[arg(long, default_value_t = ServerLimits::default().sessions, value_name = "N")]
    sessions: u32,
    /// Take the token from the environment, and end with standard input
    #[arg(long, hide = true, conflicts_with = "token_file")]
    child: bool,
}

/// A host, with the usual port unless it has its own.
pub(super) fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, PORT)
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let given = credentials(args.token_file.as_deref())?;
    let is_made_up = given.is_none();
    let credentials = match given {
        Some(given) => given,
        None => Credentials { token: token::made_up()?, random: token::hex_digits },
    };
    let limits = ServerLimits { sessions: args.sessions.max(1), ..ServerLimits::default() };
    let stop = stop_flag()?;
    if args.child {
        end_with_parent(&stop)?;
    }
    let (clock, token) = (Arc::new(SystemClock), credentials.token.clone());
    let listening = Listening::bind(&args.listen, credentials, limits, clock, Arc::clone(&stop));
    let listening = listening.map_err(WorkloadError::from)?;
    say(&format!("{LISTENING}{}", listening.address()));
    if is_made_up {
        result(&format!("token: {}", token.reveal()));
    }
    if !listening.address().ip().is_loopback() {
        say(
            "warning: whoever reaches this address and knows the token can load this machine and its network",
        );
    }
    listening.serve(say);
    Ok(Exit::Done)
}
