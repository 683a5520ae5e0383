//! Whose turn it is, and what a failure leaves behind.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::bail;

use super::*;
use crate::peers::tools::Tool;

/// Notes its turn in a book; fails every other time when told so.
struct Player {
    name: &'static str,
    fails: bool,
    tool: Option<&'static Tool>,
    book: Rc<RefCell<Vec<&'static str>>>,
}

impl Contestant for Player {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        format!("play {}", self.name)
    }

    fn tool(&self) -> Option<&'static Tool> {
        self.tool
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        assert!(std::fs::read_dir(limits.directory)?.next().is_none(), "the directory is empty");
        std::fs::write(limits.directory.join("file"), "x")?;
        self.book.borrow_mut().push(self.name);
        if self.fails && self.book.borrow().len() > 2 {
            bail!("no more");
        }
        Ok(vec![Run { bytes: limits.bytes, seconds: 1.0, ..Run::default() }])
    }
}

#[test]
fn they_take_turns_and_a_failure_stops_nobody_else() {
    static MISSING: Tool = Tool { program: "no-such-program-here", package: "p" };
    let book = Rc::new(RefCell::new(Vec::new()));
    let player = |name, fails, tool| -> Box<dyn Contestant> {
        Box::new(Player { name, fails, tool, book: Rc::clone(&book) })
    };
    let players = [player("a", false, None), player("b", true, None), player("c", false, Some(&MISSING))];
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::below(parent.path()).unwrap();
    let work = Work { bytes: 1_000_000, time: Duration::ZERO };
    let outcomes = alternate(&players, Turns { rounds: 2, work }, &scratch).unwrap();
    assert_eq!(*book.borrow(), ["a", "b", "a", "b"]);
    assert_eq!(outcomes[0].figures("", Figure::Rate), [Some(1.0), Some(1.0)]);
    assert_eq!(outcomes[1].figures("", Figure::Rate), [Some(1.0), None]);
    assert_eq!(outcomes[1].failures, ["round 2: no more"]);
    assert_eq!(outcomes[2].missing.as_deref(), Some("not installed (apt-get install p)"));
    assert!(outcomes[2].runs.is_empty());
    assert!(std::fs::read_dir(scratch.path()).unwrap().next().is_none());
}
