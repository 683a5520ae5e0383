//! Runs each cell in a child process, which ends with this process.
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keepup_campaign::{
    Campaign, CampaignError, CampaignEvent, Cell, Forecasts, RunReport, Runner, run_command,
};
use keepup_measure::environment::Naming;

use super::cells::{forecasts, program};
use super::is_raised;
use crate::cells::{Place, RunLine, report_of};
use crate::output::LOG_VARIABLE;

/// Runner of cells on this machine.
pub(super) struct Child {
    program: PathBuf,
    stop: Arc<AtomicBool>,
    line: RunLine,
}

impl Child {
    pub(super) fn new(stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        Ok(Self { program: program()?, stop, line: RunLine::default() })
    }
}

impl Place for Child {
    fn forecasts(&mut self, campaign: &Campaign, cells: &[Cell]) -> anyhow::Result<Option<Forecasts>> {
        forecasts(campaign, cells, &self.stop)
    }

    fn clear_line(&mut self) {
        self.line.clear();
    }
}

impl Runner for Child {
    fn run(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, CampaignError> {
        let mut command = Command::new(&self.program);
        command.args(&cell.arguments).arg("--out").arg(run_directory).env_remove(LOG_VARIABLE);
        command.envs(Naming::current().variables());
        let status = run_command(command, run_directory, &|| is_raised(&self.stop))
            .map_err(|why| CampaignError::Run { cell: cell.number, name: cell.arguments.join(" "), why })?;
        Ok(report_of(run_directory, status.code(), status.signal(), is_raised(&self.stop)))
    }

    fn is_stopped(&self) -> bool {
        is_raised(&self.stop)
    }

    fn report(&mut self, event: &CampaignEvent<'_>) {
        self.line.show(event);
    }
}
