//! Names close to a mistyped one.

/// Most letters in which a close name may differ.
const DISTANCE_MAX: usize = 3;
/// Most names that are suggested.
const NAMES_MAX: usize = 5;

/// The known names that differ least from `name`, or of which it is a part; nearest first.
pub fn close_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let mut close: Vec<(usize, &str)> = known
        .map(|known| (if is_part(&name, known) { 0 } else { distance(&name, known) }, known))
        .filter(|(distance, known)| *distance <= DISTANCE_MAX.min(known.len() / 2))
        .collect();
    close.sort_unstable();
    close.into_iter().take(NAMES_MAX).map(|(_, known)| known.to_owned()).collect()
}

/// "; close to it: a, b" where there is something to suggest.
pub(super) fn suggestion(close: &[String]) -> String {
    if close.is_empty() { String::new() } else { format!("; close to it: {}", close.join(", ")) }
}

fn is_part(name: &str, known: &str) -> bool {
    name.len() >= 3 && known.contains(name)
}

/// Levenshtein distance in bytes: insertions, deletions and replacements.
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
