//! `keepup trace make`: synthetic traces.
use std::fs::OpenOptions;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_sys::output::finish;
use keepup_trace::personality::{PERSONALITIES, Personality};

use crate::args::nonzero_duration;
use crate::exit::{Exit, usage};
use crate::output::{json, result};

/// Generate a synthetic trace of a server or desktop workload
///
/// The trace is marked as synthetic. The same arguments generate the same file.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub(super) struct Args {
    /// Personality: `web-server`, `database`, `office`, ..., see the list below
    #[arg(value_parser = personality, value_name = "PERSONALITY")]
    personality: &'static Personality,
    /// Output file, in keepup's format
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Duration of the trace
    #[arg(long, default_value = "60 s", value_parser = nonzero_duration, value_name = "TIME")]
    time: Duration,
    /// Rounds of work per second [default: the personality's]
    #[arg(long, value_name = "RATE")]
    rounds: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    let one = |p: &Personality| format!("  {}: {}; {} rounds/s", p.name, p.about, p.rounds_per_second);
    let all = PERSONALITIES.map(one).join("\n");
    format!(
        "Personalities and their rounds of work:\n{all}\n\n\
         Example:\n  keepup trace make web-server web.trace --seed 7"
    )
}

fn personality(name: &str) -> Result<&'static Personality, String> {
    let names = || PERSONALITIES.map(|personality| personality.name).join(", ");
    Personality::of_name(name).ok_or_else(|| format!("expected one of {}", names()))
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let (personality, path) = (args.personality, &args.out);
    let what = || format!("cannot create {}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let why = Cause::new(format!("{}: the file exists", what()));
            usage(why.with_hint("use another name, or remove the file"))
        }
        _ => anyhow::Error::new(e).context(what()),
    })?;
    let rounds = args.rounds.unwrap_or(personality.rounds_per_second);
    let mut out = BufWriter::new(file);
    let made = personality.make(args.seed, args.time, rounds, &mut out);
    let made = match made.and_then(|made| finish(out).map(|()| made)) {
        Ok(made) => made,
        Err(e) => {
            // A partial file must not be mistaken for a complete trace.
            drop(std::fs::remove_file(path));
            return Err(match e.kind() {
                std::io::ErrorKind::InvalidInput => usage(format!("{}: {e}", what())),
                _ => anyhow::Error::new(e).context(what()),
            });
        }
    };
    match args.json {
        true => json(&serde_json::to_value(made).context("cannot encode the result")?),
        false => result(&format!(
            "{}: SYNTHETIC {}, seed {}: {} requests, {:.3} MB, in {} rounds",
            path.display(),
            personality.name,
            args.seed,
            made.records,
            made.bytes as f64 / 1e6,
            made.rounds
        )),
    }
    Ok(Exit::Done)
}
