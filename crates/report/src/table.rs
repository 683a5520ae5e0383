//! Tables of a report: rated texts in aligned columns, independent of the output format.

use keepup_results::Verdict;

/// Table. Every row has one cell for each column.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// Title and alignment of a column.
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) right: bool,
}

/// Creates a left-aligned column, for words.
pub(crate) fn left(title: impl Into<String>) -> Column {
    Column { title: title.into(), right: false }
}

/// Creates a right-aligned column, for figures.
pub(crate) fn right(title: impl Into<String>) -> Column {
    Column { title: title.into(), right: true }
}

/// Table cell.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// Rating of a text, shown as its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Neutral.
    Plain,
    /// Good.
    Good,
    /// Needs attention.
    Doubtful,
    /// Bad.
    Bad,
}

impl Tone {
    /// Rating of a verdict.
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fit => Self::Good,
            Verdict::FitWithLimits | Verdict::Inconclusive => Self::Doubtful,
            Verdict::NotFit => Self::Bad,
        }
    }
}
