//! `keepup profile`: detector profiles.
use clap::Subcommand;
use keepup_plan::units::{ByteRate, Bytes};
use keepup_plan::{Profile, builtin, builtin_names, load};

use crate::exit::Exit;
use crate::output::result;

/// List, show or check detector profiles
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the built-in profiles
    List,
    /// Show a profile with inherited settings and the sources of its figures
    Show {
        /// Built-in profile or path of a profile file
        profile: String,
    },
    /// Check a profile file
    Check {
        /// Path of the file
        file: String,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::List => {
            let mut lines = vec![format!(
                "{:<24} {:>12} {:>12} {:>8}  {}",
                "NAME", "RATE", "EVENT", "STREAMS", "DETECTOR"
            )];
            for name in builtin_names() {
                lines.push(line(&builtin(name)?));
            }
            result(&lines.join("\n"));
        }
        Verb::Show { profile } => result(&show(&load(profile)?)),
        Verb::Check { file } => {
            let path = if file.contains('/') { file.clone() } else { format!("./{file}") };
            let profile = load(&path)?;
            result(&format!("{file}: {} is valid, {}", profile.name, rate(&profile)));
        }
    }
    Ok(Exit::Done)
}

fn rate(profile: &Profile) -> String {
    ByteRate::new(profile.required_bytes_per_second()).map_or_else(|e| e.to_string(), |rate| rate.to_string())
}

fn line(profile: &Profile) -> String {
    let event = Bytes(profile.event.mean_bytes() as u64).to_string();
    format!(
        "{:<24} {:>12} {event:>12} {:>8}  {}",
        profile.name,
        rate(profile),
        profile.streams,
        profile.title
    )
}

fn show(profile: &Profile) -> String {
    let mut lines = vec![profile.to_toml().trim_end().to_owned(), String::new()];
    lines.push(format!("# required: {}, {} for the whole run", rate(profile), profile.space_needed()));
    for reference in profile.references.iter().filter(|r| !r.verified) {
        lines.push(format!("# not verified: {} = {}", reference.what, reference.value));
    }
    lines.join("\n")
}
