//! Names of streams as HDF5 links.
use std::collections::{BTreeMap, BTreeSet};

/// Names used by the views.
const RESERVED: [&str; 4] = ["bytes", "segments", "title", "start_time"];
/// Additional names used by the master. In segments, streams may have these names.
const RESERVED_IN_MASTER: [&str; 2] = ["entry_identifier", "metadata"];

/// Link name of each stream: its own name if HDF5 allows it and no other stream has it, otherwise
/// `stream-ID`. `streams` are in order of id.
pub(crate) fn link_names<'a>(streams: impl Iterator<Item = (u32, &'a str)>) -> BTreeMap<u32, String> {
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for (id, name) in streams {
        let usable = is_usable(name) && taken.insert(name);
        names.insert(id, if usable { name.to_owned() } else { format!("stream-{id}") });
    }
    names
}

/// Like [`link_names`], for the master of a recording, which reserves more names: `more`, and those of every
/// master.
pub(crate) fn master_names<'a>(
    streams: impl Iterator<Item = (u32, &'a str)>,
    more: &[&str],
) -> BTreeMap<u32, String> {
    let mut names = link_names(streams);
    for (id, name) in &mut names {
        if RESERVED_IN_MASTER.iter().chain(more).any(|reserved| reserved == name) {
            *name = format!("stream-{id}");
        }
    }
    names
}

/// Name of each metadata key: the key itself if HDF5 allows it, otherwise `entry-N`, counted from
/// 0.
pub(crate) fn key_names<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = |(at, key): (usize, &str)| match can_be_link(key) && !key.starts_with("entry-") {
        true => key.to_owned(),
        false => format!("entry-{at}"),
    };
    keys.enumerate().map(name).collect()
}

/// Names like `stream-ID` are reserved for generated names.
fn is_usable(name: &str) -> bool {
    can_be_link(name) && !name.starts_with("stream-") && !RESERVED.contains(&name)
}

/// A slash separates a path, a dot is the group itself.
fn can_be_link(name: &str) -> bool {
    let is_path = name.is_empty() || name == "." || name == ".." || name.contains('/');
    !is_path && !name.chars().any(char::is_control)
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
