//! Published figures of a paper as rows and cells of a page.
use keepup_model::papers::{Paper, PaperUnit, Published, PublishedFigure, paper};
use keepup_results::{CampaignCell, PaperCell, PaperClaim, PaperExperiment, PaperRow};

use crate::experiments::of_campaign;

/// 2^20 bytes.
pub(crate) const MIB: f64 = 1_048_576.0;

/// Paper with its published figures.
pub(crate) struct PublishedPaper(Option<Paper>);

impl PublishedPaper {
    /// Loads a built-in paper.
    pub(crate) fn of(name: &str) -> Self {
        Self(paper(name).ok())
    }

    /// Title.
    pub(crate) fn title(&self) -> String {
        self.0.as_ref().map_or_else(String::new, |paper| paper.title.clone())
    }

    /// Authors, publication and year.
    pub(crate) fn source(&self) -> String {
        let Some(paper) = &self.0 else { return String::new() };
        let year = paper.year.map(|year| year.to_string());
        let parts = [paper.authors.join(", "), paper.published.clone()].into_iter().chain(year);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// Published figures.
    pub(crate) fn figures(&self) -> &[PublishedFigure] {
        self.0.as_ref().map_or(&[], |paper| &paper.figures)
    }

    /// Claims with what follows from the paper's own numbers.
    pub(crate) fn claims(&self) -> Vec<PaperClaim> {
        let claims = self.0.as_ref().map_or(&[][..], |paper| &paper.claims);
        let claims = claims.iter().map(|claim| PaperClaim {
            says: claim.says.clone(),
            stands: claim.place.clone(),
            follows: claim.arithmetic(),
            is_contradicted: claim.is_contradicted(),
            is_confirmed: claim.is_confirmed(),
        });
        claims.collect()
    }

    /// Experiments with the cells of a campaign that repeat them.
    pub(crate) fn experiments(&self, cells: &[CampaignCell], has_others: bool) -> Vec<PaperExperiment> {
        self.0.as_ref().map_or_else(Vec::new, |paper| of_campaign(paper, cells, has_others))
    }

    /// Cell of a figure in `unit`, empty if not published. `condition` is optional.
    pub(crate) fn cell(&self, id: &str, system: &str, condition: Option<&str>, unit: PaperUnit) -> PaperCell {
        let is_it = |figure: &&PublishedFigure| {
            figure.id == id && figure.system == system && condition.is_none_or(|c| figure.condition == c)
        };
        self.figures().iter().find(is_it).map_or_else(PaperCell::default, |figure| cell(figure, unit))
    }

    /// Value in `unit` of the first figure of an id whose system, condition and quantity contain these texts.
    pub(crate) fn number(
        &self,
        id: &str,
        [system, condition, quantity]: [&str; 3],
        unit: PaperUnit,
    ) -> Option<f64> {
        let is_it = |figure: &&PublishedFigure| {
            figure.id == id
                && figure.system.contains(system)
                && figure.condition.contains(condition)
                && figure.quantity.contains(quantity)
        };
        self.figures().iter().find(is_it).and_then(|figure| cell(figure, unit).value)
    }

    /// Like [`Self::number`], as text; "?" if missing.
    pub(crate) fn text(&self, id: &str, which: [&str; 3], unit: PaperUnit) -> String {
        self.number(id, which, unit).map_or_else(|| "?".to_owned(), |number| number.to_string())
    }

    /// Value in `unit` that follows from the numbers of a claim.
    pub(crate) fn follows(&self, claim: &str, unit: PaperUnit) -> Option<f64> {
        let claim = self.0.as_ref()?.claim(claim)?;
        claim.unit.convert(claim.follows()?, unit)
    }

    /// Cell of a figure with several quantities.
    pub(crate) fn cell_of(
        &self,
        id: &str,
        system: &str,
        condition: &str,
        quantity: &str,
        unit: PaperUnit,
    ) -> PaperCell {
        let is_it = |figure: &&PublishedFigure| {
            let place = (figure.id.as_str(), figure.system.as_str(), figure.condition.as_str());
            place == (id, system, condition) && figure.quantity == quantity
        };
        self.figures().iter().find(is_it).map_or_else(PaperCell::default, |figure| cell(figure, unit))
    }

    /// System of the first figure of an id, empty if there is none.
    pub(crate) fn system(&self, id: &str) -> &str {
        self.figures().iter().find(|figure| figure.id == id).map_or("", |figure| figure.system.as_str())
    }

    /// First condition of an id that starts with `start`, empty if there is none.
    pub(crate) fn condition(&self, id: &str, start: &str) -> &str {
        let is_it = |figure: &&PublishedFigure| figure.id == id && figure.condition.starts_with(start);
        self.figures().iter().find(is_it).map_or("", |figure| figure.condition.as_str())
    }

    /// Rows of a published table: one for each system and condition, with a cell for each quantity, in
    /// `unit`.
    pub(crate) fn rows(&self, place: &str, quantities: &[&str], unit: PaperUnit) -> Vec<PaperRow> {
        let figures = || self.figures().iter().filter(|figure| figure.place == place);
        let mut names: Vec<(&str, &str)> = Vec::new();
        for figure in figures() {
            let name = (figure.system.as_str(), figure.condition.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let row = |(system, condition): &(&str, &str)| {
            let of_row = || figures().filter(|f| f.system == *system && f.condition == *condition);
            let of = |quantity: &&str| of_row().find(|figure| figure.quantity == *quantity);
            let cells = quantities.iter().map(|q| of(q).map_or_else(PaperCell::default, |f| cell(f, unit)));
            let notes: Vec<&str> = of_row().filter_map(|figure| figure.note.as_deref()).collect();
            PaperRow {
                name: (*system).to_owned(),
                is_here: false,
                cells: cells.collect(),
                note: notes.first().map(|note| (*note).to_owned()),
            }
        };
        names.iter().map(row).collect()
    }
}

/// Cell of a published figure, in `unit`.
pub(crate) fn cell(figure: &PublishedFigure, unit: PaperUnit) -> PaperCell {
    let convert = |value: f64| figure.unit.convert(value, unit);
    match figure.published() {
        Some(Published::Value(value)) => PaperCell { value: convert(value), ..PaperCell::default() },
        Some(Published::Range(low, high)) => PaperCell {
            value: convert(f64::midpoint(low, high)),
            lowest: convert(low),
            highest: convert(high),
            ..PaperCell::default()
        },
        Some(Published::AtLeast(value)) => {
            PaperCell { value: convert(value), note: Some("at least".into()), ..PaperCell::default() }
        }
        Some(Published::Shape(words)) => PaperCell::words(words),
        None => PaperCell::default(),
    }
}
