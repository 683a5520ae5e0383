//! Highest datagram rate without loss: trials of `keepup net udp` with the search used for
//! recording.
//!
//! Losses include datagrams that did not arrive, whichever layer lost them, and those refused by a
//! full local send queue. Datagrams that the generator did not send in time are no evidence about
//! the network.
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_results::{NetLedger, NetRateFinding, NetRun};
use keepup_workload::net::{NetServer, NetSpec, NetTest};
use keepup_workload::{Context, WorkloadError};

use crate::QualifyError;
use crate::search::{End, Outcome, Phase, Search, SearchPlan, Step, TrialOutcome};

/// Maximum share of overdue datagrams for the generator to have kept its schedule.
const LATE_SHARE: f64 = 0.005;
/// Lowest searched rate, as a share of the highest.
const RANGE: f64 = 1e-3;
/// Warm-up of a trial.
const RAMP: Duration = Duration::from_millis(200);
/// Length of the generator's unthrottled run.
const CEILING: Duration = Duration::from_secs(1);

/// Parameters of the search.
#[derive(Clone, Debug)]
pub struct DatagramSearch {
    /// Flows; rate, warm-up and time are set by the search.
    pub spec: NetSpec,
    /// Servers.
    pub servers: Vec<NetServer>,
    /// Short search.
    pub is_quick: bool,
    /// Soak time, if not the default.
    pub soak: Option<Duration>,
    /// Maximum total rate, bytes per second; default: the generator's limit.
    pub rate_max: Option<f64>,
}

/// Runs the search; every trial is passed to `ended`.
///
/// # Errors
/// A trial that cannot run, or an invalid plan. Only the trials so far are kept.
pub fn safe_rate(
    what: &DatagramSearch,
    context: &mut Context,
    ended: &mut dyn FnMut(NetRun),
) -> Result<NetRateFinding, QualifyError> {
    let ceiling = match what.rate_max {
        Some(rate) => rate,
        None => {
            let run = trial(what, "as fast as it goes".into(), None, CEILING, context)?;
            let rates = run.flows.iter().filter_map(|flow| flow.sent.as_ref()?.bytes_per_second());
            let rate: f64 = rates.float_sum();
            ended(run);
            rate
        }
    };
    let make = if what.is_quick { SearchPlan::quick } else { SearchPlan::standard };
    let mut plan = make((ceiling * RANGE).max(1.0), ceiling.max(1.0));
    plan.soak = what.soak.unwrap_or(plan.soak);
    let mut search = Search::new(plan)?;
    let mut worst: Option<NetLedger> = None;
    let outcome = loop {
        let (phase, rate, duration) = match search.next() {
            Step::Trial { rate, duration, phase } => (phase, rate, duration),
            Step::Soak { rate, duration } => (Phase::Soak, rate, duration),
            Step::Done(outcome) => break outcome,
        };
        let name = format!("{phase}, {:.1} MB/s", rate / 1e6);
        let run = trial(what, name, Some(rate), duration, context)?;
        if context.stop.load(Ordering::Acquire) {
            ended(run);
            break search.finish_now();
        }
        search.record(judged(&run, duration));
        if let Some(ledger) = &run.ledger
            && worst.as_ref().is_none_or(|worst| ledger.longest_pause_ns > worst.longest_pause_ns)
        {
            worst = Some(ledger.clone());
        }
        ended(run);
    };
    Ok(finding(&outcome, ceiling, worst.as_ref()))
}

/// One trial with total rate `rate`.
fn trial(
    what: &DatagramSearch,
    name: String,
    rate: Option<f64>,
    duration: Duration,
    context: &mut Context,
) -> Result<NetRun, WorkloadError> {
    let flows = f64::from(what.spec.flows.max(1)) * what.servers.len().max(1) as f64;
    (context.note)(&name);
    let spec =
        NetSpec { rate: rate.map(|rate| rate / flows), ramp: RAMP, run: duration, ..what.spec.clone() };
    let mut test = NetTest::new(spec, what.servers.clone(), name)?;
    let measured = keepup_workload::run(&mut test, context)?;
    match measured.failure {
        Some(failure) => Err(failure),
        None => Ok(measured.run),
    }
}

/// Outcome of a trial for the search.
fn judged(run: &NetRun, duration: Duration) -> TrialOutcome {
    let ledger = run.ledger.as_ref();
    let of = |part: fn(&NetLedger) -> u64| ledger.map_or(0, part);
    let (due, unsent, refused) = (of(|l| l.due), of(|l| l.unsent), of(|l| l.refused));
    let late = unsent.saturating_sub(refused) as f64 / due.max(1) as f64;
    let sent = run.flows.iter().filter_map(|flow| flow.sent.as_ref()?.bytes_per_second()).float_sum();
    // Datagrams refused by a queue count as offered.
    let offered = of(|l| l.sent) + refused;
    TrialOutcome {
        duration_s: duration.as_secs_f64(),
        clean_s: if of(|l| l.lost) + refused == 0 { duration.as_secs_f64() } else { 0.0 },
        elapsed_s: (duration + RAMP).as_secs_f64(),
        // Nothing is stored.
        bytes: 0.0,
        offered_events: due,
        lost_events: of(|l| l.lost) + refused,
        backlog_growing: false,
        longest_stall: None,
        buffer: None,
        achieved_rate: run.goodput(None).unwrap_or(0.0),
        offered_rate: sent * offered as f64 / of(|l| l.sent).max(1) as f64,
        failed: ledger.is_none().then(|| "no report from both ends".to_owned()),
        generator_limited: late > LATE_SHARE,
    }
}

fn finding(outcome: &Outcome, ceiling: f64, worst: Option<&NetLedger>) -> NetRateFinding {
    let why = match &outcome.end {
        End::Converged => "the knee is known to the requested width",
        End::MaxRateHolds => "no loss at the highest rate tried: the network's limit is higher",
        End::MinRateFails => "loss even at the lowest rate tried",
        End::TimeCap | End::ByteLimit => "search time limit reached",
        End::SoakFails => "no rate passed a whole soak",
        End::SlowsDown => "the path became slower after every soak that passed",
        End::StallsExceedBuffer { .. } => "stalls exceed the buffer",
        End::GeneratorLimited { .. } => "the sender is at its limit: the network's limit was not found",
        End::Interrupted => "interrupted",
    };
    NetRateFinding {
        ceiling_bytes_per_second: ceiling,
        knee_lower_bytes_per_second: outcome.knee.map(|knee| knee.lower),
        knee_upper_bytes_per_second: outcome.knee.and_then(|knee| knee.upper),
        safe_bytes_per_second: outcome.qualified_rate,
        loss_events_per_second_max: outcome.soak.map(|soak| soak.incidents_per_s_max()),
        longest_pause_ns: worst.map(|ledger| ledger.longest_pause_ns),
        buffer_needed_bytes: worst.map(|ledger| ledger.buffer_needed_bytes),
        end: why.to_owned(),
    }
}

#[cfg(test)]
#[path = "datagrams_tests.rs"]
mod tests;
