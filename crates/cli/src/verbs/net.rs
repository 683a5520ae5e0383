//! `keepup net`: the network alone.
mod own;
mod run;
mod serve;

pub(crate) use self::run::credentials;
use keepup_workload::net::{NetSpec, Probe, Protocol, ReceiveBy, SendBy};

use self::run::{Common, Grid, Wanted, measure, search};
use crate::args::{byte_rate, size};
use crate::exit::{Exit, UsageError};

/// Measure the network alone, between `keepup net serve` and this machine
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Serve(serve::Args),
    Tcp(TcpArgs),
    Udp(UdpArgs),
    Latency(LatencyArgs),
}

/// Bytes over TCP: goodput, retransmits, and what both ends pay
///
/// Several values of --flows, --message and the buffers are measured in all combinations; the smallest that
/// reach 98 % of the best are named.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net tcp self                                     over loopback, with a server of its own
  keepup net tcp 192.168.1.2 --token-file token
  keepup net tcp 192.168.1.2 --direction both --flows 4 --time '30 s'
  keepup net tcp 192.168.1.2 --flows 1,2,4 --message '16 KiB,128 KiB,1 MiB' --receive-buffer '256 KiB,4 MiB'
  keepup net tcp 192.168.1.2 --probe 100                  latency beside the flows")]
struct TcpArgs {
    /// Bytes handed over at a time
    #[arg(long, default_value = "64 KiB", value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    message: Vec<u64>,
    /// Congestion control, as in `sysctl net.ipv4.tcp_available_congestion_control`
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Send small messages at once (TCP_NODELAY)
    #[arg(long)]
    no_delay: bool,
    /// Send from the page cache, without a copy (sendfile)
    #[arg(long)]
    zero_copy: bool,
    /// Drop what arrives in the kernel, without a copy (MSG_TRUNC): what the network alone can do
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    common: Common,
}

/// Datagrams, and where each lost one was lost
///
/// Every datagram has a number of 64 bits; both ends count, and what was sent less what arrived is
/// explained by the layers of both machines.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net udp 192.168.1.2 --token-file token --rate '100 MB/s'
  keepup net udp 192.168.1.2 --rate '1 GB/s' --message '8000 B' --receive-buffer '64 MiB'
  keepup net udp 192.168.1.2 --send segments --receive joined        as fast as it goes
  keepup net udp 192.168.1.2 --search                                the highest rate without loss")]
struct UdpArgs {
    /// Sizes of a datagram's payload
    #[arg(long, default_value = "1400 B", value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    message: Vec<u64>,
    /// How datagrams are handed to the kernel
    #[arg(long, value_enum, default_value_t)]
    send: SendArg,
    /// How datagrams are taken from the kernel
    #[arg(long, value_enum, default_value_t)]
    receive: ReceiveArg,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    common: Common,
}

/// Time there and back of small messages, each due by the clock
///
/// Latency counts from when a message was due: one that had to wait behind another shows.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net latency 192.168.1.2 --token-file token
  keepup net latency 192.168.1.2 --per-second 10000 --message '1 KiB' --udp
  keepup net latency 192.168.1.2 --flows 4 --rate '50 MB/s'          beside four flows")]
struct LatencyArgs {
    /// Messages due each second
    #[arg(long, default_value_t = 1000.0, value_name = "N")]
    per_second: f64,
    /// Size of a message
    #[arg(long, default_value = "64 B", value_parser = size, value_name = "SIZE")]
    message: u64,
    /// Datagrams instead of a connection
    #[arg(long)]
    udp: bool,
    #[command(flatten)]
    common: Common,
}

/// How datagrams are handed over, as users write it.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum SendArg {
    /// One with each call
    Plain,
    /// Many with one call (sendmmsg)
    #[default]
    Batch,
    /// Trains that the kernel or the card cuts (UDP_SEGMENT)
    Segments,
}

/// How datagrams are taken, as users write it.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum ReceiveArg {
    /// One with each call
    Plain,
    /// Many with one call (recvmmsg)
    #[default]
    Batch,
    /// Joined by the kernel (UDP_GRO), many with one call
    Joined,
    /// Put into buffers by the kernel without being asked for each (io_uring)
    Ring,
}

impl Args {
    /// Whether it measures.
    pub(crate) fn keeps_a_result(&self) -> bool {
        !matches!(self.kind, Kind::Serve(_))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.kind {
        Kind::Serve(args) => serve::run(args),
        Kind::Tcp(args) => {
            let spec = NetSpec {
                congestion: args.congestion.clone(),
                no_delay: args.no_delay,
                zero_copy: args.zero_copy,
                discard: args.discard,
                ..args.common.spec(Protocol::Tcp)
            };
            measure(&args.common, "tcp", &Grid::new(&args.common, &args.message, 1, &spec))
        }
        Kind::Udp(args) => {
            let spec = NetSpec {
                send_by: match args.send {
                    SendArg::Plain => SendBy::Plain,
                    SendArg::Batch => SendBy::Batch,
                    SendArg::Segments => SendBy::Segments,
                },
                receive_by: match args.receive {
                    ReceiveArg::Plain => ReceiveBy::Plain,
                    ReceiveArg::Batch => ReceiveBy::Batch,
                    ReceiveArg::Joined => ReceiveBy::Joined,
                    ReceiveArg::Ring => ReceiveBy::Ring,
                },
                ..args.common.spec(Protocol::Udp)
            };
            let grid = Grid::new(&args.common, &args.message, 1, &spec);
            match args.wanted.search {
                true => search(&args.common, &args.wanted, &grid),
                false => measure(&args.common, "udp", &grid),
            }
        }
        Kind::Latency(args) => {
            let protocol = if args.udp { Protocol::Udp } else { Protocol::Tcp };
            let bytes = usize::try_from(args.message).unwrap_or(usize::MAX);
            let spec = NetSpec {
                probe: Some(Probe { per_second: args.per_second, bytes }),
                ..args.common.spec(protocol)
            };
            let message = if args.udp { 1400 } else { 64 << 10 };
            measure(&args.common, "latency", &Grid::new(&args.common, &[message], 0, &spec))
        }
    }
}

/// A rate of each flow.
fn rate(text: &str) -> Result<f64, UsageError> {
    let none = || UsageError::new("a rate of nothing");
    byte_rate(text).and_then(|rate| if rate > 0.0 { Ok(rate) } else { Err(none()) })
}
