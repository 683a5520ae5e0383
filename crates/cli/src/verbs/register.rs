//! `keepup register`: registers of cards and boards.
mod get;
mod note;
mod read;
mod serve_ipbus;
mod set;

use crate::exit::Exit;

/// Registers of cards and boards: what one read costs, and from where on a block transfer pays
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Read(read::ReadArgs),
    Compare(read::CompareArgs),
    Get(get::Args),
    Set(set::Args),
    /// Put the figures of the note CERN-BE-2009-032 through the same fit
    ReplayNote,
    ServeIpbus(serve_ipbus::Args),
}

impl Args {
    /// Whether it measures.
    pub(crate) fn keeps_a_result(&self) -> bool {
        matches!(self.kind, Kind::Read(_) | Kind::Compare(_))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.kind {
        Kind::Read(args) => read::read(args),
        Kind::Compare(args) => read::compare(args),
        Kind::Get(args) => get::run(args),
        Kind::Set(args) => set::run(args),
        Kind::ReplayNote => note::replay(),
        Kind::ServeIpbus(args) => serve_ipbus::run(args),
    }
}
