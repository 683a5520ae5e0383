//! The pages of the kinds of results: one file for each says what is shown of it.

pub(crate) mod qualify;
mod timeline;
