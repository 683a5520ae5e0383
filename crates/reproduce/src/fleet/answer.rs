//! Number of hosts for a detector: by measurement, extrapolated where it was not measured, and by the model.
use keepup_measure::stats::median;
use keepup_results::format::{plural, rate as rate_text};
use keepup_results::{PaperAnswer, PaperCell, PaperColumn, PaperRow, PaperTable};

use super::{Fleet, MB, Measured, Question};
use crate::NOT_MEASURED;

/// Share of the predicted rate below which the recorders do not add up. Searches differ by a few per cent.
const ADDS_UP: f64 = 0.9;

/// "1 recorder", "2 recorders".
fn recorders(count: u32) -> String {
    plural(u64::from(count), "recorder")
}

/// A number of hosts that was measured, or follows from the largest measured number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Needed {
    /// So many recorders carried the rate.
    Measured(u32),
    /// `from` recorders carried `each` bytes per second per recorder; `hosts` of them would be enough. Fewer
    /// may be, if the sources were too slow for the measurement (`is_source_bound`).
    Extrapolated { hosts: u32, from: u32, each: f64, is_source_bound: bool },
    /// What `from` recorders share limits them to `rate` bytes per second: more hosts do not help.
    Shared { from: u32, rate: f64 },
}

/// Number of recorders for `wanted` bytes per second by the measurements; none if nothing was measured.
pub(super) fn needed(measured: &[Measured<'_>], wanted: f64) -> Option<Needed> {
    // The slowest run counts.
    let lowest = |of: &Measured<'_>| of.qualified()?.into_iter().reduce(f64::min);
    let known: Vec<(&Measured<'_>, f64)> = measured.iter().filter_map(|of| Some((of, lowest(of)?))).collect();
    if let Some((of, _)) = known.iter().find(|(_, rate)| *rate >= wanted) {
        return Some(Needed::Measured(of.recorders));
    }
    let (largest, rate) = known.into_iter().max_by_key(|(of, _)| of.recorders)?;
    let from = largest.recorders;
    if largest.is_shared() {
        return Some(Needed::Shared { from, rate });
    }
    let each = rate / f64::from(from);
    let hosts = (wanted / each).ceil();
    (each > 0.0 && hosts <= f64::from(u32::MAX)).then_some(Needed::Extrapolated {
        hosts: hosts as u32,
        from,
        each,
        is_source_bound: largest.is_source_bound(),
    })
}

fn needed_cell(needed: Option<Needed>) -> PaperCell {
    match needed {
        None => PaperCell::words(NOT_MEASURED),
        Some(Needed::Measured(hosts)) => PaperCell::published(f64::from(hosts)),
        Some(Needed::Extrapolated { hosts, is_source_bound, .. }) => {
            let note = if is_source_bound { "extrapolated; sources too slow" } else { "extrapolated" };
            PaperCell { note: Some(note.to_owned()), ..PaperCell::published(f64::from(hosts)) }
        }
        Some(Needed::Shared { .. }) => {
            PaperCell::words("limited by switch or sources: more hosts do not help")
        }
    }
}

/// Numbers of hosts with and without headroom.
pub(super) fn table(fleet: &Fleet<'_>, question: &Question<'_>) -> PaperTable {
    let rows = question.required().map_or_else(Vec::new, |(required, headroom)| {
        let wanted = [required, required * headroom];
        let model = |wanted: f64| match (&fleet.model, fleet.enough(wanted)) {
            (None, _) => PaperCell::words(NOT_MEASURED),
            (Some(_), None) => PaperCell::words("no number is enough"),
            (Some(_), Some(hosts)) => PaperCell::published(f64::from(hosts)),
        };
        let row = |name: &str, cells: [PaperCell; 2]| {
            let required = PaperCell::published(required / MB);
            PaperRow::here(name, std::iter::once(required).chain(cells).collect())
        };
        vec![
            row("by measurement", wanted.map(|wanted| needed_cell(needed(&fleet.measured, wanted)))),
            row("by the model", wanted.map(model)),
        ]
    });
    PaperTable {
        title: format!("Hosts required for {}", question.profile),
        stands: question.stands.into(),
        head: "".into(),
        columns: vec![
            PaperColumn::new("required", "MB/s"),
            PaperColumn::new("hosts", ""),
            PaperColumn::new("with headroom", ""),
        ],
        rows,
    }
}

pub(super) fn answer(fleet: &Fleet<'_>, question: &Question<'_>) -> PaperAnswer {
    let here = question.required().and_then(|(required, headroom)| {
        let measured = measured_words(fleet, required, headroom)?;
        Some(format!("{measured} {}", model_words(fleet, required, headroom)))
    });
    PaperAnswer {
        question: question.question.clone(),
        published: question.published.clone(),
        here: here.unwrap_or_else(|| NOT_MEASURED.to_owned()),
    }
}

/// The measured answer, and what is extrapolated.
fn measured_words(fleet: &Fleet<'_>, required: f64, headroom: f64) -> Option<String> {
    let words = |wanted| {
        Some(match needed(&fleet.measured, wanted)? {
            Needed::Measured(hosts) => format!("{hosts}, measured"),
            Needed::Extrapolated { hosts, from, each, is_source_bound } => format!(
                "{hosts}, extrapolated from {} at {} each; not measured{}",
                recorders(from),
                rate_text(each),
                if is_source_bound { ", and fewer may be enough: the sources were too slow" } else { "" }
            ),
            Needed::Shared { from, rate } => format!(
                "no number; switch or sources limit {} to {}, and more hosts do not help",
                recorders(from),
                rate_text(rate)
            ),
        })
    };
    Some(format!("{}; with {headroom}x headroom: {}.", words(required)?, words(required * headroom)?))
}

fn model_words(fleet: &Fleet<'_>, required: f64, headroom: f64) -> String {
    let words = |wanted| match fleet.enough(wanted) {
        Some(hosts) => hosts.to_string(),
        None => "no number is enough".to_owned(),
    };
    match &fleet.model {
        None => "No model: one recorder was not measured.".to_owned(),
        Some(_) => {
            format!("By the model: {}; with headroom: {}.", words(required), words(required * headroom))
        }
    }
}

/// How the model was fitted, and where it misses the measurements.
pub(super) fn findings(fleet: &Fleet<'_>) -> Vec<String> {
    let Some(model) = &fleet.model else { return Vec::new() };
    let mut findings = vec![format!(
        "The model is fitted to one recorder, which qualified at {}.",
        rate_text(model.one.value)
    )];
    findings.push(match (model.shared, fleet.shared_at) {
        (Some(shared), Some(at)) => format!(
            "What the recorders share is fitted to {}, where no recorder limited the rate: {}.",
            recorders(at),
            rate_text(shared.value)
        ),
        _ => "No measurement named a limit that the recorders share (switch or sources); the model has none."
            .to_owned(),
    });
    let ratios = fleet.measured.iter().filter(|of| of.recorders > 1 && fleet.shared_at != Some(of.recorders));
    let ratio = |of: &Measured<'_>| {
        let is = median(&of.qualified()?)?;
        Some((of.recorders, is / fleet.predicted(of.recorders)?.value))
    };
    let ratios: Vec<(u32, f64)> = ratios.filter_map(ratio).collect();
    findings.extend(ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(count, ratio)| {
        match *ratio < ADDS_UP {
            true => format!(
                "{} carry {:.0} % of what the model predicts: they are slower than the first one, or share a \
                 limit. Numbers beyond the measured ones are too low.",
                recorders(*count),
                100.0 * ratio
            ),
            false => format!("The recorders add up: the lowest ratio to the model is {ratio:.2}."),
        }
    }));
    findings
}

pub(super) fn limits(fleet: &Fleet<'_>) -> Vec<String> {
    let mut limits = vec![
        "the model assumes that all recorders are as the first one of the fleet file, and that streams are \
         distributed evenly"
            .to_owned(),
        "detectors are simulated by the sources of the fleet, in keepup's own protocol over TCP".to_owned(),
    ];
    let most = fleet.measured.iter().filter(|of| of.qualified().is_some()).map(|of| of.recorders).max();
    limits.push(match most {
        Some(most) => format!("more than {} were not measured", recorders(most)),
        None => "no number of recorders qualified at any rate".to_owned(),
    });
    let inconclusive = fleet.measured.iter().filter(|of| of.qualified().is_none() && !of.results.is_empty());
    limits.extend(
        inconclusive
            .map(|of| format!("{} qualified at no rate in at least one run", recorders(of.recorders))),
    );
    limits.extend(fleet.not_counted.iter().cloned());
    let bound = fleet.measured.iter().filter(|of| of.is_source_bound());
    limits.extend(bound.map(|of| {
        format!("the sources were too slow for {}, which may carry more", recorders(of.recorders))
    }));
    limits
}
