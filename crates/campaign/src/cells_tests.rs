//! Every combination once, its command, and what it is compared with.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::file::parse;

fn campaign(text: &str) -> Campaign {
    parse(&format!("name = \"c\"\n[run]\nverb = \"disk sweep\"\n{text}"), "c", &[]).unwrap()
}

#[test]
fn commands_have_words_then_flags() {
    let campaign =
        campaign("args = [\"x\"]\nquick = true\nsizes = [\"1 MiB\", \"-2\"]\n[axes]\nrepeats = [3]");
    let cells = campaign.cells();
    assert_eq!(
        cells[0].arguments,
        ["disk", "sweep", "x", "--quick", "--repeats", "3", "--sizes", "1 MiB", "--sizes=-2"]
    );
    assert_eq!(cells[0].command(), "keepup disk sweep x --quick --repeats 3 --sizes '1 MiB' --sizes=-2");
}

#[test]
fn the_host_of_a_cell_is_no_flag() {
    let cells = campaign("[axes]\nhost = [\"daq1\", \"daq2\"]\n[baseline]\nhost = \"daq1\"").cells();
    let found: Vec<_> = cells.iter().map(|cell| (cell.host.as_deref(), &cell.arguments[..])).collect();
    let words = ["disk".to_owned(), "sweep".to_owned()];
    assert_eq!(found, [(Some("daq1"), &words[..]), (Some("daq2"), &words[..])]);
    assert_eq!(cells[1].command(), "daq2: keepup disk sweep");
    assert_eq!((cells[1].baseline, &cells[1].settings[..]), (Some(1), &["host".to_owned()][..]));
}

#[test]
fn a_verb_may_vary() {
    let text = r#"
        name = "c"
        run = { quick = true }
        axes.test = [
            { label = "one", verb = "disk sweep" },
            { label = "other", verb = "disk block", args = "y" },
        ]
    "#;
    let cells = parse(text, "c", &[]).unwrap().cells();
    assert_eq!(cells[0].arguments, ["disk", "sweep", "--quick"]);
    assert_eq!(cells[1].arguments, ["disk", "block", "y", "--quick"]);
    assert_eq!(cells[1].baseline, None, "it is in no baseline");
}

#[test]
fn cells_that_change_several_things_are_confounded() {
    let campaign = campaign(
        r#"
[axes]
volume = ["a", "b"]
load = [
    { label = "quiet" },
    { label = "net", load = "net=1MB/s" },
    { label = "slow", load = "net=1MB/s", depth = 1 },
]
size = [1, 2]
[baseline]
volume = "a"
load = "quiet"
"#,
    );
    let cells = campaign.cells();
    let of = |volume: usize, load: usize, size: usize| &cells[volume * 6 + load * 2 + size];
    // The size is matched, never compared.
    for size in [0, 1] {
        let base = of(0, 0, size);
        assert_eq!((base.baseline, base.is_confounded()), (None, false));
        let disk = of(1, 0, size);
        assert_eq!((disk.baseline, &disk.changed[..]), (Some(base.number), &["volume".to_owned()][..]));
        assert!(!disk.is_confounded() && !of(0, 1, size).is_confounded());
        let both = of(1, 1, size);
        assert_eq!((both.baseline, both.is_confounded()), (Some(base.number), true));
        assert_eq!(both.alone, [disk.number, of(0, 1, size).number]);
        let slow = of(0, 2, size);
        assert_eq!(slow.changed, ["load"]);
        assert_eq!(slow.settings, ["depth", "load"]);
        assert!(slow.is_confounded(), "one value sets two flags");
        assert!(slow.alone.is_empty(), "no cell sets one of them alone");
    }
}

#[test]
fn what_is_left_out_says_why() {
    let campaign = campaign(
        "[axes]\na = [1, 2]\nb = [1, 2]\n[[skip]]\nwhen = { a = 2, b = 1 }\nwhy = \"no card\"\n\
         [[skip]]\nwhen = { b = 2 }\nwhy = \"no time\"",
    );
    let why: Vec<_> = campaign.cells().into_iter().map(|cell| cell.skipped).collect();
    let some = |why: &str| Some(why.to_owned());
    assert_eq!(why, [None, some("no time"), some("no card"), some("no time")]);
}

proptest! {
    #[test]
    fn every_combination_comes_once(sizes in proptest::collection::vec(1usize..5, 1..5), base in 0usize..4) {
        let mut text = "[axes]\n".to_owned();
        for (n, size) in sizes.iter().enumerate() {
            let values: Vec<String> = (0..*size).map(|value| value.to_string()).collect();
            text += &format!("a{n} = [{}]\n", values.join(", "));
        }
        text += "[baseline]\n";
        for (n, size) in sizes.iter().enumerate().step_by(2) {
            text += &format!("a{n} = {}\n", base % size);
        }
        let campaign = campaign(&text);
        let cells = campaign.cells();
        prop_assert_eq!(cells.len(), sizes.iter().product::<usize>());
        let all: BTreeSet<_> = cells.iter().map(|cell| cell.values.clone()).collect();
        prop_assert_eq!(all.len(), cells.len());
        prop_assert!(cells.iter().map(|cell| &cell.values).is_sorted(), "the first axis is the slowest");
        for (n, cell) in cells.iter().enumerate() {
            prop_assert_eq!(cell.number as usize, n + 1);
            // Those that are not compared are matched; the others differ where it says so.
            let Some(other) = cell.baseline else { prop_assert!(cell.changed.is_empty()); continue };
            let other = &cells[other as usize - 1];
            prop_assert_eq!(other.baseline, None);
            let differ = (0..sizes.len()).filter(|n| cell.values[*n] != other.values[*n]);
            prop_assert_eq!(differ.map(|n| format!("a{n}")).collect::<Vec<_>>(), cell.changed.clone());
            prop_assert!(cell.changed.iter().all(|name| campaign.baseline.contains_key(name)));
            for alone in &cell.alone {
                prop_assert_eq!(cells[*alone as usize - 1].changed.len(), 1);
            }
        }
    }
}
