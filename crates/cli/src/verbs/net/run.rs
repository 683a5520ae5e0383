//! Common part of all network tests: flags, grid of settings, interleaved runs, result.
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_peer::Endpoint;
use keepup_qualify::datagrams::{DatagramSearch, safe_rate};
use keepup_results::{Event, NetRun, NetSummary};
use keepup_workload::load::Loads;
use keepup_workload::net::{Direction, NetServer, NetSpec, NetTest, Probe, Protocol, TOKEN_VARIABLE};
use keepup_workload::{Context, Footprint, WorkloadError};

use super::loopback::{LoopbackServer, SELF};
use super::rate;
use super::serve::endpoint;
use crate::args::{RepeatArgs, duration, nonzero_duration, size};
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, print_plan};
use crate::loads::{self, check_loads};
use crate::output::log;
use crate::token;
use crate::verbs::test_session::TestSession;

/// Default socket buffer for datagrams. Bridges 160 ms at 100 MB/s if the receiver loses its core, and lets
/// the kernel report a full send queue instead of blocking the sender.
const DATAGRAM_BUFFER_BYTES: usize = 16 << 20;
/// Estimated time to open and close the flows of a run.
const AROUND_A_RUN: Duration = Duration::from_millis(500);

/// Flags of every network test.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Addresses of `keepup net serve`, or `self` for a server over loopback
    ///
    /// Several servers are used at once: one to many, or with --direction receive many to one. `self` starts
    /// a server in a separate process that ends with the test.
    #[arg(required = true, value_name = "HOST[:PORT]")]
    servers: Vec<String>,
    /// File with the token of the server [default: $KEEPUP_NET_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Number of flows per direction [default: 1; latency: 0, no transfer]
    ///
    /// Each flow has one thread at both ends.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    flows: Vec<u32>,
    /// Direction
    #[arg(long, value_enum, default_value_t)]
    direction: DirectionArg,
    /// Rate of each flow, such as "100 MB/s" [default: full speed]
    #[arg(long, value_parser = rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Send buffers of both ends [default: UDP 16 MiB, TCP autotuned]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    send_buffer: Vec<u64>,
    /// Receive buffers of both ends [default: UDP 16 MiB, TCP autotuned]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    receive_buffer: Vec<u64>,
    /// Latency probes per second during a tcp or udp transfer
    #[arg(long, value_name = "N")]
    probe: Option<f64>,
    /// Warm-up time, not measured
    #[arg(long, default_value = "1 s", value_parser = duration, value_name = "TIME")]
    ramp: Duration,
    /// Measurement time per combination
    #[arg(long, default_value = "10 s", value_parser = nonzero_duration, value_name = "TIME")]
    time: Duration,
    #[command(flatten)]
    runs: RepeatArgs,
}

/// Direction on the command line.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum DirectionArg {
    /// To the server
    #[default]
    Send,
    /// From the server
    Receive,
    /// Both directions at once
    Both,
}

/// Servers of a test.
struct Servers {
    list: Vec<NetServer>,
    /// Loopback server, stopped on drop.
    _loopback: Option<LoopbackServer>,
}

impl Servers {
    /// Adds the loopback server, which is started unless this is a `dry_run`.
    fn add_loopback(&mut self, dry_run: bool) -> anyhow::Result<()> {
        let name = Some(SELF.to_owned());
        if dry_run {
            let endpoint = Endpoint::from((Ipv4Addr::LOCALHOST, 0));
            let credentials = token::new_net_credentials()?;
            self.list.push(NetServer { endpoint, credentials, name });
            return Ok(());
        }
        let own = LoopbackServer::start()?;
        self.list.push(NetServer {
            endpoint: own.address.into(),
            credentials: own.credentials.clone(),
            name,
        });
        self._loopback = Some(own);
        Ok(())
    }
}

/// Grid of settings, one run each.
pub(super) struct Grid {
    specs: Vec<(String, NetSpec)>,
}

impl Common {
    /// Settings common to all runs.
    pub(super) fn spec(&self, protocol: Protocol) -> NetSpec {
        NetSpec {
            protocol,
            direction: match self.direction {
                DirectionArg::Send => Direction::Send,
                DirectionArg::Receive => Direction::Receive,
                DirectionArg::Both => Direction::Both,
            },
            rate: self.rate,
            probe: self.probe.map(|per_second| Probe { per_second, bytes: 64 }),
            ramp: self.ramp,
            run: self.time,
            ..NetSpec::default()
        }
    }

    /// Servers of the test. Starts the loopback server, except in a dry run.
    fn servers(&self) -> anyhow::Result<Servers> {
        let own = |name| {
            token::net_credentials(self.token_file.as_deref())?.ok_or_else(|| {
                usage(Cause::new(format!("cannot test {name}: no token given")).with_hint(format!(
                    "--token-file FILE or {TOKEN_VARIABLE}=TOKEN, as printed by `keepup net serve`"
                )))
            })
        };
        if self.servers.iter().filter(|text| *text == SELF).count() > 1 {
            let why = Cause::new(format!("cannot use {SELF} twice: it is one server"));
            return Err(usage(why.with_hint("--flows N for more flows")));
        }
        let mut servers = Servers { list: Vec::new(), _loopback: None };
        for text in &self.servers {
            if text == SELF {
                servers.add_loopback(self.runs.output.dry_run)?;
                continue;
            }
            let endpoint = endpoint(text).map_err(|why| usage(Cause::of(&why)))?;
            servers.list.push(NetServer { endpoint, credentials: own(text)?, name: None });
        }
        Ok(servers)
    }

    /// Describes the test and estimates its duration.
    fn plan(&self, workload: &str, servers: &[NetServer], grid: &Grid) -> (String, Duration) {
        let each = grid.specs.iter().map(|(_, spec)| spec.ramp + spec.run + AROUND_A_RUN);
        let time = each.fold(Duration::ZERO, Duration::saturating_add).saturating_mul(self.runs.repeats);
        let names: Vec<String> = servers.iter().map(NetServer::label).collect();
        let runs = grid.specs.len() * self.runs.repeats as usize;
        let text = format!(
            "{workload} with {}: {runs} {}, about {:.0} s; nothing is written",
            names.join(" + "),
            if runs == 1 { "run" } else { "runs" },
            time.as_secs_f64()
        );
        (text, time)
    }
}

impl Grid {
    /// All combinations of the lists; `spec` holds the other settings.
    pub(super) fn new(common: &Common, messages: &[u64], flows: u32, spec: &NetSpec) -> Self {
        let as_size = |size: &u64| usize::try_from(*size).unwrap_or(usize::MAX);
        let default = (spec.protocol == Protocol::Udp).then_some(DATAGRAM_BUFFER_BYTES);
        let sizes = |sizes: &[u64]| match sizes.is_empty() {
            true => vec![default],
            false => sizes.iter().map(|size| Some(as_size(size))).collect::<Vec<_>>(),
        };
        let counts = if common.flows.is_empty() { vec![flows] } else { common.flows.clone() };
        let mut specs = Vec::new();
        for flows in counts {
            for message_bytes in messages.iter().map(as_size) {
                for send_buffer_bytes in sizes(&common.send_buffer) {
                    for receive_buffer_bytes in sizes(&common.receive_buffer) {
                        let spec = NetSpec {
                            flows,
                            message_bytes,
                            send_buffer_bytes,
                            receive_buffer_bytes,
                            ..spec.clone()
                        };
                        specs.push((name(&spec), spec));
                    }
                }
            }
        }
        Self { specs }
    }
}

/// Runs all combinations, with interleaved repeats.
pub(super) fn measure(common: &Common, workload: &str, grid: &Grid) -> anyhow::Result<Exit> {
    let servers = check_servers(common, grid)?;
    let plan = common.plan(workload, &servers.list, grid);
    let Some(mut net) = NetSession::start(common, workload, grid, (&plan.0, plan.1))? else {
        return Ok(Exit::Done);
    };
    let mut context = net.session.context();
    let failure = runs(common, &servers.list, grid, &mut context, &mut |run| net.ended(run));
    net.finish(failure.map(anyhow::Error::from))
}

/// Searches for the highest rate of datagrams without loss, with each setting.
pub(super) fn search(common: &Common, search: &SearchArgs, grid: &Grid) -> anyhow::Result<Exit> {
    let servers = check_servers(common, grid)?;
    let [(name, spec)] = &grid.specs[..] else {
        let hint = "one value for each of --flows, --message and the buffers";
        return Err(usage(Cause::new("cannot search with several settings at once").with_hint(hint)));
    };
    let plan = format!("search for the highest rate without loss, {name}: a few minutes; nothing is written");
    let Some(mut net) = NetSession::start(common, "udp-rate", grid, (&plan, Duration::ZERO))? else {
        return Ok(Exit::Done);
    };
    let mut context = net.session.context();
    let what = DatagramSearch {
        spec: spec.clone(),
        servers: servers.list.clone(),
        is_quick: search.quick,
        soak: search.soak,
        rate_max: search.max_rate,
    };
    let found = safe_rate(&what, &mut context, &mut |run| net.ended(run));
    let failure = match found {
        Ok(finding) => {
            net.session.summary.finding = Some(finding);
            None
        }
        Err(why) => Some(why.into()),
    };
    net.finish(failure)
}

/// Flags of the search.
#[derive(Clone, clap::Args)]
pub(super) struct SearchArgs {
    /// Find the highest rate without loss, then hold it for a soak
    #[arg(long, conflicts_with_all = ["rate", "repeats", "direction"])]
    pub(super) search: bool,
    /// Less exact search with a shorter soak
    #[arg(long, requires = "search")]
    quick: bool,
    /// Length of the soak [default: 2 min, or 10 s with --quick]
    #[arg(long, requires = "search", value_parser = nonzero_duration, value_name = "TIME")]
    soak: Option<Duration>,
    /// Highest rate to try [default: the generator's limit]
    #[arg(long, requires = "search", value_parser = rate, value_name = "RATE")]
    max_rate: Option<f64>,
}

/// Servers of the test, after a check of all settings.
fn check_servers(common: &Common, grid: &Grid) -> anyhow::Result<Servers> {
    let servers = common.servers()?;
    for (name, spec) in &grid.specs {
        NetTest::new(spec.clone(), servers.list.clone(), name.clone())
            .map_err(|why| usage(Cause::of(&why)))?;
    }
    Ok(servers)
}

/// Passes every run to `ended`, including interrupted ones; returns the error that ended the test, if any.
fn runs(
    common: &Common,
    servers: &[NetServer],
    grid: &Grid,
    context: &mut Context,
    ended: &mut dyn FnMut(NetRun),
) -> Option<WorkloadError> {
    for repeat in 1..=common.runs.repeats {
        for (name, spec) in &grid.specs {
            log(&format!("{name}, run {repeat} of {}", common.runs.repeats));
            let measured = NetTest::new(spec.clone(), servers.to_vec(), name.clone())
                .and_then(|mut test| keepup_workload::run(&mut test, context));
            let failure = match measured {
                Ok(measured) => {
                    ended(NetRun { repeat, ..measured.run });
                    measured.failure
                }
                Err(why) => Some(why),
            };
            if failure.is_some() || context.stop.load(Ordering::Acquire) {
                return failure;
            }
        }
    }
    None
}

/// Network test in progress: session and background loads.
struct NetSession {
    session: TestSession<NetSummary>,
    loads: Loads,
    /// Start of the current run, in nanoseconds.
    begin_ns: u64,
}

impl NetSession {
    /// Announces and starts the test; `None` for a dry run.
    fn start(
        common: &Common,
        workload: &str,
        grid: &Grid,
        (plan, time): (&str, Duration),
    ) -> anyhow::Result<Option<Self>> {
        let load_plan = common.runs.loads.plan()?;
        let plan = match check_loads(&load_plan, &BTreeMap::new(), None)? {
            Some(loads) => format!("{plan}\n{loads}"),
            None => plan.to_owned(),
        };
        if common.runs.output.dry_run {
            let own = Footprint { time, ..Footprint::default() };
            print_plan(&forecast(&own, &load_plan, plan), common.runs.output.json);
            return Ok(None);
        }
        log(&plan);
        let specs: Vec<&NetSpec> = grid.specs.iter().map(|(_, spec)| spec).collect();
        let specs = serde_json::to_value(specs).unwrap_or_default();
        let session = TestSession::start(workload, specs, &[], &common.runs.output)?;
        let loads = loads::start(&load_plan, session.id(), &session.stop)?;
        Ok(Some(Self { session, loads, begin_ns: SystemClock.now_ns() }))
    }

    fn ended(&mut self, run: NetRun) {
        let end_ns = SystemClock.now_ns();
        let run = NetRun { loads: self.loads.over(self.begin_ns, end_ns), ..run };
        self.begin_ns = end_ns;
        self.session.log_event(|t_unix_ns| Event::NetRun { t_unix_ns, run: Box::new(run.clone()) });
        self.session.summary.runs.push(run);
    }

    fn finish(mut self, failure: Option<anyhow::Error>) -> anyhow::Result<Exit> {
        let load_failure = self.loads.failure();
        // A failed load also sets the stop flag.
        let interrupted = self.session.stop.load(Ordering::Acquire) && load_failure.is_none();
        let failure = failure.or_else(|| load_failure.map(anyhow::Error::from));
        drop(self.loads);
        self.session.end(failure, interrupted)
    }
}

/// Name of a run, from its settings.
fn name(spec: &NetSpec) -> String {
    let mut words = match spec.flows {
        0 => Vec::new(),
        1 => vec![format!("1 flow of {}", bytes(spec.message_bytes))],
        flows => vec![format!("{flows} flows of {}", bytes(spec.message_bytes))],
    };
    words.extend(spec.send_buffer_bytes.map(|size| format!("send buffer {}", bytes(size))));
    words.extend(spec.receive_buffer_bytes.map(|size| format!("receive buffer {}", bytes(size))));
    words.extend(spec.probe.map(|probe| format!("{} messages/s", probe.per_second)));
    words.join(", ")
}

/// Formats a size exactly.
fn bytes(size: usize) -> String {
    match size {
        0 => "0 B".into(),
        size if size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}
