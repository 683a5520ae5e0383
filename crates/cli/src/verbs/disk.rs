//! `keepup disk`: disk tests, modelled on the programs of the papers.
mod block;
mod cache;
mod concurrent;
mod mode;
mod run;
mod scale;
mod steady;
mod sweep;
mod testdisk;
mod throttle;

use clap::Subcommand;

use self::run::Purpose;
use crate::exit::Exit;

/// Measure disks alone, with the tests of the published papers
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(flatten)]
    Test(Test),
    ExportFio(ExportFio),
}

#[derive(Subcommand)]
enum Test {
    Testdisk(testdisk::Args),
    Sweep(sweep::Args),
    Concurrent(concurrent::Args),
    Throttle(throttle::Args),
    Scale(scale::Args),
    Cache(cache::Args),
    Block(block::Args),
    Steady(steady::Args),
}

/// Print a test as a fio job file, to check a figure with another program
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk export-fio sweep --volume /data/a --quick > sweep.fio
  fio sweep.fio")]
struct ExportFio {
    #[command(subcommand)]
    test: Test,
}

impl Args {
    /// Whether the command measures.
    pub(crate) fn keeps_a_result(&self) -> bool {
        matches!(self.verb, Verb::Test(_))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let (test, purpose) = match &args.verb {
        Verb::Test(test) => (test, Purpose::Measure),
        Verb::ExportFio(export) => (&export.test, Purpose::ExportFio),
    };
    match test {
        Test::Testdisk(args) => testdisk::run(args, purpose),
        Test::Sweep(args) => sweep::run(args, purpose),
        Test::Concurrent(args) => concurrent::run(args, purpose),
        Test::Throttle(args) => throttle::run(args, purpose),
        Test::Scale(args) => scale::run(args, purpose),
        Test::Cache(args) => cache::run(args, purpose),
        Test::Block(args) => block::run(args, purpose),
        Test::Steady(args) => steady::run(args, purpose),
    }
}
