//! `keepup serve`: stored results and recordings as a page.
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
use crate::http::{HttpArgs, Offer, PORT};
use crate::output::say;
use crate::signals::stop_flag;

/// Where results go in the examples of every verb.
pub(crate) const RESULTS: &str = "results";
/// Pause between two looks whether it is over, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// Show stored results and recordings in a browser: reports, two results beside each other, recordings
///
/// Looks below the directories for what keepup made, follows no links, and changes nothing. Ctrl-C ends it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup serve
  keepup serve /data/results /data/a /data/b --http 127.0.0.1:8700
  keepup serve /data/results --http 0.0.0.0:8611 --token-file token --http-name daq1.example")]
pub(crate) struct Args {
    /// Directories below which results and recordings lie [default: results and keepup-data, where they are]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    #[command(flatten)]
    http: HttpArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let roots = roots(&args.directories)?;
    let stop = stop_flag()?;
    for root in &roots {
        say(&format!("looking below {}", root.display()));
    }
    let offer = Offer { catalog: Some(catalog(&roots)), ..Offer::default() };
    let Some(opening) = args.http.open(Some((Ipv4Addr::LOCALHOST, PORT).into()), offer)? else {
        return Ok(Exit::Done);
    };
    let live = opening.start()?;
    let clock = SystemClock;
    while !stop.load(Ordering::Acquire) {
        clock.sleep_until_ns(clock.now_ns() + LOOK_NS);
    }
    drop(live);
    Ok(Exit::Done)
}

/// Results and recordings below these directories, those of them that are there.
pub(crate) fn catalog(directories: &[PathBuf]) -> Arc<dyn Catalog> {
    let roots = directories.iter().filter_map(|path| path.canonicalize().ok()).collect();
    Arc::new(DirectoryCatalog::new(roots, Arc::new(SystemClock)))
}

/// The directories that were given, or those of the defaults that are there.
fn roots(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if given.is_empty() {
        let defaults = [PathBuf::from(RESULTS), default_volume()];
        let there: Vec<PathBuf> = defaults.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
        return match there.is_empty() {
            true => {
                let why =
                    format!("cannot serve: neither {RESULTS} nor {} exists", default_volume().display());
                Err(usage(Cause::new(why).with_hint("keepup serve DIR")))
            }
            false => Ok(there),
        };
    }
    let mut roots = Vec::new();
    for path in given {
        let failed = |e| usage(format!("cannot look below {}: {e}", path.display()));
        let root = path.canonicalize().map_err(failed)?;
        if !root.is_dir() {
            let why = Cause::new(format!("cannot serve {}: it is not a directory", path.display()));
            return Err(usage(why.with_hint("keepup report shows a single result")));
        }
        roots.push(root);
    }
    Ok(roots)
}
