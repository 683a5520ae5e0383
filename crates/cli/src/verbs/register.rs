//! `keepup register`: register access of cards and boards.
mod get;
mod note;
mod read;
mod serve_ipbus;
mod set;

use crate::exit::Exit;

/// Measure register access of cards and boards and the break-even of block transfers
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Read(read::ReadArgs),
    Compare(read::CompareArgs),
    Get(get::Args),
    Set(set::Args),
    /// Fit the published figures of the note CERN-BE-2009-032
    ReplayNote,
    ServeIpbus(serve_ipbus::Args),
}

impl Args {
    /// Whether the command measures.
    pub(crate) fn keeps_a_result(&self) -> bool {
        matches!(self.verb, Verb::Read(_) | Verb::Compare(_))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Read(args) => read::read(args),
        Verb::Compare(args) => read::compare(args),
        Verb::Get(args) => get::run(args),
        Verb::Set(args) => set::run(args),
        Verb::ReplayNote => note::replay(),
        Verb::ServeIpbus(args) => serve_ipbus::run(args),
    }
}
