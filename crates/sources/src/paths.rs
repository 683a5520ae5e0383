//! Paths in addresses, and in the names of streams.

/// Longest prefix of the names of streams, in bytes: they have at most 256.
pub(crate) const PREFIX_BYTES_MAX: usize = 200;

/// Splits a list at its first comma into a path and the rest; `,,` is a comma in the path.
#[must_use]
pub fn split_path(text: &str) -> (String, &str) {
    let mut path = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(',') {
        path.push_str(before);
        let Some(more) = behind.strip_prefix(',') else { return (path, behind) };
        path.push(',');
        rest = more;
    }
    path.push_str(rest);
    (path, "")
}

/// The path in an address: `,,` for each comma.
#[must_use]
pub fn path_in_address(path: &str) -> String {
    path.replace(',', ",,")
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
