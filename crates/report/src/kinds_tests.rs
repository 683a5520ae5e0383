//! Every kind of result in every form: one description, lines that fit, the same figures everywhere.

use keepup_results::{
    PredictSummary, SoakFile, SoakInterval, SoakKind, SoakMismatch, SoakOrigin, SoakPlace, SoakRange,
    SoakRate, Stored,
};
use unicode_width::UnicodeWidthStr as _;

use super::{document, page};
use crate::history::History;
use crate::page::{Block, Item};
use crate::samples::samples;
use crate::table::Table;
use crate::{Style, html, markdown, terminal, terminal_full};

/// As wide as the narrowest terminal in use.
const NARROW: Style = Style { colour: false, width: 80 };
/// Nothing is broken into lines.
const WIDE: Style = Style { colour: false, width: 100_000 };

fn assert_fits(name: &str, stored: &Stored) {
    let text = [terminal(stored, NARROW), terminal_full(stored, NARROW)].concat();
    let is_path = |line: &&str| line.contains("result in") || line.trim_start().starts_with("result  ");
    for line in text.lines().filter(|line| !is_path(line)) {
        assert!(line.width() <= NARROW.width, "{name}, {} columns: {line}", line.width());
    }
}

#[test]
fn every_result_fits_a_terminal_of_80_columns() {
    for (name, stored) in samples() {
        assert_fits(&name, &stored);
    }
}

#[test]
fn long_names_do_not_make_lines_longer() {
    let long: fn(&mut String) = |value| *value = format!("/data/{}", "disk-of-the-second-crate/".repeat(6));
    let mut tried = 0;
    for (name, mut stored) in samples() {
        match &mut stored {
            Stored::Disk(found) => found.runs.iter_mut().flat_map(|run| &mut run.volumes).for_each(long),
            Stored::Net(found) => found.runs.iter_mut().for_each(|run| long(&mut run.name)),
            Stored::Record(found) => found.runs.iter_mut().flat_map(|run| &mut run.volumes).for_each(long),
            Stored::Replay(found) => {
                found.passes.iter_mut().for_each(|pass| long(&mut pass.place));
                let places = found.index.iter_mut().flat_map(|index| &mut index.places);
                places.for_each(|place| long(&mut place.place));
            }
            Stored::QualifyFleet(found) => {
                found.hosts.iter_mut().for_each(|host| long(&mut host.host));
                found.trials.iter_mut().for_each(|trial| long(&mut trial.phase));
                found.lost.iter_mut().for_each(|lost| long(&mut lost.host));
            }
            Stored::Predict(found) => long_prediction(found, long),
            Stored::Compare(found) => {
                found.systems.iter_mut().for_each(|system| long(&mut system.name));
                found.rows.iter_mut().for_each(|row| long(&mut row.what));
                found.runs_needed.iter_mut().for_each(|needed| long(&mut needed.system));
                found.qualified.iter_mut().for_each(|interval| long(&mut interval.system));
            }
            _ => continue,
        }
        tried += 1;
        assert_fits(&name, &stored);
    }
    assert!(tried > 6, "{tried}");
}

/// Lengthens all names of a prediction.
fn long_prediction(found: &mut PredictSummary, long: fn(&mut String)) {
    let machine = &mut found.machine;
    [&mut machine.name, &mut machine.title, &mut machine.path].into_iter().for_each(long);
    machine.with.iter_mut().chain(&mut found.sweep).for_each(long);
    found.assumptions.iter_mut().for_each(|one| long(&mut one.name));
    for point in &mut found.points {
        long(&mut point.label);
        point.parts.iter_mut().for_each(|part| long(&mut part.name));
        let more = point.enough.iter_mut().flat_map(|enough| &mut enough.more);
        more.for_each(|more| long(&mut more.name));
    }
    for cell in found.papers.iter_mut().flat_map(|papers| &mut papers.cells) {
        [&mut cell.paper, &mut cell.condition, &mut cell.because].into_iter().for_each(long);
    }
}

#[test]
fn a_long_name_leaves_the_columns_of_a_prediction_where_they_are() {
    let mut tried = 0;
    for (name, mut stored) in samples() {
        let Stored::Predict(found) = &mut stored else { continue };
        if found.points.is_empty() {
            continue;
        }
        tried += 1;
        found.points.iter_mut().flat_map(|point| &mut point.parts).for_each(|part| {
            part.name = format!("{}-of-the-second-crate-behind-the-switch-of-hall-3", part.name);
        });
        let text = terminal_full(&stored, NARROW);
        let title = text.lines().find(|line| line.contains("bottleneck") && line.contains("rate"));
        assert!(title.is_some(), "{name}: the points are no table: {text}");
    }
    assert!(tried > 0);
}

fn tables(blocks: &[Block]) -> impl Iterator<Item = (&Block, &Table)> {
    blocks.iter().flat_map(|block| {
        block.items.iter().filter_map(move |item| match item {
            Item::Table(table) => Some((block, table)),
            _ => None,
        })
    })
}

/// One space for any number of them.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rows of all tables of a page, without tags.
fn rows_of_html(page: &str) -> Vec<String> {
    let rows = page.split("<tr>").skip(1).map(|rest| rest.split("</tr>").next().unwrap());
    let without_tags = |row: &str| {
        let mut text = String::new();
        let mut is_tag = false;
        for c in row.chars() {
            match c {
                '<' => is_tag = true,
                // Cells stand apart from each other.
                '>' => {
                    is_tag = false;
                    text.push(' ');
                }
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    };
    rows.map(|row| squeezed(&without_tags(row))).collect()
}

/// The rows of all tables of a document, without their marks.
fn rows_of_markdown(text: &str) -> Vec<String> {
    let row = |line: &str| {
        let mut cells = String::new();
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            match c {
                '\\' => cells.extend(characters.next()),
                '|' => cells.push(' '),
                c => cells.push(c),
            }
        }
        squeezed(&cells.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    text.lines().filter(|line| line.starts_with("| ")).map(row).collect()
}

#[test]
fn the_same_figures_stand_in_every_form() {
    for (name, stored) in samples() {
        let own = document(&stored, &History::default());
        let blocks: Vec<Block> = match &stored {
            // Its pages of text are laid out by themselves.
            Stored::Qualify(_) => page(&stored, true).blocks,
            _ => own.glance.into_iter().chain(own.page.blocks).collect(),
        };
        let in_html = rows_of_html(&html(&stored, &History::default()));
        let in_markdown = rows_of_markdown(&markdown(&stored));
        let in_terminal: Vec<String> = terminal_full(&stored, WIDE).lines().map(squeezed).collect();
        let mut compared = 0;
        for (block, table) in tables(&blocks) {
            for (number, row) in table.rows.iter().enumerate() {
                let cells: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
                let row = squeezed(&cells.join(" "));
                assert!(in_html.contains(&row), "{name}, HTML, {}: {row}", block.title);
                assert!(in_markdown.contains(&row), "{name}, Markdown, {}: {row}", block.title);
                let is_shown = number < block.terminal_rows.unwrap_or(100) && !block.is_detail;
                assert!(!is_shown || in_terminal.contains(&row), "{name}, terminal, {}: {row}", block.title);
                compared += usize::from(is_shown);
            }
        }
        assert!(compared > 0 || !stored_has_figures(&stored), "{name}: no table on the terminal");
    }
}

fn stored_has_figures(stored: &Stored) -> bool {
    use keepup_results::Figures as _;
    !stored.figures().is_empty()
}

#[test]
fn figures_stand_right_and_a_title_stands_above_them() {
    let is_figure = |text: &str| text.replace(',', "").parse::<f64>().is_ok();
    for (name, stored) in samples() {
        let own = document(&stored, &History::default());
        for (block, table) in tables(&own.page.blocks) {
            for (number, column) in table.columns.iter().enumerate() {
                let cells = || table.rows.iter().map(|row| row[number].text.as_str());
                let known = || cells().filter(|text| !text.is_empty() && *text != "-");
                if known().next().is_some() && known().all(is_figure) {
                    let place = format!("{name}, {}, {:?}", block.title, column.title);
                    assert!(column.right && !column.title.is_empty(), "{place}");
                }
            }
        }
    }
}

#[test]
fn an_error_rate_is_told_for_bytes_and_for_bits_in_every_form() {
    let interval = |value, lower, upper| SoakInterval { value, lower, upper };
    let mut tried = 0;
    for (_, mut stored) in samples() {
        if !matches!(stored, Stored::Soak(_)) {
            continue;
        }
        tried += 1;
        for mismatches in [0, 2] {
            let Stored::Soak(found) = &mut stored else { continue };
            found.damage.mismatches = mismatches;
            found.rate = Some(SoakRate {
                bytes: 17_891_328,
                wrong_bytes_per_byte: 1e-6,
                mismatches_per_byte: interval(1.12e-7, 1.35e-8, 1.67e-7),
                mismatches_per_bit: interval(1.4e-8, 1.69e-9, 2.09e-8),
            });
            let wanted: &[&str] = match mismatches {
                0 => &["error rate below 1.67e-7 per byte, 2.09e-8 per bit at 95 % confidence"],
                _ => &[
                    "2 mismatches in 17,891,328 bytes",
                    "1.12e-7 per byte (1.35e-8 to 1.67e-7",
                    "1.40e-8 per bit",
                ],
            };
            for form in [terminal(&stored, WIDE), markdown(&stored), html(&stored, &History::default())] {
                assert!(wanted.iter().all(|words| form.contains(words)), "{form:.3000}");
            }
        }
    }
    assert!(tried > 1);
}

#[test]
fn what_was_wrong_is_located_in_every_form() {
    let range = SoakRange {
        offset: 4097,
        bytes: 2,
        bits: 3,
        kind: SoakKind::Misplaced,
        expected: "aa55".into(),
        found: "ab54".into(),
        xor: "0101".into(),
        origin: Some(SoakOrigin { is_ours: false, file: 7, offset: 512, generation: 9 }),
    };
    let mismatch = SoakMismatch {
        turn: 12,
        volume: "/data/a".into(),
        file: "copy_0003".into(),
        what: SoakFile::Copy,
        way: "buffered, flushed".into(),
        ranges: vec![range],
        kinds: [(SoakKind::Misplaced, 1)].into(),
        bytes: 2,
        bits: 3,
        place: Some(SoakPlace::Medium),
        rereads: vec!["directly: the same".into()],
        kept: Some("/data/a/keepup-soak-kept-1".into()),
    };
    let stored =
        samples().into_iter().map(|sample| sample.1).find(|stored| matches!(stored, Stored::Soak(_)));
    let Some(Stored::Soak(mut found)) = stored else { panic!("there is no sample of a soak") };
    found.mismatches = vec![mismatch];
    let stored = Stored::Soak(found);
    for form in [terminal(&stored, WIDE), markdown(&stored), html(&stored, &History::default())] {
        let form = form.replace('\\', "");
        for words in [
            "copy_0003",
            "buffered, flushed",
            "medium",
            "4097",
            "aa55",
            "ab54",
            "0101",
            "another soak's file 7, offset 512, generation 9",
            "turn 12, read again directly: the same",
            "turn 12, kept as /data/a/keepup-soak-kept-1",
        ] {
            assert!(form.replace("&#39;", "'").contains(words), "{words}: {form:.3000}");
        }
    }
}
