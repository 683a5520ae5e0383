//! Blocks of a qualification report: proof, bottleneck, trials, event ledger, cost, comparison with the
//! requirement, and what was not tested. Documents start with the verdict, terminal pages end with it.

mod bottleneck;
mod cost;
mod ledger;
mod proof;
mod staircase;
mod verdict;

use std::cmp::Ordering;

use keepup_measure::sum::Sums;
use keepup_results::{ResultSummary, SessionLoad, TrialResult, VolumeCeiling, machine_name};

pub(crate) use self::bottleneck::block as bottleneck;
pub(crate) use self::cost::block as cost;
pub(crate) use self::ledger::block as ledger;
pub(crate) use self::proof::block as proof;
pub(crate) use self::verdict::{brief, full};
use crate::format::{digits, or_not_measured, rate, rates, seconds, shorten};
use crate::page::{Block, Fact, Headline, Item, Page};
use crate::table::{Table, Tone, left, right};

/// Longest path in a table. The summary has the full path.
const PATH_CHARACTERS_MAX: usize = 40;

/// Report page with at most `trials_max` trials.
pub(crate) fn page(summary: &ResultSummary, trials_max: usize) -> Page {
    Page {
        headline: headline(summary),
        blocks: vec![
            proof(summary),
            bottleneck(summary.bottleneck.as_ref()),
            staircase::block(&summary.trials, trials_max),
            ledger(&summary.ledger),
            cost(summary),
            comparison(summary),
            limits(summary),
        ],
    }
}

/// Table of all trials.
pub(crate) fn staircase(trials: &[TrialResult]) -> Block {
    staircase::block(trials, usize::MAX)
}

pub(crate) fn headline(summary: &ResultSummary) -> Headline {
    let profile = &summary.profile;
    let required = summary.required_bytes_per_second;
    let above = summary.failed_above.as_ref();
    let qualified = summary.qualified_bytes_per_second.zip(summary.headroom);
    let [held, failed, required] = rates([
        qualified.map_or(required, |(held, _)| held),
        above.map_or(required, |above| above.bytes_per_second),
        required,
    ]);
    let sentence = match qualified {
        Some((_, headroom)) => format!(
            "{held} sustained{} without loss: {}x the {required} that {profile} requires ({}x wanted).",
            summary
                .soak
                .map(|soak| format!(" for {}", seconds(proof::soak_seconds(&soak))))
                .unwrap_or_default(),
            digits(headroom),
            digits(summary.headroom_wanted),
        ),
        None => format!("No rate passed a whole soak; {profile} requires {required}."),
    };
    let failed = above.map(|above| format!(" Lowest failure: {}.", proof::failed(above, failed)));
    let mut items = vec![Item::Text(format!("{sentence}{}", failed.unwrap_or_default()))];
    if !summary.loads.is_empty() {
        let spec = |load: &SessionLoad| shorten(&load.shown.spec, PATH_CHARACTERS_MAX);
        let specs: Vec<String> = summary.loads.iter().map(spec).collect();
        items.push(Item::Text(format!("Background load: {}.", specs.join("; "))));
    }
    let reasons = reasons(summary);
    if !reasons.is_empty() {
        items.push(Item::List(reasons));
    }
    let machine = machine_name(&summary.environment).unwrap_or_else(|| "this machine".to_owned());
    Headline {
        verdict: summary.verdict.to_string(),
        tone: Tone::of(summary.verdict),
        title: format!("{profile} on {machine}, {}, result {}", summary.created, summary.id),
        items,
    }
}

fn reasons(summary: &ResultSummary) -> Vec<String> {
    let mut reasons = summary.verdict_reasons.clone();
    if summary.interrupted {
        reasons.push("the measurement was interrupted: the figures cover only its first part".to_owned());
    }
    reasons
}

pub(crate) fn comparison(summary: &ResultSummary) -> Block {
    let ceilings = &summary.ceilings;
    let mut rows = vec![
        ("required by the profile".to_owned(), Some(summary.required_bytes_per_second)),
        ("sustained for the whole soak".to_owned(), summary.qualified_bytes_per_second),
        ("sustained in trials (the knee)".to_owned(), summary.knee_bytes_per_second),
    ];
    rows.extend(volumes(&ceilings.volumes));
    rows.extend([
        ("network path alone".to_owned(), ceilings.network_bytes_per_second),
        ("source alone".to_owned(), ceilings.source_bytes_per_second),
        ("copying in memory alone".to_owned(), ceilings.memory_bytes_per_second),
    ]);
    let required = summary.required_bytes_per_second;
    let rows = rows.into_iter().map(|(name, figure)| {
        let index = figure.map(|value| format!("{:.2}", value / required)).unwrap_or_default();
        vec![name.into(), or_not_measured(figure, rate).into(), index.into()]
    });
    let columns = vec![left(""), right("rate"), right("required = 1.00")];
    Block::new("Compared with the requirement", vec![Item::Table(Table { columns, rows: rows.collect() })])
}

/// Rate of the slowest volume, and the sum of all volumes if they do not affect each other.
pub(crate) fn volumes(ceilings: &[VolumeCeiling]) -> Vec<(String, Option<f64>)> {
    let measured = |volume: &&VolumeCeiling| volume.bytes_per_second.is_some();
    let slowest = ceilings.iter().filter(measured).min_by(|a, b| {
        let rates = a.bytes_per_second.zip(b.bytes_per_second);
        rates.map_or(Ordering::Equal, |(a, b)| a.total_cmp(&b))
    });
    let Some(named) = slowest.or(ceilings.first()) else { return Vec::new() };
    let path = shorten(&named.path, PATH_CHARACTERS_MAX);
    if ceilings.len() == 1 {
        return vec![(format!("volume {path} alone"), named.bytes_per_second)];
    }
    let rates: Option<Vec<f64>> = ceilings.iter().map(|volume| volume.bytes_per_second).collect();
    let sum = rates.map(|rates| rates.iter().float_sum());
    vec![
        (format!("slowest volume {path} alone"), named.bytes_per_second),
        (format!("sum of all {} volumes alone", ceilings.len()), sum),
    ]
}

pub(crate) fn limits(summary: &ResultSummary) -> Block {
    let mut items = Vec::new();
    if summary.limits.is_empty() {
        items.push(Item::Text("No limits of this test were recorded.".to_owned()));
    } else {
        items.push(Item::List(summary.limits.clone()));
    }
    items.push(Item::Facts(vec![
        Fact::new("environment", format!("{}, keepup {}", summary.environment_hash, summary.tool_version)),
        Fact::command("repeat with", summary.command.clone()),
        Fact::path("result", summary.result_directory.clone()),
    ]));
    Block::new("What was not tested, and how to repeat the test", items)
}
