//! Order of files, and versions that are recorded once.
use super::*;

const MS: u64 = 1_000_000;

fn version(inode: u64, mtime_ns: u64) -> Identity {
    Identity { device: 1, inode, mtime_ns, bytes: 10 }
}

/// A version whose status last changed at `ctime_ns`.
fn at(identity: Identity, ctime_ns: u64) -> FileState {
    FileState { identity, ctime_ns }
}

/// Names that are due, each judged with the version that `look` finds.
fn take_due(table: &mut FileTable, now_ns: u64, look: impl Fn(&[u8]) -> Identity) -> Vec<(String, Verdict)> {
    let mut taken = Vec::new();
    while let Some(name) = table.next_due(now_ns) {
        let verdict = table.judge(&name, at(look(&name), 0), now_ns);
        if matches!(verdict, Verdict::Record { .. }) {
            table.recorded(name.clone(), at(look(&name), 0), taken.len() as u64);
        }
        taken.push((String::from_utf8(name).unwrap(), verdict));
    }
    taken
}

fn once(name: &str) -> (String, Verdict) {
    (name.to_owned(), Verdict::Record { again: false })
}

#[test]
fn files_are_due_in_the_order_in_which_they_were_closed() {
    let mut table = FileTable::new(None);
    table.closed(b"b", None, 0);
    table.closed(b"a", None, MS);
    table.moved_in(b"c", 7, None, MS);
    // Closed again meanwhile: one version, later.
    table.closed(b"b", None, 2 * MS);
    assert_eq!((table.next_due(20 * MS), table.next_due_ns()), (None, Some(21 * MS)));
    let taken = take_due(&mut table, 22 * MS, |_| version(1, 0));
    assert_eq!(taken, [once("a"), once("c"), once("b")]);
    assert_eq!(table.next_due_ns(), None);
}

#[test]
fn a_version_is_recorded_once_and_a_change_again() {
    let mut table = FileTable::new(None);
    table.closed(b"a", None, 0);
    assert_eq!(take_due(&mut table, 20 * MS, |_| version(1, 5)), [once("a")]);
    // A scan and a late report of the same version.
    table.scanned(b"a", version(1, 5), 30 * MS);
    assert_eq!(table.next_due_ns(), None);
    table.closed(b"a", None, 30 * MS);
    assert_eq!(take_due(&mut table, 60 * MS, |_| version(1, 5)), [("a".to_owned(), Verdict::Skip)]);
    table.closed(b"a", None, 70 * MS);
    let again = [("a".to_owned(), Verdict::Record { again: true })];
    assert_eq!(take_due(&mut table, 90 * MS, |_| version(1, 70 * MS)), again);
    // Removed and created anew with the same inode.
    assert!(!table.removed(b"a"));
    table.closed(b"a", None, 100 * MS);
    assert_eq!(take_due(&mut table, 120 * MS, |_| version(1, 70 * MS)), [once("a")]);
}

#[test]
fn files_that_were_there_are_recorded_when_they_are_closed() {
    let mut table = FileTable::new(None);
    table.skip(b"old".to_vec(), version(1, 5));
    table.scanned(b"old", version(1, 5), 0);
    assert_eq!(table.next_due_ns(), None);
    table.closed(b"old", None, 0);
    assert_eq!(table.existing(), 1);
    assert_eq!(take_due(&mut table, 20 * MS, |_| version(1, 5)), [once("old")]);
    assert_eq!(table.existing(), 0);
    table.skip(b"other".to_vec(), version(2, 5));
    assert!(table.recorded(b"other".to_vec(), at(version(2, 6), 0), 1));
    assert!(!table.recorded(b"other".to_vec(), at(version(2, 7), 0), 2));
}

#[test]
fn a_file_found_by_a_scan_must_stop_changing() {
    let mut table = FileTable::new(Some(Duration::from_secs(1)));
    table.scanned(b"a", version(1, 5), 0);
    // A second scan does not postpone it.
    table.scanned(b"a", version(1, 5), 500 * MS);
    let skipped = [("a".to_owned(), Verdict::Skip)];
    assert_eq!(take_due(&mut table, 1000 * MS, |_| version(1, 900 * MS)), skipped);
    assert_eq!(table.next_due_ns(), Some(2000 * MS));
    assert_eq!(take_due(&mut table, 2000 * MS, |_| version(1, 900 * MS)), [once("a")]);
    // The kernel knows better than a scan.
    table.scanned(b"b", version(2, 5), 0);
    table.closed(b"b", None, 10 * MS);
    assert_eq!(table.next_due_ns(), Some(30 * MS));
}

#[test]
fn renames_inside_the_directory() {
    let mut table = FileTable::new(None);
    table.closed(b"a", None, 0);
    assert_eq!(take_due(&mut table, 20 * MS, |_| version(1, 5)), [once("a")]);
    table.moved_out(b"a", 9, 30 * MS);
    assert!(!table.moved_in(b"b", 9, None, 30 * MS));
    let renamed = Verdict::Renamed { sequence: 0, from: b"a".to_vec() };
    assert_eq!(take_due(&mut table, 50 * MS, |_| version(1, 5)), [("b".to_owned(), renamed)]);
    // Renamed and changed: another version under the new name.
    table.moved_out(b"b", 10, 60 * MS);
    table.moved_in(b"c", 10, None, 60 * MS);
    table.closed(b"c", None, 61 * MS);
    assert_eq!(take_due(&mut table, 90 * MS, |_| version(1, 61 * MS)), [once("c")]);
    assert!(table.moved_away(u64::MAX).is_empty());
}

#[test]
fn a_rename_before_the_file_is_read_is_no_loss() {
    let mut table = FileTable::new(None);
    table.closed(b"a", None, 0);
    table.moved_out(b"a", 3, MS);
    table.moved_in(b"b", 3, None, MS);
    assert!(table.moved_away(u64::MAX).is_empty());
    assert_eq!(take_due(&mut table, 30 * MS, |_| version(1, 0)), [once("b")]);
}

#[test]
fn losses_are_known_by_name() {
    let mut table = FileTable::new(None);
    table.closed(b"removed", None, 0);
    assert!(table.removed(b"removed") && !table.removed(b"removed"));
    table.closed(b"away", None, 0);
    table.moved_out(b"away", 4, 0);
    assert!(table.moved_away(50 * MS).is_empty());
    assert_eq!(table.next_due_ns(), Some(100 * MS));
    assert_eq!(table.moved_away(100 * MS), [b"away".to_vec()]);
    table.closed(b"status", None, 0);
    assert!(table.moved_in(b"status", 5, None, MS));
    // A name that was created and removed is no complete file; what a scan has found may be incomplete.
    table.created(b"open", 0);
    assert!(!table.removed(b"open"));
    table.scanned(b"partial", version(3, 0), 0);
    assert!(!table.removed(b"partial"));
}

#[test]
fn at_the_end_complete_files_need_not_wait() {
    let mut table = FileTable::new(None);
    table.closed(b"a", None, 0);
    table.scanned(b"s", version(1, 0), 0);
    table.closed(b"b", None, 0);
    table.hurry();
    let pending: Vec<&[u8]> = table.pending().map(Vec::as_slice).collect();
    assert_eq!(pending, [b"a".as_slice(), b"b", b"s"]);
    assert_eq!((table.due_ns(b"b"), table.due_ns(b"s")), (Some(0), Some(2000 * MS)));
}

#[test]
fn a_created_name_is_looked_at_unless_it_is_closed_first() {
    let mut table = FileTable::new(None);
    table.created(b"link", 0);
    table.created(b"file", 0);
    table.closed(b"file", None, 5 * MS);
    assert_eq!(
        (table.reason(b"link"), table.reason(b"file")),
        (Some(Reason::Created), Some(Reason::Complete(None)))
    );
    // A second link must not hide that the file was closed.
    table.created(b"file", 6 * MS);
    assert_eq!((table.reason(b"file"), table.next_due_ns()), (Some(Reason::Complete(None)), Some(20 * MS)));
    assert_eq!(take_due(&mut table, 30 * MS, |_| version(1, 0)), [once("link"), once("file")]);
}

#[test]
fn files_that_are_gone_are_forgotten() {
    let mut table = FileTable::new(None);
    for n in 0..100 {
        table.recorded(n.to_string().into_bytes(), at(version(n, 0), 0), n);
    }
    table.retain(&HashSet::from([b"7".to_vec()]));
    assert_eq!(table.known.len(), 1);
}

#[test]
fn files_follow_the_directory_that_is_renamed() {
    let mut table = FileTable::new(None);
    for name in [&b"a/1"[..], b"a/b/2", b"a-/3", b"a0", b"a"] {
        table.closed(name, None, 0);
    }
    take_due(&mut table, 20 * MS, |name| version(name.len() as u64, 5));
    table.skip(b"a/old".to_vec(), version(9, 5));
    table.closed(b"a/4", None, 30 * MS);
    table.closed(b"target/gone", None, 30 * MS);
    let renamed = table.directory_renamed(b"a", b"target");
    let file = |sequence, name: &[u8], from: &[u8]| RenamedFile {
        sequence,
        name: name.to_vec(),
        from: from.to_vec(),
    };
    assert_eq!(renamed, [file(0, b"target/1", b"a/1"), file(1, b"target/b/2", b"a/b/2")]);
    let due = |table: &mut FileTable, now_ns| take_due(table, now_ns, |_| version(4, 30));
    assert_eq!(due(&mut table, 50 * MS), [once("target/4")], "what the new directory replaced is gone");
    // The same versions under the new names, and the other names as before.
    for (name, inode) in
        [(&b"target/1"[..], 3), (b"target/b/2", 5), (b"target/old", 9), (b"a-/3", 4), (b"a0", 2)]
    {
        table.scanned(name, version(inode, 5), 60 * MS);
        assert_eq!(table.due_ns(name), None, "{name:?}");
    }
    table.scanned(b"a/1", version(3, 5), 60 * MS);
    assert!(table.due_ns(b"a/1").is_some(), "the old name is free");
}

#[test]
fn a_directory_that_is_moved_away_takes_its_files_with_it() {
    let mut table = FileTable::new(None);
    table.closed(b"a/complete", None, 0);
    table.created(b"a/created", 0);
    table.listed(b"a/listed", version(1, 5), 0);
    table.closed(b"ab/other", None, 0);
    table.directory_moved_out(b"a", 10 * MS);
    assert_eq!(table.pending().collect::<Vec<_>>(), [b"ab/other"]);
    assert_eq!(table.moved_away(100 * MS), Vec::<Vec<u8>>::new());
    assert_eq!(table.moved_away(110 * MS), [b"a/complete".to_vec()]);
}

#[test]
fn a_file_in_a_new_directory_is_recorded_once() {
    let mut table = FileTable::new(None);
    table.listed(b"a/1", version(1, 5), 0);
    assert_eq!(table.reason(b"a/1"), Some(Reason::Listed));
    // It was closed after the directory was watched.
    table.closed(b"a/1", None, MS);
    assert_eq!(table.reason(b"a/1"), Some(Reason::Complete(None)));
    table.listed(b"a/1", version(1, 5), MS);
    assert_eq!(take_due(&mut table, 30 * MS, |_| version(1, 5)), [once("a/1")]);
    table.listed(b"a/1", version(1, 5), 40 * MS);
    assert_eq!(table.next_due_ns(), None);
    table.listed(b"a/1", version(1, 6), 40 * MS);
    assert_eq!(table.next_due_ns(), Some(60 * MS));
}

#[test]
fn a_file_moved_to_a_directory_that_was_not_watched_yet_is_found_there() {
    // The listing before the reports, and after them.
    for is_listed_first in [true, false] {
        let mut table = FileTable::new(None);
        let list = |table: &mut FileTable| table.listed(b"new/1", version(1, 5), 0);
        if is_listed_first {
            list(&mut table);
        }
        table.closed(b"1", None, 0);
        table.moved_out(b"1", 7, MS);
        table.closed(b"gone", None, 0);
        table.moved_out(b"gone", 8, MS);
        if !is_listed_first {
            list(&mut table);
        }
        assert_eq!(take_due(&mut table, 30 * MS, |_| version(1, 5)), [once("new/1")]);
        assert_eq!(table.moved_away(200 * MS), [b"gone".to_vec()]);
        // One file that is found stands for one that was moved.
        table.closed(b"1", None, 300 * MS);
        table.moved_out(b"1", 9, 300 * MS);
        assert_eq!(table.moved_away(500 * MS), [b"1".to_vec()]);
    }
}

#[test]
fn a_recorded_file_moved_to_a_new_directory_is_not_recorded_again() {
    let mut table = FileTable::new(None);
    table.closed(b"1", None, 0);
    assert_eq!(take_due(&mut table, 20 * MS, |_| version(1, 5)), [once("1")]);
    table.moved_out(b"1", 7, 30 * MS);
    assert!(table.moved_away(500 * MS).is_empty());
    table.listed(b"new/2", version(1, 5), 500 * MS);
    let renamed = Verdict::Renamed { sequence: 0, from: b"1".to_vec() };
    assert_eq!(take_due(&mut table, 600 * MS, |_| version(1, 5)), [("new/2".to_owned(), renamed)]);
    assert_eq!(table.next_due_ns(), None);
}

#[test]
fn a_version_that_is_overwritten_before_it_is_read_is_lost() {
    let mut table = FileTable::new(None);
    let state = |mtime_ns| Some(at(version(1, mtime_ns), mtime_ns));
    assert!(!table.closed(b"a", state(1), 0));
    // Closed again without a change.
    assert!(!table.closed(b"a", state(1), MS));
    assert!(table.closed(b"a", state(2), 2 * MS) && table.is_owed(b"a"));
    // It is open again: what is read when it is due shows whether the version is still there.
    assert!(!table.closed(b"a", None, 3 * MS));
    assert_eq!(table.reason(b"a"), Some(Reason::Complete(state(2))));
    // The same size and time, set by a program.
    assert!(table.closed(b"a", Some(at(version(1, 2), 4)), 4 * MS));
    assert!(table.moved_in(b"a", 7, state(5), 5 * MS));
    assert!(table.removed(b"a"));
}

#[test]
fn a_recorded_version_is_not_lost() {
    let state = Some(at(version(1, 5), 0));
    let table = || {
        let mut table = FileTable::new(None);
        table.closed(b"a", state, 0);
        assert_eq!(take_due(&mut table, 20 * MS, |_| version(1, 5)), [once("a")]);
        // Opened and not changed.
        assert!(!table.closed(b"a", state, 30 * MS));
        table
    };
    assert!(!table().removed(b"a"));
    assert!(!table().moved_in(b"a", 7, None, 40 * MS));
    assert!(!table().closed(b"a", Some(at(version(1, 6), 6)), 40 * MS));
    let mut moved = table();
    moved.moved_out(b"a", 7, 40 * MS);
    assert_eq!(moved.moved_away(u64::MAX), Vec::<Vec<u8>>::new());
    // A rename changes the time of the last status change.
    let mut renamed = table();
    renamed.moved_out(b"a", 7, 40 * MS);
    assert!(!renamed.moved_in(b"b", 7, Some(at(version(1, 5), 40)), 40 * MS));
    let verdict = Verdict::Renamed { sequence: 0, from: b"a".to_vec() };
    assert_eq!(take_due(&mut renamed, 60 * MS, |_| version(1, 5)), [("b".to_owned(), verdict)]);
}

#[test]
fn a_rewritten_file_with_the_same_size_and_time_is_recorded_again() {
    let mut table = FileTable::new(None);
    let first = at(version(1, 5), 10);
    table.closed(b"a", Some(first), 0);
    assert_eq!(table.judge(b"a", first, 20 * MS), Verdict::Record { again: false });
    table.recorded(b"a".to_vec(), first, 0);
    table.closed(b"a", Some(first), 30 * MS);
    assert_eq!(table.judge(b"a", first, 50 * MS), Verdict::Skip);
    let second = at(version(1, 5), 60);
    table.closed(b"a", Some(second), 60 * MS);
    assert_eq!(table.judge(b"a", second, 80 * MS), Verdict::Record { again: true });
    table.recorded(b"a".to_vec(), second, 1);
    // Rewritten once more, and renamed: not the recorded version under another name.
    table.closed(b"a", Some(at(version(1, 5), 90)), 90 * MS);
    table.moved_out(b"a", 7, 91 * MS);
    let third = at(version(1, 5), 91);
    table.moved_in(b"b", 7, Some(third), 91 * MS);
    assert_eq!(table.judge(b"b", third, 120 * MS), Verdict::Record { again: false });
    // A scan does not know whether permissions or content have changed.
    table.recorded(b"b".to_vec(), third, 2);
    table.scanned(b"b", version(1, 5), 130 * MS);
    assert_eq!(table.due_ns(b"b"), None);
}
