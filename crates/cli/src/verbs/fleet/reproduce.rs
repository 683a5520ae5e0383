//! `keepup reproduce --fleet`: flags of a reproduction on several hosts.
use std::path::PathBuf;

use anyhow::Context as _;
use keepup_fleet::file::FleetFile;
use keepup_fleet::message::Role;
use keepup_reproduce::FleetRequest;

/// Flags of `reproduce` for a fleet.
#[derive(clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Fleet file: measure 1 to all of its recorders in place of this machine, for romanis and cdf-csl
    #[arg(long, value_name = "FILE", conflicts_with_all = ["volume", "raid", "target", "host", "long"])]
    fleet: Option<PathBuf>,
    /// Measure each recorder alone, too, to identify what they share: takes a search for each recorder
    #[arg(long, requires = "fleet")]
    each: bool,
}

impl FleetArgs {
    pub(crate) const fn is_given(&self) -> bool {
        self.fleet.is_some()
    }

    /// The fleet to measure, if one is given.
    pub(crate) fn request(&self) -> anyhow::Result<Option<FleetRequest>> {
        let Some(path) = &self.fleet else { return Ok(None) };
        let file = FleetFile::read(path)?;
        let recorders = file.hosts.iter().filter(|host| host.role == Role::Recorder).count();
        let recorders = u32::try_from(recorders).context("cannot count the recorders")?;
        // Absolute, so that the campaign can be resumed from another directory.
        let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        Ok(Some(FleetRequest { file, recorders, each: self.each }))
    }
}
