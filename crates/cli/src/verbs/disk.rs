//! `keepup disk`: what the papers' programs measured of a disk, each a test of its own.
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

use crate::exit::Exit;

/// Measure disks alone: the tests of the papers, exactly as they did them
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    test: Test,
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

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.test {
        Test::Testdisk(args) => testdisk::run(args),
        Test::Sweep(args) => sweep::run(args),
        Test::Concurrent(args) => concurrent::run(args),
        Test::Throttle(args) => throttle::run(args),
        Test::Scale(args) => scale::run(args),
        Test::Cache(args) => cache::run(args),
        Test::Block(args) => block::run(args),
        Test::Steady(args) => steady::run(args),
    }
}
