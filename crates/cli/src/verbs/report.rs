//! `keepup report`: a result as a page, drawn at any later time.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_catalog::{open_result, report_page};
use keepup_report::{badge, markdown};
use keepup_results::StoredResult;

use crate::exit::Exit;
use crate::output::{full_page, page, result, say};

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
    /// Print all figures of a qualification above its verdict
    #[arg(long, conflicts_with_all = ["html", "markdown", "badge"])]
    full: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stored = open_result(&args.result)?;
    if stored.is_rebuilt {
        say("warning: the measurement was cut off; the report is made from its events");
    }
    if let Some(path) = &args.html {
        write(&stored, path)?;
    } else if args.markdown {
        result(markdown(&stored.summary).trim_end());
    } else if args.badge {
        result(badge(&stored.summary).trim_end());
    } else if args.full {
        full_page(&stored.summary);
    } else {
        page(&stored.summary);
    }
    Ok(Exit::Done)
}

/// Writes the HTML page of a result that was just kept, beside it. A measurement is not lost for its page.
pub(super) fn keep(directory: &Path) {
    let stored = StoredResult::open(directory).map_err(anyhow::Error::from);
    if let Err(why) = stored.and_then(|stored| write(&stored, &directory.join(PAGE))) {
        say(&format!("warning: {why:#}"));
    }
}

fn write(stored: &StoredResult, path: &Path) -> anyhow::Result<()> {
    std::fs::write(path, report_page(stored))
        .with_context(|| format!("cannot write the report {}", path.display()))?;
    say(&format!("report: {}", path.display()));
    Ok(())
}
