//! The blocks of a qualification's page: what is proven, what limits it, what was tried, where events went,
//! what it costs, how far each part is from the requirement, what was not tested. A document begins with the
//! verdict, a terminal's page ends with it.

mod cost;
mod ledger;
mod proof;
mod staircase;
mod verdict;

use std::cmp::Ordering;

use keepup_results::{Bottleneck, ResultSummary, SessionLoad, TrialResult, Verdict, VolumeCeiling};

pub(crate) use self::cost::block as cost;
pub(crate) use self::ledger::block as ledger;
pub(crate) use self::proof::block as proof;
pub(crate) use self::verdict::{brief, full};
use crate::format::{digits, or_not_measured, rate, seconds, shorten};
use crate::page::{Block, Fact, Headline, Item, Page, Table, Tone, left, right};

/// Longest path in a table; the full one stands in the summary.
const PATH_CHARACTERS_MAX: usize = 40;

/// The page of a summary, with at most so many trials in its staircase.
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

/// Every trial.
pub(crate) fn staircase(trials: &[TrialResult]) -> Block {
    staircase::block(trials, usize::MAX)
}

pub(crate) fn headline(summary: &ResultSummary) -> Headline {
    let profile = &summary.profile;
    let required = rate(summary.required_bytes_per_second);
    let sentence = match (summary.qualified_bytes_per_second, summary.headroom) {
        (Some(qualified), Some(headroom)) => format!(
            "{} held{} without loss: {} times the {required} that {profile} requires, {} wanted.",
            rate(qualified),
            summary
                .soak
                .map(|soak| format!(" for {}", seconds(proof::soak_seconds(&soak))))
                .unwrap_or_default(),
            digits(headroom),
            digits(summary.headroom_wanted),
        ),
        _ => format!("No rate was held for a whole soak; {profile} requires {required}."),
    };
    let mut items = vec![Item::Text(sentence)];
    if !summary.loads.is_empty() {
        let spec = |load: &SessionLoad| shorten(&load.shown.spec, PATH_CHARACTERS_MAX);
        let specs: Vec<String> = summary.loads.iter().map(spec).collect();
        items.push(Item::Text(format!("Beside it ran: {}.", specs.join("; "))));
    }
    let reasons = reasons(summary);
    if !reasons.is_empty() {
        items.push(Item::List(reasons));
    }
    Headline {
        verdict: summary.verdict.to_string(),
        tone: match summary.verdict {
            Verdict::Fit => Tone::Good,
            Verdict::FitWithLimits | Verdict::Inconclusive => Tone::Doubtful,
            Verdict::NotFit => Tone::Bad,
        },
        title: format!("{profile} on this machine, {}, result {}", summary.created, summary.id),
        items,
    }
}

fn reasons(summary: &ResultSummary) -> Vec<String> {
    let mut reasons = summary.verdict_reasons.clone();
    if summary.interrupted {
        reasons.push("the measurement was interrupted: figures are those of its first part".to_owned());
    }
    reasons
}

pub(crate) fn bottleneck(found: Option<&Bottleneck>) -> Block {
    let text = match found {
        None => "What limits the rate was not determined.".to_owned(),
        Some(found) => {
            let next = found.next.as_ref().map_or_else(
                || "What would limit after it was not determined.".to_owned(),
                |next| {
                    let at = next.bytes_per_second.map(|r| format!(" at {}", rate(r))).unwrap_or_default();
                    format!("The next limit is {}{at}: {}.", next.stage, next.evidence)
                },
            );
            format!("The limit is {}: {}. {next}", found.stage, found.evidence)
        }
    };
    Block::new("What limits the rate", vec![Item::Text(text)])
}

pub(crate) fn comparison(summary: &ResultSummary) -> Block {
    let ceilings = &summary.ceilings;
    let mut rows = vec![
        ("required by the profile".to_owned(), Some(summary.required_bytes_per_second)),
        ("held for the whole soak".to_owned(), summary.qualified_bytes_per_second),
        ("held in trials (the knee)".to_owned(), summary.knee_bytes_per_second),
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
    Block::new("Against the requirement", vec![Item::Table(Table { columns, rows: rows.collect() })])
}

/// The slowest volume, and what all together would do if they did not disturb one another.
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
    let sum = ceilings.iter().map(|volume| volume.bytes_per_second).sum();
    vec![
        (format!("slowest volume {path} alone"), named.bytes_per_second),
        (format!("sum of all {} volumes alone", ceilings.len()), sum),
    ]
}

pub(crate) fn limits(summary: &ResultSummary) -> Block {
    let mut items = Vec::new();
    if summary.limits.is_empty() {
        items.push(Item::Text("No limit of this test was recorded.".to_owned()));
    } else {
        items.push(Item::List(summary.limits.clone()));
    }
    items.push(Item::Facts(vec![
        Fact::new("environment", format!("{}, keepup {}", summary.environment_hash, summary.tool_version)),
        Fact::command("repeat with", summary.command.clone()),
        Fact::path("result in", summary.result_directory.clone()),
    ]));
    Block::new("What was not tested, and how to repeat", items)
}
