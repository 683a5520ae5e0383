//! `keepup register serve-ipbus`: a target of IPbus 2.0 that is no board.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError, Prefix};
use keepup_registers::ipbus::{Faults, IpbusTarget, PORT, TargetCounters, TargetOptions};

use crate::args::span;
use crate::exit::Exit;
use crate::output::{result, say};
use crate::signals::stop_flag;

/// Be a target of IPbus 2.0 with memory for registers, until stopped
///
/// Stands for a board that is not there, with the faults of a bad network or a bad board. Clients at allowed
/// addresses can read and write its memory, which is nothing but memory. Every N is every Nth, 0 is never;
/// the seed chooses with which one each fault begins.
///
/// Memory begins at address 0. Address 0x80000000 has 0x6b656570, which can be read alone.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup register serve-ipbus                                       port 50001 of this machine alone
  keepup register serve-ipbus --listen 192.168.1.2 --allow 192.168.1.0/24   for that network
  keepup register serve-ipbus --drop-requests 7 --drop-replies 7    on a bad network
  keepup register serve-ipbus --mtu 9000 --buffers 4 --delay '1 ms' another sort of board")]
pub(super) struct Args {
    /// Where to listen; loopback unless told otherwise
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1", value_parser = endpoint)]
    listen: Endpoint,
    /// Addresses that are answered, as in 192.168.1.0/24; once for each range. Needed beyond loopback
    #[arg(long, value_name = "PREFIX")]
    allow: Vec<Prefix>,
    /// Largest packet with the headers of IP and UDP, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = TargetOptions::default().mtu_bytes)]
    mtu: usize,
    /// Replies that are kept, and so packets that may be under way
    #[arg(long, value_name = "N", default_value_t = TargetOptions::default().buffers)]
    buffers: usize,
    /// Words of memory
    #[arg(long, value_name = "N", default_value_t = TargetOptions::default().words)]
    words: usize,
    /// Drop every Nth datagram that comes
    #[arg(long, value_name = "N", default_value_t)]
    drop_requests: u32,
    /// Drop every Nth datagram that goes
    #[arg(long, value_name = "N", default_value_t)]
    drop_replies: u32,
    /// Have every Nth datagram come or go twice
    #[arg(long, value_name = "N", default_value_t)]
    duplicate: u32,
    /// Have every Nth datagram overtaken by the next
    #[arg(long, value_name = "N", default_value_t)]
    reorder: u32,
    /// Answer so much later
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = span)]
    delay: Duration,
    /// Fail at this address, as in 0x100
    #[arg(long, value_name = "ADDRESS", value_parser = word)]
    bus_error: Option<u32>,
    /// Give every Nth reply the number of another packet
    #[arg(long, value_name = "N", default_value_t)]
    wrong_id: u32,
    /// Which of the first N each fault begins with
    #[arg(long, value_name = "SEED", default_value_t)]
    seed: u64,
}

/// A host, with the usual port unless it has its own.
fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, PORT)
}

/// A word, in decimal or with 0x.
fn word(text: &str) -> Result<u32, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    read.map_err(|_| format!("{text:?} is not an address such as 4096 or 0x1000"))
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let options = TargetOptions {
        listen: args.listen.clone(),
        allow: args.allow.clone(),
        mtu_bytes: args.mtu,
        buffers: args.buffers,
        words: args.words,
        faults: Faults {
            drop_requests: args.drop_requests,
            drop_replies: args.drop_replies,
            duplicate: args.duplicate,
            reorder: args.reorder,
            delay: args.delay,
            bus_error: args.bus_error,
            wrong_id: args.wrong_id,
            seed: args.seed,
        },
    };
    let stop = stop_flag()?;
    let target = IpbusTarget::bind(&options, Arc::new(SystemClock))?;
    say(&format!("listening on {}", target.address()));
    if !target.address().ip().is_loopback() {
        let allowed: Vec<String> = args.allow.iter().map(ToString::to_string).collect();
        let allowed = allowed.join(", ");
        say(&format!("warning: {allowed} can read and write the words served here; IPbus has no password"));
    }
    let counters = target.serve(&stop)?;
    result(&account(&counters));
    Ok(Exit::Done)
}

/// What a target saw and did, a line for each.
fn account(counters: &TargetCounters) -> String {
    let TargetCounters {
        packets,
        transactions,
        words_read,
        words_written,
        failed,
        status,
        resent,
        unknown,
        out_of_sequence,
        foreign,
        dropped,
        duplicated,
        reordered,
        misnumbered,
        refused,
        overflowed,
        unsent,
    } = *counters;
    let rows = [
        ("packets done", packets),
        ("transactions done", transactions),
        ("words read", words_read),
        ("words written", words_written),
        ("transactions failed", failed),
        ("status asked for", status),
        ("replies sent again", resent),
        ("replies asked for in vain", unknown),
        ("packets out of sequence", out_of_sequence),
        ("datagrams that are no packet", foreign),
        ("datagrams from other addresses", refused),
        ("replies dropped, delay queue full", overflowed),
        ("replies that the system refused", unsent),
        ("datagrams dropped on purpose", dropped),
        ("datagrams doubled on purpose", duplicated),
        ("datagrams overtaken on purpose", reordered),
        ("replies misnumbered on purpose", misnumbered),
    ];
    rows.map(|(name, count)| format!("{name:<34}{count:>14}")).join("\n")
}
