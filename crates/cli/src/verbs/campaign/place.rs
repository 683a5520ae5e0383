//! Where the cells of a campaign run: on this machine, or on hosts of a fleet.
use std::path::Path;
use std::time::Duration;

use keepup_campaign::{Campaign, CampaignEvent, Cell, Forecasts, Runner};
use keepup_error::Cause;

use super::cells::{cell_error, commands};
use super::messages;
use super::runner::Child;
use crate::exit::Exit;
use crate::progress::StatusLine;
use crate::signals::stop_flag;

/// A place that runs cells.
pub(crate) trait Place: Runner {
    /// Checks the command of every cell there and estimates its cost; `None` if the user interrupts.
    ///
    /// # Errors
    /// A cell that cannot run.
    fn forecasts(&mut self, campaign: &Campaign, cells: &[Cell]) -> anyhow::Result<Option<Forecasts>>;

    /// Removes the progress line.
    fn clear_line(&mut self);
}

/// Does `work` at the place of `cells`: on the hosts of the fleet file, if one is given.
pub(super) fn at_place(
    fleet: Option<&Path>,
    campaign: &Campaign,
    cells: &[Cell],
    work: impl FnOnce(&mut dyn Place) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    #[cfg(feature = "fleet")]
    if let Some(file) = fleet {
        return crate::verbs::fleet::campaign::on_hosts(file, campaign, cells, work);
    }
    debug_assert!(fleet.is_none(), "only builds with fleets have the flag");
    let has_host = commands(cells).into_iter().find_map(|cell| Some((cell, cell.host.as_ref()?)));
    if let Some((cell, host)) = has_host {
        let why = Cause::new(format!("host {host} is a host of a fleet, and no fleet file is given"));
        let hint = if cfg!(feature = "fleet") {
            "--fleet FILE, or remove `host` from the campaign file"
        } else {
            "a build with the cargo feature `fleet` has --fleet FILE"
        };
        return Err(cell_error(campaign, cell, why.with_hint(hint)));
    }
    work(&mut Child::new(stop_flag()?)?)
}

/// Progress line of the current run.
#[derive(Default)]
pub(crate) struct RunLine(Option<StatusLine>);

impl RunLine {
    pub(crate) fn show(&mut self, event: &CampaignEvent<'_>) {
        let status = self.0.get_or_insert_with(StatusLine::new);
        match event {
            CampaignEvent::RunStarted { .. } => status.show(&messages::progress_line(event), Duration::ZERO),
            CampaignEvent::RunEnded { .. } => status.log(&messages::progress_line(event)),
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}
