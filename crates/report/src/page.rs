//! What a report says, independent of how it is drawn.

use serde_json::Value;

use crate::chart::Chart;

/// A report: one headline and blocks below it.
pub(crate) struct Page {
    pub(crate) headline: Headline,
    pub(crate) blocks: Vec<Block>,
}

/// A report that ends with its headline, where a terminal's reader looks.
pub(crate) struct Closed {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) verdict: Headline,
}

/// A report with what is shown only where there is room for it.
pub(crate) struct Document {
    /// What was measured, in two or three words.
    pub(crate) kind: String,
    pub(crate) page: Page,
    /// What a reader sees beside the headline, before anything else.
    pub(crate) glance: Vec<Block>,
    /// Records that are shown when asked for: a title and the record.
    pub(crate) records: Vec<(&'static str, Value)>,
}

/// The line that a reader in a hurry reads.
pub(crate) struct Headline {
    pub(crate) verdict: String,
    pub(crate) tone: Tone,
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
}

/// One titled part of the page.
pub(crate) struct Block {
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
    /// Whether its items may stand side by side where there is room.
    pub(crate) is_beside: bool,
    /// Rows of each of its tables that a terminal shows; as many as of any without it.
    pub(crate) terminal_rows: Option<usize>,
    /// Whether a terminal leaves it to the forms that have room.
    pub(crate) is_detail: bool,
}

impl Block {
    pub(crate) fn new(title: impl Into<String>, items: Vec<Item>) -> Self {
        Self { title: title.into(), items, is_beside: false, terminal_rows: None, is_detail: false }
    }

    /// The same, left out on a terminal.
    pub(crate) fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }
}

/// A piece of a block.
pub(crate) enum Item {
    /// A sentence or more.
    Text(String),
    /// Sentences, each on its own.
    List(Vec<String>),
    /// Labels with what there is to say about them.
    Facts(Vec<Fact>),
    /// Rows and columns.
    Table(Table),
    /// A drawing, where there can be one; elsewhere what the rest of the page says has to do.
    Chart(Box<Chart>),
}

/// A label and its text.
pub(crate) struct Fact {
    pub(crate) label: String,
    pub(crate) text: String,
    /// Whether it is to be copied by the reader as it stands.
    pub(crate) copied: Option<Copied>,
}

/// What is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// A command of a shell, which may go on in the next line.
    Command,
    /// The path of a file, never broken.
    Path,
}

impl Fact {
    pub(crate) fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), copied: None }
    }

    pub(crate) fn command(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), copied: Some(Copied::Command) }
    }

    pub(crate) fn path(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), copied: Some(Copied::Path) }
    }
}

/// Rows and columns; every row has as many cells as there are columns.
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

/// A column of words.
pub(crate) fn left(title: impl Into<String>) -> Column {
    Column { title: title.into(), right: false }
}

/// A column of figures.
pub(crate) fn right(title: impl Into<String>) -> Column {
    Column { title: title.into(), right: true }
}

/// One cell.
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

/// What the words mean for the reader; drawn as colour where there is colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// They neither praise nor warn.
    Plain,
    /// As it should be.
    Good,
    /// With reserve.
    Doubtful,
    /// Not as it should be.
    Bad,
}
