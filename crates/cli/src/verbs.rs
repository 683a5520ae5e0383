//! One file per verb.
pub(crate) mod drain;
pub(crate) mod profile;
pub(crate) mod qualify;
pub(crate) mod record;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod verify;
