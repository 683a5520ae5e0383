//! One file per verb.
pub(crate) mod cat;
pub(crate) mod disk;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod export;
pub(crate) mod info;
mod keep;
pub(crate) mod load;
pub(crate) mod net;
pub(crate) mod profile;
pub(crate) mod qualify;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod sink;
pub(crate) mod soak;
pub(crate) mod source;
pub(crate) mod verify;
