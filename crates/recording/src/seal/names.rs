//! Names of streams as HDF5 links.
use std::collections::{BTreeMap, BTreeSet};

/// Names that the views use themselves.
const RESERVED: [&str; 4] = ["bytes", "segments", "title", "start_time"];

/// A link name for each stream: its own name where HDF5 can have it and no other stream has taken it, else
/// `stream-ID`. `streams` come by id.
pub(crate) fn link_names<'a>(streams: impl Iterator<Item = (u32, &'a str)>) -> BTreeMap<u32, String> {
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for (id, name) in streams {
        let usable = is_usable(name) && taken.insert(name);
        names.insert(id, if usable { name.to_owned() } else { format!("stream-{id}") });
    }
    names
}

/// A slash parts a path, a dot is the group itself; what looks like `stream-ID` is left to those that need
/// it.
fn is_usable(name: &str) -> bool {
    let is_path = name.is_empty() || name == "." || name == ".." || name.contains('/');
    let is_plain = !name.chars().any(char::is_control) && !name.starts_with("stream-");
    !is_path && is_plain && !RESERVED.contains(&name)
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
