//! Suggestions for mistyped names.

/// Maximum edit distance of a suggestion.
const DISTANCE_MAX: usize = 3;
/// Maximum number of suggestions.
const NAMES_MAX: usize = 5;

/// Known names closest to `name`, or containing it; nearest first.
pub fn close_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let mut close: Vec<(usize, &str)> = known
        .map(|known| (if is_part(&name, known) { 0 } else { distance(&name, known) }, known))
        .filter(|(distance, known)| *distance <= distance_max(known))
        .collect();
    close.sort_unstable();
    close.into_iter().take(NAMES_MAX).map(|(_, known)| known.to_owned()).collect()
}

/// "did you mean a or b? ", or an empty text.
pub(super) fn suggestion(close: &[String]) -> String {
    match close {
        [] => String::new(),
        close => format!("did you mean {}? ", close.join(" or ")),
    }
}

/// Maximum edit distance for `known`: half of its letters, two of three.
fn distance_max(known: &str) -> usize {
    (known.len() / 2).max(2).min(known.len().saturating_sub(1)).min(DISTANCE_MAX)
}

fn is_part(name: &str, known: &str) -> bool {
    name.len() >= 3 && known.contains(name)
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
