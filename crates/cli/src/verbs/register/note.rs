//! `keepup register replay-note`: published figures of CERN-BE-2009-032 with keepup's fit.
use keepup_model::papers::paper;
use keepup_report::listing;

use crate::exit::Exit;
use crate::output::print_listing;

/// Name of the note among the papers.
const NOTE: &str = "cern-vme";

pub(super) fn replay() -> anyhow::Result<Exit> {
    let paper = paper(NOTE)?;
    print_listing(|style| listing::register_note(&paper, style));
    Ok(Exit::Done)
}
