//! `keepup campaign --fleet`: cells of a campaign on the hosts of a fleet.
mod exchange;
mod result;

use std::collections::BTreeMap;
use std::path::Path;

use keepup_campaign::{Campaign, CampaignError, CampaignEvent, Cell, Forecast, Forecasts, RunReport, Runner};
use keepup_error::Cause;
use keepup_fleet::FleetError;
use keepup_fleet::command::{CheckedCommand, CommandPlan, Reply, ReplyError, batches, check_length};
use keepup_fleet::file::FleetFile;
use keepup_fleet::message::HostId;
use keepup_results::printable;

use self::exchange::Exchange;
use super::events::Reporter;
use super::up::{Session, end};
use crate::cells::{Place, RunLine, cell_error, commands, report_of};
use crate::exit::Exit;

/// Exit code of a run that its host could not execute.
const ENVIRONMENT: i32 = 4;

/// Starts the agents of the hosts that `cells` name, does `work` there, and ends the agents.
pub(crate) fn on_hosts(
    path: &Path,
    campaign: &Campaign,
    cells: &[Cell],
    work: impl FnOnce(&mut dyn Place) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let mut file = FleetFile::read(path)?;
    file.timing = file.timing.of_trial();
    let cells_to_run = commands(cells);
    for cell in &cells_to_run {
        check_host(&file, cell).map_err(|why| cell_error(campaign, cell, why))?;
        check_length(&cell.arguments).map_err(|why| cell_error(campaign, cell, why))?;
    }
    // The others have nothing to do.
    file.hosts.retain(|host| cells_to_run.iter().any(|cell| cell.host.as_ref() == Some(&host.name)));
    let mut session = Session::open(path, file.clone())?;
    let mut reporter = Reporter::new(&file);
    let done = Exchange::gather(&mut session, &mut reporter)
        .and_then(|exchange| work(&mut Hosts { exchange, line: RunLine::default() }));
    end(&mut session, &mut reporter, "the campaign is over");
    done
}

/// Checks that the fleet has the host of a cell.
fn check_host(file: &FleetFile, cell: &Cell) -> Result<(), Cause> {
    let names: Vec<&str> = file.hosts.iter().map(|host| host.name.as_str()).collect();
    let Some(name) = &cell.host else {
        let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let hint = format!("set host in [run], or as an axis: host = [{}]", quoted.join(", "));
        return Err(Cause::new("the cell has no host").with_hint(hint));
    };
    match names.contains(&name.as_str()) {
        true => Ok(()),
        false => Err(Cause::new(format!("the fleet {} has no host {name}", file.name))
            .with_hint(format!("its hosts: {}", names.join(", ")))),
    }
}

/// The hosts as the place of the cells.
struct Hosts<'a, 'b> {
    exchange: Exchange<'a, 'b>,
    line: RunLine,
}

impl Place for Hosts<'_, '_> {
    fn forecasts(&mut self, campaign: &Campaign, cells: &[Cell]) -> anyhow::Result<Option<Forecasts>> {
        let mut of_hosts: BTreeMap<HostId, Vec<&Cell>> = BTreeMap::new();
        for cell in commands(cells) {
            of_hosts.entry(self.host_of(cell)?).or_default().push(cell);
        }
        let mut queues = Vec::new();
        for (host, cells) in of_hosts {
            let commands: Vec<&[String]> = cells.iter().map(|cell| &cell.arguments[..]).collect();
            let lists = batches(&commands).into_iter();
            let lists = lists.map(|list| list.into_iter().map(|index| cells[index]).collect::<Vec<_>>());
            queues.push((host, lists.collect::<Vec<_>>().into_iter()));
        }
        let mut forecasts = Forecasts::default();
        loop {
            let lists: BTreeMap<HostId, Vec<&Cell>> =
                queues.iter_mut().filter_map(|(host, lists)| Some((*host, lists.next()?))).collect();
            if lists.is_empty() {
                return Ok(Some(forecasts));
            }
            let plan = |cells: &Vec<&Cell>| {
                CommandPlan::Check(cells.iter().map(|cell| cell.arguments.clone()).collect())
            };
            let plans = lists.iter().map(|(host, cells)| (*host, plan(cells))).collect();
            let mut answers = self.exchange.ask(&plans)?;
            if self.exchange.is_stopped() {
                return Ok(None);
            }
            for (host, cells) in lists {
                let answer = answers.remove(&host).unwrap_or_else(|| Err("no answer".to_owned()));
                let checked = answer.and_then(|answer| checked_commands(&answer, cells.len()));
                let checked = checked.map_err(|why| self.failed(host, &why))?;
                for (cell, checked) in cells.into_iter().zip(checked) {
                    forecasts.insert(cell, self.forecast_of(campaign, (host, cell), checked)?);
                }
            }
        }
    }

    fn clear_line(&mut self) {
        self.line.clear();
    }
}

impl Hosts<'_, '_> {
    fn host_of(&self, cell: &Cell) -> anyhow::Result<HostId> {
        let host = cell.host.as_ref().and_then(|name| self.exchange.file().host(name));
        host.ok_or_else(|| anyhow::anyhow!("cannot run cell {}: it has no host", cell.number))
    }

    fn failed(&self, host: HostId, why: &str) -> FleetError {
        FleetError::Campaign(one_line(why).map(|why| format!("{}: {why}", self.exchange.name(host))))
    }

    /// The cost of a cell on its host, from the answer to its check.
    fn forecast_of(
        &self,
        campaign: &Campaign,
        (host, cell): (HostId, &Cell),
        checked: CheckedCommand,
    ) -> anyhow::Result<Forecast> {
        match checked {
            CheckedCommand::Plan(plan) => {
                let found: Result<Forecast, _> = serde_json::from_str(&plan);
                let forecast =
                    found.map_err(|error| self.failed(host, &format!("malformed plan: {error}")))?;
                Ok(forecast.on_host(self.exchange.name(host)))
            }
            CheckedCommand::Refused(why) => Err(cell_error(campaign, cell, one_line(&why))),
        }
    }

    /// Runs the command of a cell; returns its report, or why there is none.
    fn run_on_host(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, RunFailure> {
        let host = self.host_of(cell)?;
        self.exchange.wait_for(host)?;
        let plans = BTreeMap::from([(host, CommandPlan::Run(cell.arguments.clone()))]);
        let mut answers = self.exchange.ask(&plans)?;
        let reply = answers.remove(&host).unwrap_or_else(|| Err("no answer".to_owned()));
        let reply = reply.map_err(RunFailure::Host)?;
        let end = self.exchange.during(|| result::store(&reply, run_directory))?;
        let report = report_of(run_directory, end.code, end.signal, self.exchange.is_stopped());
        Ok(RunReport { why: report.why.as_deref().map(printable::one_line), ..report })
    }
}

/// Why a run has no report.
#[derive(Debug, PartialEq, Eq)]
enum RunFailure {
    /// Its host has none: the run has failed.
    Host(String),
    /// This machine cannot order or store it: the campaign ends.
    Here(String),
}

impl From<anyhow::Error> for RunFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Here(format!("{error:#}"))
    }
}

impl From<ReplyError> for RunFailure {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Io(why) => Self::Here(format!("cannot store its result: {why}")),
            ReplyError::Malformed(_) | ReplyError::TooLarge { .. } => Self::Host(error.to_string()),
        }
    }
}

/// The answers to the checks of `count` commands.
fn checked_commands(answer: &Reply, count: usize) -> Result<Vec<CheckedCommand>, String> {
    let text = answer.text().map_err(|error| error.to_string())?;
    let found: Vec<CheckedCommand> =
        serde_json::from_str(&text).map_err(|error| format!("malformed answer: {error}"))?;
    match found.len() == count {
        true => Ok(found),
        false => Err(format!("{} answers to {count} checks", found.len())),
    }
}

/// A reason from a host: text and hint in one line each.
fn one_line(why: &str) -> Cause {
    // A dry run may print warnings before its error.
    let why = why.rfind("\nerror: ").map_or(why, |at| &why[at..]);
    let cause = Cause::from_text(why.trim());
    let hint = cause.hint().map(|hint| printable::one_line(&hint)).unwrap_or_default();
    cause.map(printable::one_line).with_hint(hint)
}

/// Why a run has failed, in one line with the hint.
fn failed_run(host: &str, why: &str) -> String {
    let cause = one_line(why);
    let hint = cause.hint().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
    format!("{host}: {cause}{hint}")
}

impl Runner for Hosts<'_, '_> {
    fn run(&mut self, cell: &Cell, run_directory: &Path) -> Result<RunReport, CampaignError> {
        self.run_on_host(cell, run_directory).or_else(|failure| match failure {
            RunFailure::Host(why) => Ok(RunReport {
                exit_code: ENVIRONMENT,
                why: Some(failed_run(cell.host.as_deref().unwrap_or_default(), &why)),
                is_interrupted: self.exchange.is_stopped(),
            }),
            RunFailure::Here(why) => Err(CampaignError::Run { cell: cell.number, name: cell.command(), why }),
        })
    }

    fn is_stopped(&self) -> bool {
        self.exchange.is_stopped()
    }

    fn report(&mut self, event: &CampaignEvent<'_>) {
        self.line.show(event);
    }
}

#[cfg(test)]
#[path = "campaign_tests.rs"]
mod tests;
