//! CERN's note on VME: what reading registers costs by each way, and from how many on which way pays.
//!
//! Sections 3.1 to 3.4: one register, 0x100, 0x10000 and 0x80000 of them, by single accesses, by block
//! transfer and by DMA; the ways of each target here stand beside them at the same depths.
use keepup_measure::stats::median;
use keepup_model::papers::{PaperUnit, PublishedFigure};
use keepup_results::{
    PaperAnswer, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable,
    RegisterBreakEven, RegisterMethod, RegisterSummary, RegisterVerdict, Stored, StoredResult,
};
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::found::{Reproduced, name_of};
use crate::published::{Edition, MIB, cell};
use crate::{PaperRequest, Reproduction, file, labelled};

/// Measured where no target is given: memory, and keepup's own target of IPbus.
const DEFAULTS: [&str; 2] = ["ram", "ipbus:self"];
/// Time of each target at full scale, and at least, seconds.
const SECONDS: f64 = 30.0;
const SECONDS_MIN: f64 = 2.0;
/// Tables: where each stands, what it is of, registers read at a time.
const TABLES: [(&[&str], &str, u64); 4] = [
    (&["section 3.1"], "one register", 1),
    (&["section 3.2", "section 3.3"], "0x100 registers at a time", 0x100),
    (&["section 3.4.2"], "0x80000 registers at a time, by block transfer", 0x80000),
    (&["section 3.4.4"], "0x10000 registers at a time, by DMA", 0x10000),
];
const TIME: &str = "time per word";

/// The paper.
pub(crate) struct Cern;

/// A target that was measured, here or elsewhere.
struct Measured<'f> {
    /// What it is called in tables.
    name: String,
    summary: &'f RegisterSummary,
}

impl Reproduction for Cern {
    fn name(&self) -> &'static str {
        "cern-vme"
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let targets: Vec<&str> = match request.targets.is_empty() {
            true => DEFAULTS.to_vec(),
            false => request.targets.iter().map(String::as_str).collect(),
        };
        let targets = targets.iter().map(|target| labelled(target, &[("args", (*target).into())]));
        let time = format!("{:.0} ms", 1e3 * (SECONDS * request.scale).max(SECONDS_MIN));
        let run = [("verb", Value::from("register compare")), ("time", time.into())];
        let run = Table::from_iter(run.map(|(name, value)| (name.to_owned(), value)));
        // Each result has thirty trials of its own.
        let title = "Registers: single accesses against transfers";
        Ok(file(title, 1, run, [("target", targets.collect())]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = Edition::of(self.name());
        let measured = measured(found);
        let mut page = found.begun(&edition);
        page.tables =
            TABLES.iter().map(|(places, of, n)| depth(&edition, &measured, places, of, *n)).collect();
        page.tables.push(set_up(&edition, &measured));
        page.tables.push(break_even(&edition, &measured));
        page.curves = vec![curve(&edition, &measured)];
        page.findings = findings(&measured);
        page.answers = answers(&measured, &edition);
        page.limits.extend(limits(&measured));
        page
    }
}

/// All targets: those of this machine, then those of results measured elsewhere.
fn measured<'f>(found: &'f Reproduced<'_>) -> Vec<Measured<'f>> {
    let register = |result: &'f StoredResult| match &result.summary {
        Stored::Register(summary) => Some(&**summary),
        _ => None,
    };
    let target = |summary: &RegisterSummary| summary.run.as_ref().map(|run| run.target.clone());
    let here = found.cells(&[]).flat_map(|cell| &cell.results).filter_map(|result| {
        let summary = register(result)?;
        Some(Measured { name: format!("{}{}", target(summary)?, label(summary)), summary })
    });
    let elsewhere = found.with().iter().filter_map(|result| {
        let summary = register(result)?;
        let name = format!("{}, {}{}", name_of(result), target(summary)?, label(summary));
        Some(Measured { name, summary })
    });
    here.chain(elsewhere).collect()
}

/// What the device record says against taking a target's times for those of hardware.
fn label(summary: &RegisterSummary) -> &'static str {
    let device = summary.run.as_ref().map(|run| &run.device);
    match device.map(|device| (device.is_simulated, device.is_virtual)) {
        Some((true, _)) => " (simulated)",
        Some((false, Some(true))) => " (virtual machine)",
        _ => "",
    }
}

impl Measured<'_> {
    fn methods(&self) -> impl Iterator<Item = &RegisterMethod> {
        let reads = |method: &&RegisterMethod| !method.writes;
        self.summary.run.iter().flat_map(|run| &run.methods).filter(reads)
    }

    /// Microseconds for each register of every trial at a depth.
    fn us(method: &RegisterMethod, depth: u64) -> Vec<f64> {
        let points = method.points.iter().filter(|point| point.depth == depth);
        points.flat_map(|point| point.seconds.iter().map(move |s| s / depth as f64 * 1e6)).collect()
    }

    /// Bytes of a register.
    fn bytes(&self) -> f64 {
        self.summary.run.as_ref().map_or(0.0, |run| f64::from(run.width_bits) / 8.0)
    }

    /// The way that takes least at a depth, and its time for each register in us.
    fn best(&self, depth: u64) -> Option<(&str, f64)> {
        let ways = self
            .methods()
            .filter_map(|method| Some((method.name.as_str(), median(&Self::us(method, depth))?)));
        ways.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn cell_of(method: &RegisterMethod, depth: u64, values: &[f64]) -> PaperCell {
    match values.is_empty() {
        true if method.left_out.contains(&depth) => PaperCell::words("takes too long"),
        true => PaperCell::words("not measured"),
        false => PaperCell::measured(values),
    }
}

/// The ways at one depth, beside what the note has of it.
fn depth(edition: &Edition, measured: &[Measured<'_>], places: &[&str], of: &str, depth: u64) -> PaperTable {
    let published = || edition.figures().iter().filter(|figure| places.contains(&figure.place.as_str()));
    let rate_of = |time: &PublishedFigure| {
        let same = |f: &&PublishedFigure| f.condition == time.condition && f.system == time.system;
        published().filter(|figure| figure.quantity == "rate").find(same)
    };
    let rows = published().filter(|figure| figure.quantity == TIME).map(|time| PaperRow {
        name: format!("{}, {}", time.system, time.condition),
        is_here: false,
        cells: vec![
            cell(time, PaperUnit::Microseconds),
            rate_of(time).map_or_else(PaperCell::default, |rate| cell(rate, PaperUnit::MebibytesPerSecond)),
        ],
        note: time.note.clone(),
    });
    let here = measured.iter().flat_map(|target| {
        target.methods().map(move |method| {
            let us = Measured::us(method, depth);
            let rates: Vec<f64> = us.iter().map(|us| target.bytes() / us * 1e6 / MIB).collect();
            let name = format!("{}, {}", target.name, method.name);
            PaperRow {
                name,
                is_here: true,
                cells: [&us, &rates].map(|values| cell_of(method, depth, values)).into(),
                note: None,
            }
        })
    });
    PaperTable {
        title: format!("Reading {of}"),
        stands: places.join(" and "),
        head: "by".into(),
        columns: vec![PaperColumn::new("each", "us"), PaperColumn::new("rate", "MiB/s")],
        rows: rows.chain(here).collect(),
    }
}

/// What a transfer costs before its first register, and each register.
fn set_up(edition: &Edition, measured: &[Measured<'_>]) -> PaperTable {
    let published = edition.figures().iter().filter(|figure| figure.quantity == "set-up");
    let rows = published.map(|figure| PaperRow {
        name: format!("{}, {}", figure.system, figure.condition),
        is_here: false,
        cells: vec![cell(figure, PaperUnit::Microseconds), PaperCell::default()],
        note: figure.note.clone(),
    });
    let here = measured.iter().flat_map(|target| {
        let read = |name: &str| target.methods().any(|method| method.name == name);
        let fits = target.summary.fits.iter().filter(move |fit| read(&fit.method));
        fits.filter_map(|fit| fit.elapsed.map(|cost| (fit, cost))).map(|(fit, cost)| PaperRow {
            name: format!("{}, {}", target.name, fit.method),
            is_here: true,
            cells: [cost.set_up_seconds, cost.each_seconds]
                .map(|seconds| PaperCell::measured(&[seconds * 1e6]))
                .into(),
            note: fit.knee.map(|_| "a straight line does not hold at every depth".into()),
        })
    });
    PaperTable {
        title: "What a transfer costs before its first register, and each register".into(),
        stands: "section 3.4.4".into(),
        head: "by".into(),
        columns: vec![PaperColumn::new("set-up", "us"), PaperColumn::new("each", "us")],
        rows: rows.chain(here).collect(),
    }
}

/// From how many registers on which way takes less time.
fn break_even(edition: &Edition, measured: &[Measured<'_>]) -> PaperTable {
    let published = edition.figures().iter().filter(|figure| figure.quantity == "break-even");
    let rows = published.map(|figure| PaperRow {
        name: format!("{}, {}", figure.system, figure.condition),
        is_here: false,
        cells: vec![cell(figure, PaperUnit::Words), PaperCell::default()],
        note: Some("its own set-up and times give another number: see the claims".into()),
    });
    let here = measured.iter().flat_map(|target| {
        target.summary.break_evens.iter().map(|pair| PaperRow {
            name: format!("{}, {} instead of {}", target.name, pair.way, pair.simple),
            is_here: true,
            cells: vec![verdict(&pair.elapsed), verdict(&pair.cpu)],
            note: None,
        })
    });
    PaperTable {
        title: "From where on a way pays, with the interval of 95 %".into(),
        stands: "section 3.4.4".into(),
        head: "way".into(),
        columns: vec![PaperColumn::new("less time", "registers"), PaperColumn::new("less CPU", "registers")],
        rows: rows.chain(here).collect(),
    }
}

fn verdict(verdict: &RegisterVerdict) -> PaperCell {
    let at = |note: &str, value: &f64, lower: &f64, upper: &f64| PaperCell {
        value: Some(*value),
        lowest: Some(*lower),
        highest: Some(*upper),
        runs: 1,
        note: Some(note.to_owned()),
    };
    match verdict {
        RegisterVerdict::Always => PaperCell::words("always"),
        RegisterVerdict::Never => PaperCell::words("never"),
        RegisterVerdict::NotResolved => PaperCell::words("not resolved"),
        RegisterVerdict::From { registers, lower, upper } => at("from", registers, lower, upper),
        RegisterVerdict::UpTo { registers, lower, upper } => at("up to", registers, lower, upper),
    }
}

/// The chart that sums the note up: microseconds for each register against the depth.
fn curve(edition: &Edition, measured: &[Measured<'_>]) -> PaperCurve {
    let mut series: Vec<PaperSeries> = Vec::new();
    for figure in edition.figures().iter().filter(|figure| figure.quantity == TIME) {
        let (Some(depth), Some(us)) = (depth_of(figure), cell(figure, PaperUnit::Microseconds).value) else {
            continue;
        };
        let name = format!("{}, {}", figure.system, way_of(figure));
        match series.iter_mut().find(|known| known.name == name) {
            // Of two functions at the same depth the first stands for both.
            Some(known) if known.points.iter().any(|(x, _)| *x == depth) => {}
            Some(known) => known.points.push((depth, us)),
            None => series.push(PaperSeries { name, is_here: false, points: vec![(depth, us)] }),
        }
    }
    series.iter_mut().for_each(|known| known.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    for target in measured {
        for method in target.methods() {
            let depths = method.points.iter().map(|point| point.depth);
            let points =
                depths.filter_map(|depth| Some((depth as f64, median(&Measured::us(method, depth))?)));
            let name = format!("{}, {}", target.name, method.name);
            series.push(PaperSeries { name, is_here: true, points: points.collect() });
        }
    }
    PaperCurve {
        title: "Time for each register against how many are read at a time".into(),
        stands: "section 4".into(),
        x: PaperColumn::new("registers", "at a time"),
        y: PaperColumn::new("each", "us"),
        is_log_x: true,
        series,
        note: Some("the note's own chart is not in its text; these are the figures of its tables".into()),
    }
}

/// How many registers a published figure read at a time.
fn depth_of(figure: &PublishedFigure) -> Option<f64> {
    let first = figure.condition.split(' ').next()?;
    match first.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
        None => (first == "one").then_some(1.0),
    }
}

fn way_of(figure: &PublishedFigure) -> &'static str {
    match figure.condition.rsplit(", ").next() {
        Some("block transfer") => "block transfer",
        Some("DMA") => "DMA",
        _ => "single accesses",
    }
}

fn findings(measured: &[Measured<'_>]) -> Vec<String> {
    let mut told = Vec::new();
    for target in measured {
        let at = |depth: u64| target.best(depth).map(|(way, us)| (way, us, depth));
        let depths = [at(1), at(0x100), at(0x80000)].into_iter().flatten();
        let words: Vec<String> =
            depths.map(|(way, us, depth)| format!("{us:.4} us by {way} at {depth:#x}")).collect();
        if !words.is_empty() {
            told.push(format!("{}: a register takes at best {}.", target.name, words.join(", ")));
        }
    }
    told
}

/// A pair whose break-even was found, in words.
fn pays(target: &Measured<'_>, pair: &RegisterBreakEven) -> Option<String> {
    let RegisterVerdict::From { registers, lower, upper } = pair.elapsed else { return None };
    Some(format!(
        "{}: {} instead of {} from {:.0} registers on ({:.0} to {:.0}).",
        target.name,
        pair.way,
        pair.simple,
        registers.ceil(),
        lower.ceil(),
        upper.ceil()
    ))
}

fn answers(measured: &[Measured<'_>], edition: &Edition) -> Vec<PaperAnswer> {
    let one_of = |system| edition.text("C1", [system, "specific", TIME], PaperUnit::Microseconds);
    let gain_of = |system| edition.text("C6", [system, "arrays over one register", "gain"], PaperUnit::Times);
    let pays_from = edition.text("C7", ["", "DMA", "break-even"], PaperUnit::Words);
    let joined = |words: Vec<String>| if words.is_empty() { "not measured".into() } else { words.join(" ") };
    let one = |target: &Measured<'_>| {
        let method = target.methods().next()?;
        let us = median(&Measured::us(method, 1))?;
        Some(format!("{}: {us:.3} us by {}.", target.name, method.name))
    };
    let larger = |target: &Measured<'_>| {
        let method = target.methods().next()?;
        let [one, many] = [1, 0x100].map(|depth| median(&Measured::us(method, depth)));
        Some(format!("{}, {}: by {:.2}.", target.name, method.name, one? / many?))
    };
    let pairs = measured.iter().flat_map(|t| t.summary.break_evens.iter().filter_map(|pair| pays(t, pair)));
    let pairs: Vec<String> = pairs.collect();
    vec![
        PaperAnswer {
            question: "What does reading one register cost?".into(),
            published: format!(
                "{} us on the L865, {} us on the PPC4, by their own functions.",
                one_of("L865"),
                one_of("PPC4")
            ),
            here: joined(measured.iter().filter_map(one).collect()),
        },
        PaperAnswer {
            question: "By how much is a register cheaper among 0x100 of them?".into(),
            published: format!("By {} on the L865, by {} on the PPC4.", gain_of("L865"), gain_of("PPC4")),
            here: joined(measured.iter().filter_map(larger).collect()),
        },
        PaperAnswer {
            question: "From how many registers on does a transfer pay?".into(),
            published: format!("DMA above {pays_from} words, which its own numbers do not give."),
            here: match pairs.is_empty() && !measured.is_empty() {
                true => "No pair of ways here crosses: see the table.".into(),
                false => joined(pairs),
            },
        },
    ]
}

fn limits(measured: &[Measured<'_>]) -> Vec<String> {
    let mut limits = Vec::new();
    if measured.iter().any(|target| !label(target.summary).is_empty()) {
        limits.push(
            "targets called simulated or virtual are no hardware: their times prove that the ways work and \
             in which order they come, never how fast a bus or a board is"
                .to_owned(),
        );
    }
    if measured.iter().any(|target| target.name.starts_with("ram")) {
        limits.push("ram is memory of this process: it shows what the measuring itself costs".to_owned());
    }
    limits.push("no crate and no VME bridge of the paper was there; its LynxOS was not run".to_owned());
    limits
}

#[cfg(test)]
#[path = "cern_tests.rs"]
mod tests;
