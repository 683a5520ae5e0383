//! What all network tests share: flags, the grid of settings, runs in turns, the result.
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_peer::Endpoint;
use keepup_qualify::datagrams::{DatagramSearch, safe_rate};
use keepup_results::{Event, NetRun, NetSummary};
use keepup_workload::load::Loads;
use keepup_workload::net::{
    Credentials, Direction, NetServer, NetSpec, NetTest, Probe, Protocol, TOKEN_VARIABLE,
};
use keepup_workload::{Context, Footprint, WorkloadError};

use super::own::{OWN, OwnServer};
use super::rate;
use super::serve::endpoint;
use crate::args::{Runs, size, some_time, span};
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, foretell};
use crate::loads::{self, announce};
use crate::output::say;
use crate::token;
use crate::verbs::sitting::Sitting;

/// Buffers of datagrams: what bridges 160 ms at 100 MB/s, for a receiver that is not always on a core; and
/// a sender that fills a queue is refused instead of being held back.
const DATAGRAM_BUFFER_BYTES: usize = 16 << 20;
/// What opening and closing the flows of a run takes, for announcements.
const AROUND_A_RUN: Duration = Duration::from_millis(500);

/// Flags of every network test.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Where `keepup net serve` listens; several are used at once: one to many, or many to one. `self` is a
    /// server of the test's own over loopback, in a process of its own that ends with the test
    #[arg(required = true, value_name = "HOST[:PORT]")]
    servers: Vec<String>,
    /// File with the token that the server printed [default: $KEEPUP_NET_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Flows in each direction, each with a thread of its own at both ends
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    flows: Vec<u32>,
    /// Which way the bytes go
    #[arg(long, value_enum, default_value_t)]
    direction: DirectionArg,
    /// Rate of each flow, as in "100 MB/s" [default: as fast as it goes]
    #[arg(long, value_parser = rate, value_name = "RATE")]
    rate: Option<f64>,
    /// Send buffers of both ends [default: of datagrams 16 MiB, else what the kernel thinks fit]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    send_buffer: Vec<u64>,
    /// Receive buffers of both ends [default: of datagrams 16 MiB, else what the kernel thinks fit]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = size)]
    receive_buffer: Vec<u64>,
    /// Messages there and back each second, beside the flows
    #[arg(long, value_name = "N")]
    probe: Option<f64>,
    /// Before it counts
    #[arg(long, default_value = "1 s", value_parser = span, value_name = "TIME")]
    ramp: Duration,
    /// How long each combination is measured
    #[arg(long, default_value = "10 s", value_parser = some_time, value_name = "TIME")]
    time: Duration,
    #[command(flatten)]
    runs: Runs,
}

/// Direction, as users write it.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum DirectionArg {
    /// To the server
    #[default]
    Send,
    /// From the server
    Receive,
    /// Both ways at once
    Both,
}

/// Servers of a test.
struct Servers {
    list: Vec<NetServer>,
    /// Held for as long as the test runs.
    _own: Option<OwnServer>,
}

impl Servers {
    /// Adds the test's own, which is started unless this is a `dry_run`.
    fn own(&mut self, dry_run: bool) -> anyhow::Result<()> {
        let name = Some(OWN.to_owned());
        if dry_run {
            let endpoint = Endpoint::from((Ipv4Addr::LOCALHOST, 0));
            let credentials = Credentials { token: token::made_up()?, random: token::hex_digits };
            self.list.push(NetServer { endpoint, credentials, name });
            return Ok(());
        }
        let own = OwnServer::start()?;
        self.list.push(NetServer {
            endpoint: own.address.into(),
            credentials: own.credentials.clone(),
            name,
        });
        self._own = Some(own);
        Ok(())
    }
}

/// Settings, each of which is a run.
pub(super) struct Grid {
    specs: Vec<(String, NetSpec)>,
}

/// What this end proves itself with: the token in a file, else that of the environment.
pub(crate) fn credentials(file: Option<&Path>) -> anyhow::Result<Option<Credentials>> {
    let token = token::given(file, TOKEN_VARIABLE)?;
    Ok(token.map(|token| Credentials { token, random: token::hex_digits }))
}

impl Common {
    /// What is the same in all runs.
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

    /// The servers; one of the test's own is started, unless nothing is to be done.
    fn servers(&self) -> anyhow::Result<Servers> {
        let own = |name| {
            credentials(self.token_file.as_deref())?.ok_or_else(|| {
                usage(Cause::new(format!("cannot test {name}: no token was given")).with_hint(format!(
                    "--token-file FILE or {TOKEN_VARIABLE}=TOKEN, with what `keepup net serve` printed"
                )))
            })
        };
        if self.servers.iter().filter(|text| *text == OWN).count() > 1 {
            let why = Cause::new(format!("cannot use {OWN} twice: it is one server"));
            return Err(usage(why.with_hint("--flows N for more flows")));
        }
        let mut servers = Servers { list: Vec::new(), _own: None };
        for text in &self.servers {
            if text == OWN {
                servers.own(self.runs.outlet.dry_run)?;
                continue;
            }
            let endpoint = endpoint(text).map_err(|why| usage(Cause::of(&why)))?;
            servers.list.push(NetServer { endpoint, credentials: own(text)?, name: None });
        }
        Ok(servers)
    }

    /// What will be done, for people, and how long it takes.
    fn plan(&self, workload: &str, servers: &[NetServer], grid: &Grid) -> (String, Duration) {
        let each = grid.specs.iter().map(|(_, spec)| spec.ramp + spec.run + AROUND_A_RUN);
        let time = each.sum::<Duration>() * self.runs.repeats;
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
    /// All combinations of the lists. `spec` has the rest.
    pub(super) fn new(common: &Common, messages: &[u64], flows: u32, spec: &NetSpec) -> Self {
        let as_size = |size: &u64| usize::try_from(*size).unwrap_or(usize::MAX);
        let usual = (spec.protocol == Protocol::Udp).then_some(DATAGRAM_BUFFER_BYTES);
        let sizes = |sizes: &[u64]| match sizes.is_empty() {
            true => vec![usual],
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

/// Runs all combinations, in turns when there are repeats.
pub(super) fn measure(common: &Common, workload: &str, grid: &Grid) -> anyhow::Result<Exit> {
    let servers = checked(common, grid)?;
    let plan = common.plan(workload, &servers.list, grid);
    let Some(mut desk) = Desk::begin(common, workload, grid, (&plan.0, plan.1))? else {
        return Ok(Exit::Done);
    };
    let mut context = desk.sitting.context();
    let failure = runs(common, &servers.list, grid, &mut context, &mut |run| desk.ended(run));
    desk.finish(failure.map(anyhow::Error::from))
}

/// Searches for the highest rate of datagrams without loss, with each setting.
pub(super) fn search(common: &Common, wanted: &Wanted, grid: &Grid) -> anyhow::Result<Exit> {
    let servers = checked(common, grid)?;
    let [(name, spec)] = &grid.specs[..] else {
        let hint = "one value for each of --flows, --message and the buffers";
        return Err(usage(Cause::new("cannot search with several settings at once").with_hint(hint)));
    };
    let plan = format!("search for the highest rate without loss, {name}: a few minutes; nothing is written");
    let Some(mut desk) = Desk::begin(common, "udp-rate", grid, (&plan, Duration::ZERO))? else {
        return Ok(Exit::Done);
    };
    let mut context = desk.sitting.context();
    let what = DatagramSearch {
        spec: spec.clone(),
        servers: servers.list.clone(),
        is_quick: wanted.quick,
        soak: wanted.soak,
        rate_max: wanted.max_rate,
    };
    let found = safe_rate(&what, &mut context, &mut |run| desk.ended(run));
    let failure = match found {
        Ok(finding) => {
            desk.sitting.summary.finding = Some(finding);
            None
        }
        Err(why) => Some(why.into()),
    };
    desk.finish(failure)
}

/// How a search is to be made.
#[derive(Clone, clap::Args)]
pub(super) struct Wanted {
    /// Find the highest rate without loss, then hold it for a soak
    #[arg(long, conflicts_with_all = ["rate", "repeats", "direction"])]
    pub(super) search: bool,
    /// A first look, less exact and with a shorter soak
    #[arg(long, requires = "search")]
    quick: bool,
    /// Length of the soak [default: 2 min, or 10 s with --quick]
    #[arg(long, requires = "search", value_parser = some_time, value_name = "TIME")]
    soak: Option<Duration>,
    /// Highest rate to try [default: what the generator can do]
    #[arg(long, requires = "search", value_parser = rate, value_name = "RATE")]
    max_rate: Option<f64>,
}

/// The servers, and whether all settings can be done.
fn checked(common: &Common, grid: &Grid) -> anyhow::Result<Servers> {
    let servers = common.servers()?;
    for (name, spec) in &grid.specs {
        NetTest::new(spec.clone(), servers.list.clone(), name.clone())
            .map_err(|why| usage(Cause::of(&why)))?;
    }
    Ok(servers)
}

/// Every run goes to `ended`, also one that was cut short; what cut it, if anything did.
fn runs(
    common: &Common,
    servers: &[NetServer],
    grid: &Grid,
    context: &mut Context,
    ended: &mut dyn FnMut(NetRun),
) -> Option<WorkloadError> {
    for repeat in 1..=common.runs.repeats {
        for (name, spec) in &grid.specs {
            say(&format!("{name}, run {repeat} of {}", common.runs.repeats));
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

/// The result while it grows, with what runs beside it.
struct Desk {
    sitting: Sitting<NetSummary>,
    loads: Loads,
    /// When the run under way began, ns.
    begin_ns: u64,
}

impl Desk {
    /// Says what will be done; none when that is all that was wanted.
    fn begin(
        common: &Common,
        workload: &str,
        grid: &Grid,
        (plan, time): (&str, Duration),
    ) -> anyhow::Result<Option<Self>> {
        let beside = common.runs.loads.plan()?;
        let plan = match announce(&beside, &BTreeMap::new(), None)? {
            Some(told) => format!("{plan}\n{told}"),
            None => plan.to_owned(),
        };
        if common.runs.outlet.dry_run {
            let own = Footprint { time, ..Footprint::default() };
            foretell(&forecast(&own, &beside, plan), common.runs.outlet.json);
            return Ok(None);
        }
        say(&plan);
        let specs: Vec<&NetSpec> = grid.specs.iter().map(|(_, spec)| spec).collect();
        let specs = serde_json::to_value(specs).unwrap_or_default();
        let sitting = Sitting::begin(workload, specs, &[], &common.runs.outlet)?;
        let loads = loads::start(&beside, sitting.id(), &sitting.stop)?;
        Ok(Some(Self { sitting, loads, begin_ns: SystemClock.now_ns() }))
    }

    fn ended(&mut self, run: NetRun) {
        let end_ns = SystemClock.now_ns();
        let run = NetRun { loads: self.loads.over(self.begin_ns, end_ns), ..run };
        self.begin_ns = end_ns;
        self.sitting.keep(|t_unix_ns| Event::NetRun { t_unix_ns, run: Box::new(run.clone()) });
        self.sitting.summary.runs.push(run);
    }

    fn finish(mut self, failure: Option<anyhow::Error>) -> anyhow::Result<Exit> {
        let lost = self.loads.failure();
        // A load that ended has ended the rest, as the user would have.
        let interrupted = self.sitting.stop.load(Ordering::Acquire) && lost.is_none();
        let failure = failure.or_else(|| lost.map(anyhow::Error::from));
        drop(self.loads);
        self.sitting.end(failure, interrupted)
    }
}

/// A run's settings in words.
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

/// A size without losing a byte of it.
fn bytes(size: usize) -> String {
    match size {
        0 => "0 B".into(),
        size if size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}
