//! `keepup predict calibrate`: a machine out of a qualification.
use std::path::PathBuf;

use keepup_model::calibrate;
use keepup_results::{Headed as _, Stored, StoredResult};

use crate::exit::{Exit, UsageError};
use crate::output::result;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Directory of a qualification
    result: PathBuf,
    /// What the machine is to be called
    #[arg(long, value_name = "NAME", default_value = "here")]
    name: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let stored = StoredResult::open(&args.result)?;
    let from = args.result.display().to_string();
    let Stored::Qualify(summary) = &stored.summary else {
        let why = format!(
            "{from} is the result of {}, which measures a part of a machine\n\
             hint: a machine is calibrated by a qualification: keepup qualify",
            stored.summary.head().workload
        );
        return Err(UsageError(why).into());
    };
    let machine = calibrate(summary, &args.name, &from)?;
    result(machine.to_toml()?.trim_end());
    Ok(Exit::Done)
}
