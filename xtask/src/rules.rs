//! The rules of the house, one file per kind of thing that is looked at.

pub(crate) mod code;
pub(crate) mod crates;
pub(crate) mod links;
pub(crate) mod text;
pub(crate) mod tiers;
