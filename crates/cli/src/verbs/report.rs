//! `keepup report`: report of a stored result.
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use keepup_catalog::{open_result, report_page};
use keepup_error::Cause;
use keepup_report::{badge, markdown};
use keepup_results::StoredResult;
use keepup_sys::output as output_file;

use crate::exit::Exit;
use crate::output::{full_page, log, missing_file, page, result};

/// Name of the report in a result directory.
const PAGE: &str = "report.html";

/// Print the report of a result as text, HTML, Markdown or badge
///
/// Needs only the result, no network and no access to the measured machine.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup report results/csl-20261121T033000Z-7f3c01aa
  keepup report results/csl-20261121T033000Z-7f3c01aa --html page.html
  keepup report results/csl-20261121T033000Z-7f3c01aa --badge > badge.svg")]
pub(crate) struct Args {
    /// Result directory, its result.json, or saved --json output
    result: PathBuf,
    /// Write a self-contained HTML file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["markdown", "badge"])]
    html: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "badge")]
    markdown: bool,
    /// Print a badge with the verdict (SVG)
    #[arg(long)]
    badge: bool,
    /// Print all figures of a qualification, then the verdict
    #[arg(long, conflicts_with_all = ["html", "markdown", "badge"])]
    full: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stored = open_result(&args.result)?;
    if stored.is_rebuilt {
        log("warning: the measurement was interrupted; the report is rebuilt from its events");
    } else if !stored.is_checked {
        log("note: the result has no checksum, so a change since it was written would not be found");
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

/// Writes report.html into a new result directory. After a failure the command goes on: the measurement is
/// still printed.
pub(super) fn write_beside(directory: &Path) {
    let stored = StoredResult::open(directory).map_err(anyhow::Error::from);
    if let Err(why) = stored.and_then(|stored| write(&stored, &directory.join(PAGE))) {
        missing_file(&Cause::new(format!("{why:#}")));
    }
}

fn write(stored: &StoredResult, path: &Path) -> anyhow::Result<()> {
    output_file::write(path, report_page(stored).as_bytes())
        .with_context(|| format!("cannot write the report {}", path.display()))?;
    if let Some(directory) = stored.directory().filter(|directory| directory.path().join(PAGE) == path) {
        directory.cover(PAGE)?;
    }
    log(&format!("report: {}", path.display()));
    Ok(())
}
