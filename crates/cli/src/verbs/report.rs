//! `keepup report`: a result as a page, drawn at any later time.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_report::{History, badge, html, markdown};
use keepup_results::{ResultDirectory, ResultsError, StoredResult};

use crate::exit::Exit;
use crate::output::{page, result, say};

/// The page that a result gets by itself.
const PAGE: &str = "report.html";

/// Draw the page of a result: on the terminal, as one HTML file, in Markdown, or as a badge
///
/// Needs the result alone: no network, and not the machine that was measured.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup report results/csl-20261121T033000Z-7f3c01aa
  keepup report results/csl-20261121T033000Z-7f3c01aa --html page.html
  keepup report results/csl-20261121T033000Z-7f3c01aa --badge > badge.svg")]
pub(crate) struct Args {
    /// Directory of a result, or the result.json in it
    result: PathBuf,
    /// Write one HTML file that needs nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["markdown", "badge"])]
    html: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "badge")]
    markdown: bool,
    /// Print a small picture of the answer (SVG)
    #[arg(long)]
    badge: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stored = open(&args.result)?;
    if stored.is_rebuilt {
        say("warning: the measurement was cut off; the report is made from its events");
    }
    if let Some(path) = &args.html {
        write(&stored, path)?;
    } else if args.markdown {
        result(markdown(&stored.summary).trim_end());
    } else if args.badge {
        result(badge(&stored.summary).trim_end());
    } else {
        page(&stored.summary);
    }
    Ok(Exit::Done)
}

/// A result, by its directory or its summary. The summary within a directory means the directory: there are
/// its events.
fn open(path: &Path) -> Result<StoredResult, ResultsError> {
    let directory = path.parent().filter(|_| path.is_file());
    let directory =
        directory.map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    match directory.map(ResultDirectory::open) {
        Some(Ok(found)) if path.file_name().is_some_and(|name| name == "result.json") => {
            StoredResult::open(found.path())
        }
        _ => StoredResult::open(path),
    }
}

/// Writes the HTML page of a result that was just kept, beside it. A measurement is not lost for its page.
pub(super) fn keep(directory: &Path) {
    let stored = StoredResult::open(directory).map_err(anyhow::Error::from);
    if let Err(why) = stored.and_then(|stored| write(&stored, &directory.join(PAGE))) {
        say(&format!("warning: {why:#}"));
    }
}

/// The HTML page of a result, with what its events say of the time.
pub(super) fn page_of(stored: &StoredResult) -> String {
    let history = match stored.directory().map(|directory| directory.events()) {
        Some(Ok(events)) => History::read(events),
        Some(Err(why)) => History::missing(&why.to_string()),
        None => History::missing("the summary alone was given"),
    };
    html(&stored.summary, &history)
}

fn write(stored: &StoredResult, path: &Path) -> anyhow::Result<()> {
    std::fs::write(path, page_of(stored))
        .with_context(|| format!("cannot write the report {}", path.display()))?;
    say(&format!("report: {}", path.display()));
    Ok(())
}
