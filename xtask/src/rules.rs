//! Project rules, one file per subject.

pub(crate) mod code;
pub(crate) mod crates;
pub(crate) mod links;
pub(crate) mod modules;
pub(crate) mod text;
pub(crate) mod tiers;
pub(crate) mod words;
