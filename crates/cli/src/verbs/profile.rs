//! `keepup profile`: detector profiles.
use clap::Subcommand;
use keepup_plan::units::ByteRate;
use keepup_plan::{Profile, builtin, builtin_names, load};
use keepup_report::listing;

use crate::exit::Exit;
use crate::output::{print_listing, result};

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
            let profiles = builtin_names().map(builtin).collect::<Result<Vec<Profile>, _>>()?;
            print_listing(|style| listing::profiles(&profiles, style));
        }
        Verb::Show { profile } => result(&show(&load(profile)?)),
        Verb::Check { file } => {
            let path = if file.contains('/') { file.clone() } else { format!("./{file}") };
            let profile = load(&path)?;
            result(&format!(
                "{file}: {} is valid, {}",
                profile.name,
                rate(profile.required_bytes_per_second())
            ));
        }
    }
    Ok(Exit::Done)
}

fn rate(bytes_per_second: f64) -> String {
    ByteRate::new(bytes_per_second).map_or_else(|e| e.to_string(), |rate| rate.to_string())
}

/// Text of a profile file with all settings, and remarks as comments.
fn show(profile: &Profile) -> String {
    let mut lines = vec![profile.to_toml().trim_end().to_owned(), String::new()];
    let required = rate(profile.required_bytes_per_second());
    lines.push(format!("# required: {required}, {} for the whole run", profile.space_needed()));
    if let (Some(image), Some(bytes)) = (profile.uncompressed(), profile.uncompressed_bytes_per_second()) {
        lines.push(format!("# before compression: {}, images of {image}", rate(bytes)));
    }
    for reference in profile.references.iter().filter(|r| !r.verified) {
        lines.push(format!("# not verified: {} = {}", reference.what, reference.value));
    }
    lines.join("\n")
}
