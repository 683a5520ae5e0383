//! CERN note on VME: cost of register reads by access method, and break-evens between methods.
//!
//! Sections 3.1 to 3.4: 1, 0x100, 0x10000 and 0x80000 registers by single accesses, block transfer and DMA,
//! compared with the methods of each target of this machine at the same depths.
use keepup_measure::stats::median;
use keepup_model::papers::{PaperUnit, PublishedFigure};
use keepup_results::format::digits;
use keepup_results::{
    PaperAnswer, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable,
    RegisterBreakEven, RegisterMethod, RegisterSummary, RegisterVerdict, Stored, StoredResult,
};
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::measured::{Reproduced, display_name};
use crate::published::{MIB, PublishedPaper, cell};
use crate::{NOT_MEASURED, PaperRequest, Reproduction, RequestOption, file, label, labelled};

/// Targets that every machine has: memory, and keepup's simulated IPbus target.
const DEFAULTS: [&str; 2] = ["ram", "ipbus:self"];
/// Time per target at full scale and minimum, seconds.
const SECONDS: f64 = 30.0;
const SECONDS_MIN: f64 = 2.0;
/// Kinds of tests: all methods at all depths, and a register of 2 bytes.
const METHODS: &str = "methods";
const ONE: &str = "one register";
/// Targets whose registers have 32 bits only. So have those of simulated devices with a profile (`edu`).
const WIDE: &str = "ipbus:";
/// Tables: sections, description, registers per transfer.
const TABLES: [(&[&str], &str, u64); 4] = [
    (&["section 3.3"], "one register", 1),
    (&["section 3.2", "section 3.3"], "0x100 registers per transfer", 0x100),
    (&["section 3.4.2"], "0x80000 registers per block transfer", 0x80000),
    (&["section 3.4.4"], "0x10000 registers per DMA transfer", 0x10000),
];
const TIME: &str = "time per word";
/// Method that reads through the access function of `register get`.
const GENERIC: &str = "generic";

/// The paper.
pub(crate) struct Cern;

/// Measured target of this or another machine.
struct Measured<'f> {
    /// Name in tables.
    name: String,
    summary: &'f RegisterSummary,
}

impl Reproduction for Cern {
    fn name(&self) -> &'static str {
        "cern-vme"
    }

    fn uses(&self, option: RequestOption) -> bool {
        option == RequestOption::Target
    }

    fn shows(&self, result: &StoredResult) -> bool {
        register(result).is_some()
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let simulated =
            request.simulated.iter().map(|(target, profile)| (target.as_str(), profile.as_deref()));
        let targets: Vec<(&str, Option<&str>)> = match request.targets.is_empty() {
            true => DEFAULTS.map(|target| (target, None)).into_iter().chain(simulated).collect(),
            false => request.targets.iter().map(|target| (target.as_str(), None)).collect(),
        };
        let seconds = (SECONDS * request.scale).max(SECONDS_MIN);
        let time = Value::from(format!("{:.0} ms", 1e3 * seconds));
        let of_target = |&(target, profile): &(&str, Option<&str>)| {
            let is_wide = target.starts_with(WIDE) || profile.is_some();
            let profile = profile.map(|profile| ("profile", Value::from(profile)));
            let shared = [("args", Value::from(target)), ("time", time.clone())];
            let shared = shared.into_iter().chain(profile).collect::<Vec<_>>();
            let methods = [&shared[..], &[("verb", "register compare".into())]].concat();
            let generic = ("generic", Value::from(true));
            let one = [("verb", "register read".into()), ("depth", 1.into()), ("width", 16.into()), generic];
            let one = (!is_wide).then(|| [&shared[..], &one].concat());
            let one = one.map(|settings| labelled(&label(ONE, target), &settings));
            std::iter::once(labelled(&label(METHODS, target), &methods)).chain(one).collect::<Vec<_>>()
        };
        let tests = targets.iter().flat_map(of_target).collect();
        // Each result has thirty trials.
        Ok(file("Registers: single accesses against transfers", 1, Table::new(), [("test", tests)]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = PublishedPaper::of(self.name());
        let measured = measured(found, METHODS);
        let narrow = measured_here(found, ONE);
        let mut page = found.new_page(&edition);
        page.tables = vec![depth(&edition, &narrow, &["section 3.1"], "one register of 2 bytes", 1)];
        page.tables.extend(TABLES.iter().map(|(places, of, n)| depth(&edition, &measured, places, of, *n)));
        page.tables.push(set_up(&edition, &measured));
        page.tables.push(break_even(&edition, &measured));
        page.curves = vec![curve(&edition, &measured)];
        page.findings = findings(&measured);
        page.answers = answers(&measured, &edition);
        page.answers.push(generic_answer(&narrow, &edition));
        page.limits.extend(limits(&measured));
        page
    }
}

/// All targets of a kind of test: those of this machine, then those of other machines.
fn measured<'f>(found: &'f Reproduced<'_>, kind: &str) -> Vec<Measured<'f>> {
    let elsewhere = found.with().iter().filter_map(|result| {
        let summary = register(result)?;
        let name = format!("{}, {}{}", display_name(result), target(summary)?, mark(summary));
        Some(Measured { name, summary })
    });
    measured_here(found, kind).into_iter().chain(elsewhere).collect()
}

/// Targets of this machine.
fn measured_here<'f>(found: &'f Reproduced<'_>, kind: &str) -> Vec<Measured<'f>> {
    let cells = found.cells_of_kind(kind).into_iter();
    let results = cells.flat_map(|(_, cell)| &cell.results).filter_map(|result| {
        let summary = register(result)?;
        Some(Measured { name: format!("{}{}", target(summary)?, mark(summary)), summary })
    });
    results.collect()
}

fn register(result: &StoredResult) -> Option<&RegisterSummary> {
    match &result.summary {
        Stored::Register(summary) => Some(&**summary),
        _ => None,
    }
}

fn target(summary: &RegisterSummary) -> Option<String> {
    summary.run.as_ref().map(|run| run.target.clone())
}

/// Mark of a target that is not real hardware.
fn mark(summary: &RegisterSummary) -> &'static str {
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

    /// Microseconds per register of every trial at a depth.
    fn us(method: &RegisterMethod, depth: u64) -> Vec<f64> {
        let points = method.points.iter().filter(|point| point.depth == depth);
        points.flat_map(|point| point.seconds.iter().map(move |s| s / depth as f64 * 1e6)).collect()
    }

    /// Bytes of a register.
    fn bytes(&self) -> f64 {
        self.summary.run.as_ref().map_or(0.0, |run| f64::from(run.width_bits) / 8.0)
    }

    /// Fastest method at a depth, and its time per register in us.
    fn best(&self, depth: u64) -> Option<(&str, f64)> {
        let times = self
            .methods()
            .filter_map(|method| Some((method.name.as_str(), median(&Self::us(method, depth))?)));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn cell_of(method: &RegisterMethod, depth: u64, values: &[f64]) -> PaperCell {
    match values.is_empty() {
        true if method.left_out.contains(&depth) => PaperCell::words("skipped: too slow"),
        true => PaperCell::words(NOT_MEASURED),
        false => PaperCell::measured(values),
    }
}

/// Table of the methods at one depth, with the published figures.
fn depth(
    edition: &PublishedPaper,
    measured: &[Measured<'_>],
    places: &[&str],
    of: &str,
    depth: u64,
) -> PaperTable {
    let is_of = |figure: &&PublishedFigure| {
        places.contains(&figure.place.as_str()) && depth_of(figure) == Some(depth as f64)
    };
    let published = || edition.figures().iter().filter(is_of);
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
        head: "method".into(),
        columns: vec![PaperColumn::new("per register", "us"), PaperColumn::new("rate", "MiB/s")],
        rows: rows.chain(here).collect(),
    }
}

/// Table of set-up time and time per register.
fn set_up(edition: &PublishedPaper, measured: &[Measured<'_>]) -> PaperTable {
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
            note: fit.knee.map(|_| "the linear model does not hold at every depth".into()),
        })
    });
    PaperTable {
        title: "Set-up time of a transfer, and time per register".into(),
        stands: "section 3.4.4".into(),
        head: "method".into(),
        columns: vec![PaperColumn::new("set-up", "us"), PaperColumn::new("per register", "us")],
        rows: rows.chain(here).collect(),
    }
}

/// Table of break-evens.
fn break_even(edition: &PublishedPaper, measured: &[Measured<'_>]) -> PaperTable {
    let published = edition.figures().iter().filter(|figure| figure.quantity == "break-even");
    let rows = published.map(|figure| PaperRow {
        name: format!("{}, {}", figure.system, figure.condition),
        is_here: false,
        cells: vec![cell(figure, PaperUnit::Words), PaperCell::default()],
        note: Some("its set-up time and times per register give another value: see the claims".into()),
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
        title: "Break-evens with 95 % intervals".into(),
        stands: "section 3.4.4".into(),
        head: "method".into(),
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

/// Summary chart: time per register by depth.
fn curve(edition: &PublishedPaper, measured: &[Measured<'_>]) -> PaperCurve {
    let mut series: Vec<PaperSeries> = Vec::new();
    for figure in edition.figures().iter().filter(|figure| figure.quantity == TIME) {
        let (Some(depth), Some(us)) = (depth_of(figure), cell(figure, PaperUnit::Microseconds).value) else {
            continue;
        };
        let name = format!("{}, {}", figure.system, method_of(figure));
        match series.iter_mut().find(|known| known.name == name) {
            // The first of two functions at the same depth is used.
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
        title: "Time per register by registers per transfer".into(),
        stands: "section 4".into(),
        x: PaperColumn::new("registers", "per transfer"),
        y: PaperColumn::new("per register", "us"),
        is_log_x: true,
        series,
        note: Some("published points are from the tables of the note".into()),
    }
}

/// Registers per transfer of a published figure.
fn depth_of(figure: &PublishedFigure) -> Option<f64> {
    let first = figure.condition.split(' ').next()?;
    match first.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
        None => (first == "one").then_some(1.0),
    }
}

fn method_of(figure: &PublishedFigure) -> &'static str {
    match figure.condition.rsplit(", ").next() {
        Some("block transfer") => "block transfer",
        Some("DMA") => "DMA",
        _ => "single accesses",
    }
}

fn findings(measured: &[Measured<'_>]) -> Vec<String> {
    let mut findings = Vec::new();
    for target in measured {
        let at = |depth: u64| target.best(depth).map(|(method, us)| (method, us, depth));
        let depths = [at(1), at(0x100), at(0x80000)].into_iter().flatten();
        let words: Vec<String> =
            depths.map(|(method, us, depth)| format!("{us:.4} us by {method} at depth {depth:#x}")).collect();
        if !words.is_empty() {
            findings.push(format!("{}: lowest time per register: {}.", target.name, words.join(", ")));
        }
    }
    findings
}

/// Sentence about the cost of the generic access function, if measured.
fn generic_sentence(target: &Measured<'_>) -> Option<String> {
    let ns = |method: &RegisterMethod| Some(digits(1e3 * median(&Measured::us(method, 1))?));
    let (specific, generic) = (target.methods().next()?, target.methods().find(|m| m.name == GENERIC)?);
    Some(format!(
        "{}: {} ns by {}, {} ns by the same through the generic function.",
        target.name,
        ns(specific)?,
        specific.name,
        ns(generic)?
    ))
}

fn generic_answer(narrow: &[Measured<'_>], edition: &PublishedPaper) -> PaperAnswer {
    let us = |system, function| edition.text("C1", [system, function, TIME], PaperUnit::Microseconds);
    let of = |system| format!("{} and {} us on the {system}", us(system, "specific"), us(system, "generic"));
    PaperAnswer {
        question: "Does a generic function take longer than one for the register?".into(),
        published: format!("Not significantly: {}, {}.", of("L865"), of("PPC4")),
        here: joined(narrow.iter().filter_map(generic_sentence).collect()),
    }
}

/// Sentences as one text.
fn joined(words: Vec<String>) -> String {
    if words.is_empty() { NOT_MEASURED.into() } else { words.join(" ") }
}

/// Sentence about a break-even, if found.
fn break_even_sentence(target: &Measured<'_>, pair: &RegisterBreakEven) -> Option<String> {
    let RegisterVerdict::From { registers, lower, upper } = pair.elapsed else { return None };
    Some(format!(
        "{}: {} is faster than {} from {:.0} registers ({:.0} to {:.0}).",
        target.name,
        pair.way,
        pair.simple,
        registers.ceil(),
        lower.ceil(),
        upper.ceil()
    ))
}

fn answers(measured: &[Measured<'_>], edition: &PublishedPaper) -> Vec<PaperAnswer> {
    let one_of = |system| edition.text("C1", [system, "specific", TIME], PaperUnit::Microseconds);
    let gain_of = |system| edition.text("C6", [system, "arrays over one register", "gain"], PaperUnit::Times);
    let break_even_words = edition.text("C7", ["", "DMA", "break-even"], PaperUnit::Words);
    let one = |target: &Measured<'_>| {
        let method = target.methods().next()?;
        let us = median(&Measured::us(method, 1))?;
        Some(format!("{}: {us:.3} us by {}.", target.name, method.name))
    };
    let larger = |target: &Measured<'_>| {
        let method = target.methods().next()?;
        let [one, many] = [1, 0x100].map(|depth| median(&Measured::us(method, depth)));
        Some(format!("{}, {}: {:.2}x.", target.name, method.name, one? / many?))
    };
    let pairs = measured
        .iter()
        .flat_map(|t| t.summary.break_evens.iter().filter_map(|pair| break_even_sentence(t, pair)));
    let pairs: Vec<String> = pairs.collect();
    vec![
        PaperAnswer {
            question: "How long does it take to read one register?".into(),
            published: format!(
                "{} us on the L865, {} us on the PPC4, with their own functions.",
                one_of("L865"),
                one_of("PPC4")
            ),
            here: joined(measured.iter().filter_map(one).collect()),
        },
        PaperAnswer {
            question: "How much faster is a register as one of 0x100?".into(),
            published: format!("{}x on the L865, {}x on the PPC4.", gain_of("L865"), gain_of("PPC4")),
            here: joined(measured.iter().filter_map(larger).collect()),
        },
        PaperAnswer {
            question: "From how many registers is a block transfer faster?".into(),
            published: format!("DMA above {break_even_words} words; its own numbers give another value."),
            here: match pairs.is_empty() && !measured.is_empty() {
                true => "No break-even found: see the table.".into(),
                false => joined(pairs),
            },
        },
    ]
}

fn limits(measured: &[Measured<'_>]) -> Vec<String> {
    let mut limits = Vec::new();
    if measured.iter().any(|target| !mark(target.summary).is_empty()) {
        limits.push(
            "simulated and virtual targets are no hardware: their times show that the methods work and how \
             they rank, not the speed of a bus or a board"
                .to_owned(),
        );
    }
    if measured.iter().any(|target| target.name.starts_with("ram")) {
        limits.push("ram is memory of this process: it shows the overhead of the measurement".to_owned());
    }
    limits.push("the VME crates and bridges of the paper and LynxOS were not available".to_owned());
    limits
}

#[cfg(test)]
#[path = "cern_tests.rs"]
mod tests;
