//! `keepup net serve`: the other end of network tests.
use std::sync::Arc;

use anyhow::Context as _;
use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError};
use keepup_recording::id::Id;
use keepup_workload::WorkloadError;
use keepup_workload::net::{Listening, PORT, ServerLimits, Token};

use super::own::{LISTENING, end_with_parent};
use super::run::token_of_environment;
use crate::exit::Exit;
use crate::output::{result, say};
use crate::signals::stop_flag;

/// Be the other end of network tests, for all who know the token, until stopped
///
/// Serves many clients at once. It writes to no disk, and sends to nobody but the address that asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net serve                                          for tests over loopback
  keepup net serve --listen 192.168.1.2                     for the other machines of that network
  keepup net serve --listen '[::]' --token \"$(cat token)\"   on all addresses, with a token of your own")]
pub(super) struct Args {
    /// Where to listen; loopback unless told otherwise
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1", value_parser = endpoint)]
    listen: Endpoint,
    /// What clients must show [default: a new one each time, which is printed]
    #[arg(long, value_parser = token)]
    token: Option<Token>,
    /// Clients served at the same time
    #[arg(long, default_value_t = ServerLimits::default().sessions, value_name = "N")]
    sessions: u32,
    /// Take the token from the environment, and end with standard input
    #[arg(long, hide = true, conflicts_with = "token")]
    child: bool,
}

/// A host, with the usual port unless it has its own.
pub(super) fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, PORT)
}

/// A token that is worth its name.
pub(super) fn token(text: &str) -> Result<Token, String> {
    match (8..=Token::BYTES_MAX).contains(&text.len()) {
        true => Ok(Token(text.to_owned())),
        false => Err(format!("a token has 8 to {} characters", Token::BYTES_MAX)),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let random = || Id::random().map(|id| id.to_string());
    let given = if args.child { token_of_environment() } else { args.token.clone() };
    let token = match &given {
        Some(token) => token.clone(),
        None => Token(random().context("cannot read random bytes")?),
    };
    let limits = ServerLimits { sessions: args.sessions.max(1), ..ServerLimits::default() };
    let stop = stop_flag()?;
    if args.child {
        end_with_parent(&stop)?;
    }
    let (clock, shown) = (Arc::new(SystemClock), token.clone());
    let listening = Listening::bind(
        &args.listen,
        token,
        limits,
        clock,
        Arc::clone(&stop),
        Box::new(move || random().ok()),
    );
    let listening = listening.map_err(WorkloadError::from)?;
    say(&format!("{LISTENING}{}", listening.address()));
    if given.is_none() {
        result(&format!("token: {}", shown.0));
    }
    if !listening.address().ip().is_loopback() {
        say(
            "warning: whoever reaches this address and knows the token can load this machine and its network",
        );
    }
    listening.serve(say);
    Ok(Exit::Done)
}
