//! `keepup register serve-ipbus`: simulated IPbus 2.0 target.
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError, Prefix};
use keepup_registers::ipbus::{Faults, IpbusTarget, PORT, TargetOptions};
use keepup_report::listing;

use crate::args::duration;
use crate::exit::Exit;
use crate::output::{log, print_listing};
use crate::signals::stop_flag;

/// Simulate an IPbus 2.0 target with memory as registers, until stopped
///
/// Replaces a board and can inject faults of a network or a board. Clients at allowed addresses can read and
/// write its memory. N means every Nth datagram, 0 means never; the seed selects the first faulty datagram.
///
/// Memory starts at address 0. The word at address 0x80000000 is read-only and has the value 0x6b656570.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup register serve-ipbus                                       port 50001 on loopback
  keepup register serve-ipbus --listen 192.168.1.2 --allow 192.168.1.0/24   for that network
  keepup register serve-ipbus --drop-requests 7 --drop-replies 7    network with loss
  keepup register serve-ipbus --mtu 9000 --buffers 4 --delay '1 ms' board with jumbo frames")]
pub(super) struct Args {
    /// Address to listen on
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1", value_parser = endpoint)]
    listen: Endpoint,
    /// Addresses of clients, such as 192.168.1.0/24; repeatable
    ///
    /// Required if the target listens on an address other than loopback.
    #[arg(long, value_name = "PREFIX")]
    allow: Vec<Prefix>,
    /// Largest packet including IP and UDP headers, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = TargetOptions::default().mtu_bytes)]
    mtu: usize,
    /// Stored replies, which limit the packets in flight
    #[arg(long, value_name = "N", default_value_t = TargetOptions::default().buffers)]
    buffers: usize,
    /// Size of the memory, in words
    #[arg(long, value_name = "N", default_value_t = TargetOptions::default().words)]
    words: usize,
    /// Drop every Nth received datagram
    #[arg(long, value_name = "N", default_value_t)]
    drop_requests: u32,
    /// Drop every Nth sent datagram
    #[arg(long, value_name = "N", default_value_t)]
    drop_replies: u32,
    /// Duplicate every Nth datagram
    #[arg(long, value_name = "N", default_value_t)]
    duplicate: u32,
    /// Swap every Nth datagram with the next one
    #[arg(long, value_name = "N", default_value_t)]
    reorder: u32,
    /// Delay of every reply
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = duration)]
    delay: Duration,
    /// Report a bus error at this address, such as 0x100
    #[arg(long, value_name = "ADDRESS", value_parser = word)]
    bus_error: Option<u32>,
    /// Send every Nth reply with a wrong packet id
    #[arg(long, value_name = "N", default_value_t)]
    wrong_id: u32,
    /// Seed that selects the first datagram of each fault
    #[arg(long, value_name = "SEED", default_value_t)]
    seed: u64,
}

/// Parses `HOST[:PORT]`.
fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, PORT)
}

/// Parses a decimal or `0x` hexadecimal address.
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
    log(&format!("listening on {}", target.address()));
    if !target.address().ip().is_loopback() {
        let allowed: Vec<String> = args.allow.iter().map(ToString::to_string).collect();
        let allowed = allowed.join(", ");
        log(&format!(
            "warning: clients at {allowed} can read and write the memory; IPbus has no authentication"
        ));
    }
    let counters = target.serve(&stop)?;
    print_listing(|style| listing::counters(&counters.rows(), style));
    Ok(Exit::Done)
}
