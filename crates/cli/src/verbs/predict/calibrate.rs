//! `keepup predict calibrate`: machine file from a qualification.
use std::path::PathBuf;

use keepup_error::Cause;
use keepup_model::calibrate;
use keepup_results::{Headed as _, Stored, StoredResult};

use crate::exit::{Exit, usage};
use crate::output::result;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Result directory of a qualification
    result: PathBuf,
    /// Name of the machine
    #[arg(long, value_name = "NAME", default_value = "here")]
    name: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stored = StoredResult::open(&args.result)?;
    let from = args.result.display().to_string();
    let Stored::Qualify(summary) = &stored.summary else {
        let workload = &stored.summary.head().workload;
        let why = format!("cannot calibrate from {from}: {workload} measures only a part of a machine");
        let hint = "use a result of `keepup qualify`";
        return Err(usage(Cause::new(why).with_hint(hint)));
    };
    let machine = calibrate(summary, &args.name, &from)?;
    result(machine.to_toml()?.trim_end());
    Ok(Exit::Done)
}
