//! Wrapping, cleaning and tables.

use super::{clean, render, wrap};
use crate::Style;
use crate::page::{Block, Fact, Headline, Item, Page, Table, Tone, left, right};

fn draw(items: Vec<Item>, width: usize) -> String {
    let headline = Headline { verdict: "FIT".into(), tone: Tone::Good, title: "t".into(), items: Vec::new() };
    let page = Page { headline, blocks: vec![Block::new("B", items)] };
    let text = render(&page, Style { colour: false, width });
    text.strip_prefix("[ FIT ]  t\n\nB\n").unwrap().to_owned()
}

#[test]
fn wrap_breaks_at_spaces_and_keeps_long_words_whole() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    assert_eq!(wrap("a-very-long-word b", 5), ["a-very-long-word", "b"]);
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
fn what_is_to_be_copied_is_never_broken() {
    let command = "keepup qualify csl ".repeat(8);
    let facts = vec![Fact::new("note", command.trim_end()), Fact::literal("repeat with", command.trim_end())];
    let text = draw(vec![Item::Facts(facts)], 60);
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("  repeat with  {}", command.trim_end()));
    assert!(text.lines().rev().skip(1).all(|line| line.chars().count() <= 60), "{text}");
}
