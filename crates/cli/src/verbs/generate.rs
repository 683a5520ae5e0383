//! `keepup generate`: man pages and shell completions from the clap definition.
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::output::result;

const NAME: &str = "keepup";

/// Write man pages or shell completions
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup generate completions bash > ~/.local/share/bash-completion/completions/keepup
  keepup generate man ~/.local/share/man/man1")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Print shell completions
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Write a man page for every command
    Man {
        /// Output directory, created if missing
        directory: PathBuf,
    },
}

pub(crate) fn run(args: &Args, mut command: Command) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, NAME, &mut text);
            result(String::from_utf8(text).context("cannot print the completions")?.trim_end());
        }
        Verb::Man { directory } => {
            std::fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(command, directory))
                .with_context(|| format!("cannot write man pages to {}", directory.display()))?;
        }
    }
    Ok(Exit::Done)
}
