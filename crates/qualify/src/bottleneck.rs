//! Stages nominated as the bottleneck by their occupancy, and the next limit. Pure.
//!
//! [`counter`](crate::counter) tests the nominees.
use keepup_measure::sum::Sums;
use keepup_results::format::{megabytes_per_second, rate, rates};
use keepup_results::{Bottleneck, Ceilings, NextLimit};
use keepup_workload::record::TrialMeasured;
use serde::{Deserialize, Serialize};

use crate::judge::lost_events;

/// A volume is saturated above this share of time with the maximum number of writes in flight.
const FULL: f64 = 0.5;
/// The pool throttles the source above this share of time without a free block.
const POOL_EMPTY: f64 = 0.3;
/// A thread is starved above this share of time in which it was runnable but had no CPU.
const STARVED: f64 = 0.25;
/// A thread is saturated above this busy share.
const SATURATED: f64 = 0.85;
/// A source is throttled above this share of time blocked on the network.
const HELD_BACK: f64 = 0.2;
/// Share of its threshold at which a stage is named by the rule.
const CLEAR: f64 = 1.0;
/// Below this fraction of its threshold a stage is no candidate.
const SUSPICIOUS: f64 = 0.2;
/// Limit on candidates.
const CANDIDATES_MAX: usize = 3;
/// Losses below this share of the rate that the path carries without a schedule are not for want of
/// throughput: a stall outlasted the memory.
const POOL_SHARE: f64 = 0.8;
/// Name of the null target.
const NULL: &str = "null";

/// Stage that limits the rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The generator, not the tested machine.
    Source,
    /// The path between source and recorder.
    Network,
    /// The recorder's intake thread is saturated.
    Recorder,
    /// The recorder's threads lack CPU time.
    Processor,
    /// A reducer thread is saturated.
    Reduction,
    /// A volume.
    Volume(String),
    /// The memory that bridges stalls of the volumes.
    Pool,
    /// The concurrent drain.
    Drain,
    /// No stage reached its threshold.
    Unresolved,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Source => f.write_str("source"),
            Self::Network => f.write_str("network"),
            Self::Recorder => f.write_str("recorder CPU"),
            Self::Processor => f.write_str("processor"),
            Self::Reduction => f.write_str("reduction"),
            Self::Volume(path) => write!(f, "volume {path}"),
            Self::Pool => f.write_str("pool"),
            Self::Drain => f.write_str("drain"),
            Self::Unresolved => f.write_str(Bottleneck::NOT_RESOLVED),
        }
    }
}

/// Occupancy of one volume; shares of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeEvidence {
    /// The volume.
    pub path: String,
    /// The maximum number of writes was in flight.
    pub full: f64,
    /// Blocks waited for the next segment.
    pub segment_wait: f64,
    /// Its writer was runnable but had no CPU.
    pub writer_starved: f64,
    /// Longest write, ms.
    pub write_ms_max: f64,
}

/// Occupancy of one reducer thread; shares of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReducerEvidence {
    /// It had work.
    pub busy: f64,
    /// It was on a CPU.
    pub cpu: f64,
    /// It was runnable but had no CPU.
    pub starved: f64,
}

/// Occupancy of every stage in one trial; shares of time, 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Throughput, bytes per second.
    pub rate: f64,
    /// The same up to the last flush: without what the pool took up.
    pub durable_rate: f64,
    /// Requested rate, bytes per second; none: unthrottled.
    pub asked: Option<f64>,
    /// Events were lost.
    pub lost: bool,
    /// The source was blocked on its connections.
    pub source_blocked: f64,
    /// Number of intake threads; what follows is of the busiest.
    pub intakes: usize,
    /// The intake had work.
    pub intake_busy: f64,
    /// The intake was runnable but had no CPU.
    pub intake_starved: f64,
    /// The intake was on a CPU.
    pub intake_cpu: f64,
    /// A connection waited for a free block.
    pub pool_empty: f64,
    /// Each reducer thread.
    pub reducers: Vec<ReducerEvidence>,
    /// Every volume.
    pub volumes: Vec<VolumeEvidence>,
    /// Failed condition of the drain, if any.
    pub drain_behind: Option<String>,
    /// The source kept its schedule, but the trial failed.
    pub failed: bool,
}

impl Evidence {
    /// Evidence of a trial at the rate `asked`. `drain_behind`: failed condition of the drain; `failed`: the
    /// trial failed and not because of the source.
    pub fn of(
        measured: &TrialMeasured,
        asked: Option<f64>,
        drain_behind: Option<String>,
        failed: bool,
    ) -> Self {
        let elapsed_ns = measured.elapsed_ns.max(1) as f64;
        let share = |ns: u64| (ns as f64 / elapsed_ns).min(1.0);
        let record = &measured.record;
        let volumes =
            record.volumes.iter().zip(&measured.occupancy.volumes).map(|(report, busy)| VolumeEvidence {
                path: report
                    .directory
                    .as_ref()
                    .and_then(|d| d.parent())
                    .map_or(NULL.into(), |p| p.display().to_string()),
                full: busy.full,
                segment_wait: busy.segment_wait,
                writer_starved: share(report.cpu.run_delay_ns.unwrap_or(0)),
                write_ms_max: busy.write_ns_max as f64 / 1e6,
            });
        let reducers = record.reducers_cpu.iter().zip(&measured.occupancy.reducers);
        let reducers = reducers.map(|(thread, &busy)| ReducerEvidence {
            busy,
            cpu: share(thread.cpu_ns),
            starved: share(thread.run_delay_ns.unwrap_or(0)),
        });
        let intake = record.busiest_intake();
        Self {
            reducers: reducers.collect(),
            rate: measured.received_bytes_per_second(),
            durable_rate: measured.durable_bytes_per_second(),
            asked,
            lost: lost_events(measured) > 0,
            source_blocked: share(measured.source.blocked_ns) / f64::from(measured.source_threads.max(1)),
            intakes: record.intakes_cpu.len(),
            intake_busy: 1.0 - measured.occupancy.intake_idle,
            intake_starved: share(intake.run_delay_ns.unwrap_or(0)),
            intake_cpu: share(intake.cpu_ns),
            pool_empty: measured.occupancy.pool_wait,
            volumes: volumes.collect(),
            drain_behind,
            failed,
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Names the limiting stage, with the figures that show it.
///
/// Each stage's measured share is divided by its threshold. Stages are tested from the end of the
/// path, because a full stage fills all stages before it. If none exceeds its threshold but the
/// trial failed, the bottleneck is not resolved, and the nearest stages are candidates.
pub fn limiting(evidence: &Evidence) -> (Stage, String) {
    if let Some(behind) = &evidence.drain_behind {
        // That sentence states MB/s.
        let rate = megabytes_per_second(evidence.rate);
        return (Stage::Drain, format!("{behind}; recording continued at {rate}"));
    }
    let suspects = suspects(evidence);
    if let Some(suspect) = suspects.iter().find(|suspect| suspect.score >= CLEAR) {
        return (suspect.stage.clone(), suspect.text.clone());
    }
    if evidence.failed {
        return (Stage::Unresolved, candidates(suspects));
    }
    let text = format!(
        "the source was throttled only {} of the time, and no later stage was saturated",
        percent(evidence.source_blocked)
    );
    (Stage::Source, text)
}

/// Stages nearest their thresholds, the nearest first.
fn candidates(mut suspects: Vec<Suspect>) -> String {
    suspects.retain(|suspect| suspect.score >= SUSPICIOUS);
    suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
    let named = suspects.iter().take(CANDIDATES_MAX);
    let named: Vec<String> =
        named.map(|suspect| format!("{} ({})", suspect.stage, percent(suspect.score))).collect();
    match named.is_empty() {
        true => "no stage was near its threshold".to_owned(),
        false => format!("candidates, with the share of their thresholds: {}", named.join(", ")),
    }
}

struct Suspect {
    stage: Stage,
    score: f64,
    text: String,
}

/// Stages with their evidence, from the end of the path.
fn suspects(evidence: &Evidence) -> Vec<Suspect> {
    let last = [processor(evidence), reduction(evidence), recorder(evidence), network(evidence)];
    volume(evidence).into_iter().chain(last.into_iter().flatten()).collect()
}

fn starved(evidence: &Evidence) -> f64 {
    let writers = evidence.volumes.iter().map(|v| v.writer_starved);
    let reducers = evidence.reducers.iter().map(|r| r.starved);
    writers.chain(reducers).fold(evidence.intake_starved, f64::max)
}

fn volume(evidence: &Evidence) -> Option<Suspect> {
    let volume = evidence.volumes.iter().max_by(|a, b| a.full.total_cmp(&b.full))?;
    if volume.path == NULL || volume.writer_starved >= STARVED || evidence.intake_starved >= 2.0 * STARVED {
        return None;
    }
    // Waiting for a reducer thread also empties the pool.
    let pool_empty = if is_reduction_saturated(evidence) { 0.0 } else { evidence.pool_empty / POOL_EMPTY };
    let score = (volume.full / FULL).max(volume.segment_wait / FULL).max(pool_empty);
    let text = format!(
        "its queue was full {} of the time and the pool empty {}; longest write {:.0} ms",
        percent(volume.full),
        percent(evidence.pool_empty),
        volume.write_ms_max
    );
    Some(Suspect { stage: Stage::Volume(volume.path.clone()), score, text })
}

fn processor(evidence: &Evidence) -> Option<Suspect> {
    let starved = starved(evidence);
    let text = format!("the recorder's threads were runnable without a CPU {} of the time", percent(starved));
    Some(Suspect { stage: Stage::Processor, score: starved / STARVED, text })
}

fn busiest(evidence: &Evidence) -> Option<&ReducerEvidence> {
    evidence.reducers.iter().max_by(|a, b| a.busy.total_cmp(&b.busy))
}

fn is_reduction_saturated(evidence: &Evidence) -> bool {
    busiest(evidence).is_some_and(|busiest| busiest.busy >= SATURATED)
}

fn reduction(evidence: &Evidence) -> Option<Suspect> {
    let busiest = busiest(evidence)?;
    let text = format!(
        "of {} threads that reduce the busiest was busy {} of the time, {} on its processor; the pool was \
         empty {}",
        evidence.reducers.len(),
        percent(busiest.busy),
        percent(busiest.cpu),
        percent(evidence.pool_empty)
    );
    Some(Suspect { stage: Stage::Reduction, score: busiest.busy / SATURATED, text })
}

fn recorder(evidence: &Evidence) -> Option<Suspect> {
    let which = if evidence.intakes > 1 { "busiest " } else { "" };
    let text = format!(
        "the {which}intake thread was busy {} of the time, {} on a CPU, and the volumes' queues were not \
         full",
        percent(evidence.intake_busy),
        percent(evidence.intake_cpu)
    );
    Some(Suspect { stage: Stage::Recorder, score: evidence.intake_busy / SATURATED, text })
}

fn network(evidence: &Evidence) -> Option<Suspect> {
    let text = format!(
        "the source was throttled {} of the time while the intake was idle {}",
        percent(evidence.source_blocked),
        percent(1.0 - evidence.intake_busy)
    );
    Some(Suspect { stage: Stage::Network, score: evidence.source_blocked / HELD_BACK, text })
}

/// Limit after `stage`: from the trial without it, or from the ceilings of the others. "Not resolved" if it
/// is below `held`, a rate in bytes per second that held: a short measurement alone was disturbed.
pub fn next(
    stage: &Stage,
    ceilings: &Ceilings,
    relieved: Option<&Evidence>,
    held: Option<f64>,
) -> Option<NextLimit> {
    if let (Stage::Volume(_), Some(relieved)) = (stage, relieved) {
        let (stage, evidence) = limiting(relieved);
        return Some(next_above(stage.to_string(), relieved.rate, held, |reached| {
            format!(
                "with blocks discarded instead of written the same path reached {reached}, where {evidence}"
            )
        }));
    }
    let volumes: f64 = ceilings.volumes.iter().filter_map(|v| v.bytes_per_second).float_sum();
    let others = [
        (Stage::Network, ceilings.network_bytes_per_second),
        (Stage::Source, ceilings.source_bytes_per_second),
        (Stage::Volume("sum".into()), Some(volumes).filter(|&sum| sum > 0.0)),
    ];
    let is_volume = |stage: &Stage| matches!(stage, Stage::Volume(_));
    let lowest = others
        .into_iter()
        .filter(|(other, _)| other != stage && !(is_volume(other) && is_volume(stage)))
        .filter_map(|(other, rate)| rate.map(|rate| (other, rate)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let name = match lowest.0 {
        Stage::Volume(_) if ceilings.volumes.len() == 1 => format!("volume {}", ceilings.volumes[0].path),
        Stage::Volume(_) => "volumes together".into(),
        other => other.to_string(),
    };
    let evidence = |reached: &str| format!("measured alone, {name} reached {reached}");
    Some(next_above(name.clone(), lowest.1, held, evidence))
}

/// The next limit at `reached` bytes per second; not resolved below `held`.
fn next_above(
    stage: String,
    reached: f64,
    held: Option<f64>,
    evidence: impl Fn(&str) -> String,
) -> NextLimit {
    let Some(held) = held.filter(|held| reached < *held) else {
        let evidence = evidence(&rate(reached));
        return NextLimit { stage, bytes_per_second: Some(reached), evidence };
    };
    let [reached, held] = rates([reached, held]);
    NextLimit {
        stage: Bottleneck::NOT_RESOLVED.into(),
        bytes_per_second: None,
        evidence: format!("{}; that is less than {held}, which held", evidence(&reached)),
    }
}

/// A stage that may limit the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Nominee {
    /// The stage.
    pub stage: Stage,
    /// The figures that nominate it, one sentence.
    pub evidence: String,
    /// The figures as a share of their thresholds.
    pub score: f64,
    /// Rate of the trial with these figures, bytes per second; none: unthrottled.
    pub asked: Option<f64>,
}

impl Nominee {
    /// Whether its figures pass the rule, so that it is named even if it cannot be tested.
    pub fn is_clear(&self) -> bool {
        self.score >= CLEAR
    }
}

/// The trial that nominates. Just above the knee, buffers hide the slow stage; at higher rates they do not.
/// So the first with clear evidence counts, else the first.
fn nominating(trials: &[Evidence]) -> Option<&Evidence> {
    let is_clear = |evidence: &&Evidence| {
        let mut suspects = suspects(evidence).into_iter();
        evidence.drain_behind.is_some() || suspects.any(|suspect| suspect.score >= CLEAR)
    };
    trials.iter().find(is_clear).or(trials.first())
}

/// Stages to test, the likeliest first.
pub fn nominees(trials: &[Evidence]) -> Vec<Nominee> {
    let Some(evidence) = nominating(trials) else { return Vec::new() };
    let mut suspects = suspects(evidence);
    suspects.retain(|suspect| suspect.score >= SUSPICIOUS);
    suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
    let (stage, text) = limiting(evidence);
    let named = (stage != Stage::Unresolved).then_some(Suspect { stage, score: CLEAR, text });
    let of = |Suspect { stage, score, text }: Suspect| Nominee {
        stage,
        evidence: text,
        score,
        asked: evidence.asked,
    };
    let mut all: Vec<Nominee> = Vec::new();
    // A drain that falls behind is its own condition.
    let pool = pool(trials).filter(|_| evidence.drain_behind.is_none());
    for nominee in pool.into_iter().chain(named.into_iter().chain(suspects).map(of)) {
        if all.len() < CANDIDATES_MAX && all.iter().all(|other| other.stage != nominee.stage) {
            all.push(nominee);
        }
    }
    all
}

/// The pool, if events were lost at a rate that the path carries easily.
fn pool(trials: &[Evidence]) -> Option<Nominee> {
    let unthrottled = trials.iter().find(|trial| trial.asked.is_none())?.durable_rate;
    let lost = trials.iter().filter(|trial| trial.lost && trial.pool_empty > 0.0);
    let rated = lost.filter_map(|trial| trial.asked.map(|asked| (asked, trial)));
    let (asked, lowest) = rated.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let [at, carried] = rates([asked, unthrottled]);
    (asked < POOL_SHARE * unthrottled).then(|| Nominee {
        stage: Stage::Pool,
        evidence: format!(
            "events were lost at {at}, while the path carried {carried} without a schedule; the pool was \
             empty {} of the time",
            percent(lowest.pool_empty)
        ),
        score: CLEAR,
        asked: Some(asked),
    })
}

/// Candidates of a bottleneck that is not resolved, one sentence.
pub fn unresolved(trials: &[Evidence]) -> String {
    candidates(nominating(trials).map_or_else(Vec::new, suspects))
}

#[cfg(test)]
#[path = "bottleneck_tests.rs"]
mod tests;
