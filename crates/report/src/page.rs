//! Content of a report, independent of the output format.

use serde_json::Value;

use crate::chart::Chart;
use crate::table::{Table, Tone};

/// Report with a headline and blocks below it.
pub(crate) struct Page {
    pub(crate) headline: Headline,
    pub(crate) blocks: Vec<Block>,
}

/// Terminal report of a qualification. Its verdict comes last, next to the shell prompt.
pub(crate) struct VerdictLast {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) verdict: Headline,
}

/// Complete report, with parts that only HTML shows.
pub(crate) struct Document {
    /// Kind of the test, two or three words.
    pub(crate) kind: String,
    pub(crate) page: Page,
    /// Blocks next to the headline.
    pub(crate) glance: Vec<Block>,
    /// Collapsed records, with their titles.
    pub(crate) records: Vec<(&'static str, Value)>,
}

/// Verdict and summary of a report.
pub(crate) struct Headline {
    pub(crate) verdict: String,
    pub(crate) tone: Tone,
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
}

/// Titled section of a report.
pub(crate) struct Block {
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
    /// Whether wide pages may place its items side by side.
    pub(crate) is_side_by_side: bool,
    /// Most table rows on a terminal, if fewer than the default.
    pub(crate) terminal_rows: Option<usize>,
    /// Whether the terminal page omits it.
    pub(crate) is_detail: bool,
}

impl Block {
    pub(crate) fn new(title: impl Into<String>, items: Vec<Item>) -> Self {
        Self { title: title.into(), items, is_side_by_side: false, terminal_rows: None, is_detail: false }
    }

    /// Marks the block as omitted on a terminal.
    pub(crate) fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }
}

/// Part of a block.
pub(crate) enum Item {
    /// Paragraph.
    Text(String),
    /// Bulleted list.
    List(Vec<String>),
    /// Labelled values.
    Facts(Vec<Fact>),
    /// Table.
    Table(Table),
    /// Chart, drawn in HTML only.
    Chart(Box<Chart>),
}

impl Item {
    /// Whether the item has no content.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::List(texts) => texts.is_empty(),
            Self::Facts(facts) => facts.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Text(_) | Self::Chart(_) => false,
        }
    }
}

/// Labelled value.
pub(crate) struct Fact {
    pub(crate) label: String,
    pub(crate) text: String,
    /// Set if the reader copies the text verbatim.
    pub(crate) copyable: Option<Copyable>,
}

/// Text that is never changed by line wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copyable {
    /// Shell command, may continue on the next line.
    Command,
    /// File path, or a line that contains one; never wrapped.
    Path,
}

impl Fact {
    pub(crate) fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), copyable: None }
    }

    pub(crate) fn command(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), copyable: Some(Copyable::Command) }
    }

    pub(crate) fn path(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), copyable: Some(Copyable::Path) }
    }
}
