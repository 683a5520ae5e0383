//! `keepup serve`: web page with stored results and recordings.
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_catalog::DirectoryCatalog;
use keepup_error::Cause;
use keepup_live::Catalog;
use keepup_measure::clock::{Clock, SystemClock};

use crate::args::default_volume;
use crate::exit::{Exit, usage};
use crate::http::{HttpArgs, PORT, PageContent};
use crate::output::log;
use crate::signals::stop_flag;

/// Directory of results in all examples.
pub(crate) const RESULTS: &str = "results";
/// Interval at which the stop flag is checked, in nanoseconds.
const POLL_NS: u64 = 50_000_000;

/// Serve stored results and recordings as a web page
///
/// Shows reports, comparisons of two results, and recordings below the directories. Does not follow symbolic
/// links and changes nothing. Stop with Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup serve
  keepup serve /data/results /data/a /data/b --http 127.0.0.1:8700
  keepup serve /data/results --http 0.0.0.0:8611 --token-file token --http-name daq1.example")]
pub(crate) struct Args {
    /// Directories with results and recordings [default: results, keepup-data]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    #[command(flatten)]
    http: HttpArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let roots = roots(&args.directories)?;
    let stop = stop_flag()?;
    for root in &roots {
        log(&format!("serving results and recordings below {}", root.display()));
    }
    let content = PageContent { catalog: Some(catalog(&roots)), ..PageContent::default() };
    let Some(page) = args.http.prepare(Some((Ipv4Addr::LOCALHOST, PORT).into()), content)? else {
        return Ok(Exit::Done);
    };
    let live = page.start()?;
    let clock = SystemClock;
    while !stop.load(Ordering::Acquire) {
        clock.sleep_until_ns(clock.now_ns() + POLL_NS);
    }
    drop(live);
    Ok(Exit::Done)
}

/// Catalog of results and recordings below the existing directories.
pub(crate) fn catalog(directories: &[PathBuf]) -> Arc<dyn Catalog> {
    let roots = directories.iter().filter_map(|path| path.canonicalize().ok()).collect();
    Arc::new(DirectoryCatalog::new(roots, Arc::new(SystemClock)))
}

/// The given directories, or the existing default directories.
fn roots(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if given.is_empty() {
        let defaults = [PathBuf::from(RESULTS), default_volume()];
        let existing: Vec<PathBuf> =
            defaults.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
        return match existing.is_empty() {
            true => {
                let why =
                    format!("cannot serve: neither {RESULTS} nor {} exists", default_volume().display());
                Err(usage(Cause::new(why).with_hint("keepup serve DIR")))
            }
            false => Ok(existing),
        };
    }
    let mut roots = Vec::new();
    for path in given {
        let failed = |e| usage(format!("cannot serve {}: {e}", path.display()));
        let root = path.canonicalize().map_err(failed)?;
        if !root.is_dir() {
            let why = Cause::new(format!("cannot serve {}: it is not a directory", path.display()));
            return Err(usage(why.with_hint("use `keepup report` for a single result")));
        }
        roots.push(root);
    }
    Ok(roots)
}
