//! Wrapping, cleaning and tables.

use unicode_width::UnicodeWidthStr as _;

use super::layout::{pieces, shell_lines, wrap};
use super::{clean, render};
use crate::Style;
use crate::page::{Block, Fact, Headline, Item, Page};
use crate::table::{Table, Tone, left, right};

fn draw(items: Vec<Item>, width: usize) -> String {
    let headline = Headline { verdict: "FIT".into(), tone: Tone::Good, title: "t".into(), items: Vec::new() };
    let page = Page { headline, blocks: vec![Block::new("B", items)] };
    let text = render(&page, Style { colour: false, width });
    text.strip_prefix("[ FIT ]  t\n\nB\n").unwrap().to_owned()
}

#[test]
fn wrap_breaks_at_spaces_and_within_words_that_are_longer_than_a_line() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("a-very-long-word b", 5), ["a-ver", "y-lon", "g-wor", "d b"]);
    assert_eq!(wrap("0 x   1 y", 20), ["0 x   1 y"]);
    assert_eq!(wrap("", 5), [""]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    assert_eq!(clean("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
}

#[test]
fn figures_stand_right_and_words_left() {
    let rows = vec![vec!["ab".into(), "1".into(), "x".into()], vec!["c".into(), "100".into(), "".into()]];
    let table = Table { columns: vec![left(""), right("n"), left("why")], rows };
    assert_eq!(draw(vec![Item::Table(table)], 80), "        n  why\n  ab    1  x\n  c   100\n");
}

#[test]
fn the_last_column_wraps_below_itself() {
    let long = "word ".repeat(20);
    let table =
        Table { columns: vec![left(""), left("")], rows: vec![vec!["a".into(), long.trim_end().into()]] };
    let text = draw(vec![Item::Table(table)], 60);
    assert_eq!(text.lines().count(), 2);
    assert!(text.lines().nth(1).unwrap().starts_with("     word"), "{text}");
}

#[test]
fn the_widest_column_gives_way_wherever_it_is() {
    let name = "a long name ".repeat(10);
    let columns = vec![left("of"), right("rate, MB/s"), left("why")];
    let rows = vec![vec![name.trim_end().into(), "2558".into(), "short".into()]];
    let text = draw(vec![Item::Table(Table { columns, rows })], 60);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("2558  short"), "{text}");
    assert_eq!(text.matches("name").count(), 10, "{text}");
}

#[test]
fn figures_are_never_broken_but_their_ranges_stand_below() {
    assert_eq!(pieces("80.0 MB/s (79.1 to 81.2)", true, 16), ["80.0 MB/s", "(79.1 to 81.2)"]);
    assert_eq!(
        pieces("80.0 MB/s ±6 %, 1.02 (0.98 to 1.05), worse", true, 20),
        ["80.0 MB/s ±6 %, 1.02", "(0.98 to 1.05),", "worse"]
    );
    let columns = vec![left("of"), right("what arrived, MB/s"), right("lost")];
    let name = "name ".repeat(12);
    let rows = vec![vec![name.trim_end().into(), "80.0 (79.1 to 81.2)".into(), "1".into()]];
    let text = draw(vec![Item::Table(Table { columns, rows })], 60);
    assert!(text.lines().all(|line| line.width() <= 60), "{text}");
    assert!(text.lines().any(|line| line.contains("80.0 (79.1 to 81.2)") || line.contains("(79.1 to 81.2)")));
}

#[test]
fn titles_stand_directly_above_their_columns() {
    let columns = vec![left("a"), right("rate of all volumes together, MB/s"), left("note")];
    let long = "word ".repeat(12);
    let rows = vec![vec!["x".into(), "1.0".into(), long.trim_end().into()]];
    let text = draw(vec![Item::Table(Table { columns, rows })], 60);
    let heads: Vec<&str> = text.lines().take_while(|line| !line.contains("1.0")).collect();
    assert!(heads.len() > 1 && heads[0].trim_start().starts_with("rate"), "{text}");
    assert!(heads[heads.len() - 1].trim_start().starts_with('a'), "{text}");
}

#[test]
fn a_table_that_is_too_wide_becomes_rows_of_titles_and_figures() {
    let mut columns = vec![left("setting")];
    columns.extend((0..12).map(|n| right(format!("figure-{n}, MB/s"))));
    let mut row = vec!["first".into()];
    row.extend((0..12).map(|n| format!("{n}000.25").into()));
    let text = draw(vec![Item::Table(Table { columns, rows: vec![row] })], 60);
    assert!(text.starts_with("  first\n    figure-0, MB/s   0000.25\n"), "{text}");
    assert_eq!(text.lines().count(), 13, "{text}");
}

#[test]
fn wide_characters_count_by_their_columns() {
    let rows = vec![vec!["結果".into(), "1".into()], vec!["ab".into(), "2".into()]];
    let text = draw(vec![Item::Table(Table { columns: vec![left(""), right("n")], rows })], 80);
    let ends: Vec<usize> = text.lines().map(|line| line.width()).collect();
    assert_eq!(ends, [9, 9, 9], "{text}");
    assert!(wrap(&"結".repeat(50), 21).iter().all(|line| line.width() <= 21));
}

#[test]
fn a_long_command_can_be_pasted_into_a_shell() {
    let command = "keepup disk sweep --volume '/data/a b' --sizes '4 KiB,1 MiB'";
    let lines = shell_lines(command, 30);
    assert_eq!(lines, ["keepup disk sweep --volume \\", "'/data/a b' --sizes \\", "'4 KiB,1 MiB'"]);
    assert!(lines.iter().all(|line| line.width() <= 30));
    assert_eq!(shell_lines("'it'\\''s a b' c", 4), ["'it'\\''s a b' \\", "c"]);
    assert_eq!(shell_lines("", 4), [""]);
}

#[test]
fn commands_go_on_in_the_next_line_and_paths_stay_whole() {
    let command = "keepup qualify csl ".repeat(8);
    let path = "/data/".repeat(20);
    let facts = vec![Fact::command("repeat with", command.trim_end()), Fact::path("result in", path.clone())];
    let text = draw(vec![Item::Facts(facts)], 60);
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("  result in    {path}"));
    assert!(text.lines().rev().skip(1).all(|line| line.width() <= 60), "{text}");
    let whole: Vec<&str> = text.lines().rev().skip(1).map(str::trim).collect();
    let whole: Vec<String> =
        whole.into_iter().rev().map(|line| line.trim_end_matches(" \\").to_owned()).collect();
    assert_eq!(whole.join(" "), format!("repeat with  {}", command.trim_end()));
}
