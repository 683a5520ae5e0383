//! `keepup generate`: man pages and shell completions, from the definition of the command line itself.
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
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Print a shell's completions
    Completions {
        /// Shell to complete in
        shell: Shell,
    },
    /// Write a man page for every command
    Man {
        /// Directory for the pages, made if it is missing
        directory: PathBuf,
    },
}

pub(crate) fn run(args: &Args, mut command: Command) -> anyhow::Result<Exit> {
    match &args.what {
        What::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, NAME, &mut text);
            result(String::from_utf8(text).context("completions are not text")?.trim_end());
        }
        What::Man { directory } => {
            std::fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(command, directory))
                .with_context(|| format!("cannot write man pages to {}", directory.display()))?;
        }
    }
    Ok(Exit::Done)
}
