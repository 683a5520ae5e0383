//! `keepup net`: network tests.
mod loopback;
mod run;
mod serve;

pub(crate) use self::serve::serve_clients;
use keepup_workload::net::{NetSpec, Probe, Protocol, ReceiveBy, SendBy};

use self::run::{Common, Grid, SearchArgs, measure, search};
use crate::args::{byte_rate, size};
use crate::exit::{Exit, UsageError};

/// Measure the network between this machine and `keepup net serve` on another
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Serve(serve::Args),
    Tcp(TcpArgs),
    Udp(UdpArgs),
    Latency(LatencyArgs),
}

/// Measure TCP: goodput, retransmits and the CPU cost at both ends
///
/// All combinations of --flows, --message and the buffer sizes are measured. The report names the smallest
/// setting that reaches 98 % of the best.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net tcp self                                     over loopback, starts its own server
  keepup net tcp 192.168.1.2 --token-file token
  keepup net tcp 192.168.1.2 --direction both --flows 4 --time '30 s'
  keepup net tcp 192.168.1.2 --flows 1,2,4 --message '16 KiB,1 MiB' --receive-buffer '256 KiB,4 MiB'
  keepup net tcp 192.168.1.2 --probe 100                  latency during the transfer")]
struct TcpArgs {
    /// Bytes per write call
    #[arg(long, default_value = "64 KiB", value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    message: Vec<u64>,
    /// Congestion control algorithm, such as cubic or bbr
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Disable Nagle's algorithm (TCP_NODELAY)
    #[arg(long)]
    no_delay: bool,
    /// Send from the page cache without a copy (sendfile)
    #[arg(long)]
    zero_copy: bool,
    /// Drop received data in the kernel without a copy (MSG_TRUNC)
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    common: Common,
}

/// Measure UDP: rate, loss, and where each lost datagram was dropped
///
/// Every datagram has a 64-bit sequence number and both ends count. Losses are attributed to layers by the
/// kernel and interface counters of both machines.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net udp 192.168.1.2 --token-file token --rate '100 MB/s'
  keepup net udp 192.168.1.2 --rate '1 GB/s' --message '8000 B' --receive-buffer '64 MiB'
  keepup net udp 192.168.1.2 --send segments --receive joined        at full speed
  keepup net udp 192.168.1.2 --search                                the highest rate without loss")]
struct UdpArgs {
    /// Payload size of a datagram
    #[arg(long, default_value = "1400 B", value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    message: Vec<u64>,
    /// Send calls
    #[arg(long, value_enum, default_value_t)]
    send: SendArg,
    /// Receive calls
    #[arg(long, value_enum, default_value_t)]
    receive: ReceiveArg,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    common: Common,
}

/// Measure the round-trip latency of small messages sent at a fixed rate
///
/// Latency counts from the due time of a message, so queueing behind a slow message is included.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup net latency 192.168.1.2 --token-file token
  keepup net latency 192.168.1.2 --per-second 10000 --message '1 KiB' --udp
  keepup net latency 192.168.1.2 --flows 4 --rate '50 MB/s'          during four transfers")]
struct LatencyArgs {
    /// Messages per second
    #[arg(long, default_value_t = 1000.0, value_name = "N")]
    per_second: f64,
    /// Message size
    #[arg(long, default_value = "64 B", value_parser = size, value_name = "SIZE")]
    message: u64,
    /// Use UDP instead of TCP
    #[arg(long)]
    udp: bool,
    #[command(flatten)]
    common: Common,
}

/// Send calls on the command line.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum SendArg {
    /// One datagram per call
    Plain,
    /// Many datagrams per call (sendmmsg)
    #[default]
    Batch,
    /// Segmentation offload (UDP_SEGMENT)
    Segments,
}

/// Receive calls on the command line.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum ReceiveArg {
    /// One datagram per call
    Plain,
    /// Many datagrams per call (recvmmsg)
    #[default]
    Batch,
    /// Receive offload (UDP_GRO), many datagrams per call
    Joined,
    /// io_uring with provided buffers
    Ring,
}

impl Args {
    /// Whether the command measures.
    pub(crate) fn keeps_a_result(&self) -> bool {
        !matches!(self.verb, Verb::Serve(_))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Tcp(args) => {
            let spec = NetSpec {
                congestion: args.congestion.clone(),
                no_delay: args.no_delay,
                zero_copy: args.zero_copy,
                discard: args.discard,
                ..args.common.spec(Protocol::Tcp)
            };
            measure(&args.common, "tcp", &Grid::new(&args.common, &args.message, 1, &spec))
        }
        Verb::Udp(args) => {
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
            match args.search.search {
                true => search(&args.common, &args.search, &grid),
                false => measure(&args.common, "udp", &grid),
            }
        }
        Verb::Latency(args) => {
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

/// Parses the rate of a flow.
fn rate(text: &str) -> Result<f64, UsageError> {
    let none = || UsageError::new("the rate must be above 0");
    byte_rate(text).and_then(|rate| if rate > 0.0 { Ok(rate) } else { Err(none()) })
}
