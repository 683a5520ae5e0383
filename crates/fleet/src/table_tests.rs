//! Alignment, and lines that do not get too long.
use super::*;

#[test]
fn columns_are_aligned() {
    let rows = [["a", "rate"], ["longer", "1"]].map(|row| row.map(str::to_owned));
    assert_eq!(table(&rows, 1), "a       rate\nlonger     1\n");
}

#[test]
fn paragraphs_are_wrapped_at_words() {
    let text = "word ".repeat(40);
    let found = paragraph("reason  ", &text);
    assert!(found.lines().all(|line| line.chars().count() <= WIDTH), "{found}");
    assert!(found.lines().skip(1).all(|line| line.starts_with("        word")), "{found}");
    assert_eq!(found.split_whitespace().count(), 41);
    // A path is not cut.
    let long = "x".repeat(100);
    assert_eq!(paragraph("a ", &long), format!("a {long}\n"));
}
