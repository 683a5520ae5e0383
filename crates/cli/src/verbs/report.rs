//! `keepup report`: a result as a page, drawn at any later time.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_report::{History, Style, markdown, qualify_html, terminal};
use keepup_results::{ResultDirectory, ResultSummary};

use crate::exit::Exit;
use crate::output::{colour, result, say, width};

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
    let directory = ResultDirectory::open(&args.result)?;
    let summary = directory.read_summary()?;
    if let Some(path) = &args.html {
        write(&directory, &summary, path)?;
    } else if args.markdown {
        result(&markdown(&summary));
    } else {
        result(&terminal(&summary, Style { colour: colour(), width: width() }));
    }
    Ok(Exit::Done)
}

/// Writes the HTML page of a result that was just kept, beside it. A measurement is not lost for its page.
pub(super) fn keep(directory: &Path, summary: &ResultSummary) {
    let path = directory.join(PAGE);
    let written = ResultDirectory::open(directory).map_err(anyhow::Error::from);
    if let Err(why) = written.and_then(|directory| write(&directory, summary, &path)) {
        say(&format!("warning: {why:#}"));
    }
}

fn write(directory: &ResultDirectory, summary: &ResultSummary, path: &Path) -> anyhow::Result<()> {
    let history = match directory.events() {
        Ok(events) => History::read(events),
        Err(why) => History::missing(&why.to_string()),
    };
    std::fs::write(path, qualify_html(summary, &history))
        .with_context(|| format!("cannot write the report {}", path.display()))?;
    say(&format!("report: {}", path.display()));
    Ok(())
}
