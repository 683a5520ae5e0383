//! Names and times of restored files.
use super::*;

#[test]
fn names_that_lead_elsewhere_are_not_used() {
    let refused: [&[u8]; 11] =
        [b"", b".", b"..", b"../x", b"/etc/passwd", b"a\0b", b"a/../b", b"a//b", b"a/", b"./a", b"a/b/.."];
    assert!(!refused.iter().any(|name| is_path(name)));
    assert!(!is_path(&[b'x'; 256]) && is_path(&[0xFF; 255]) && is_path(b"..a\n/b"));
    let deep = |levels: usize| vec!["d"; levels].join("/").into_bytes();
    assert!(is_path(&deep(DEPTH_MAX)) && !is_path(&deep(DEPTH_MAX + 1)));
    assert!(!is_path(["x".repeat(255).as_str(); 17].join("/").as_bytes()));
}

#[test]
fn each_version_has_a_name_of_its_own() {
    let entries = [(0, "a"), (1, "b"), (2, "a"), (4, "a"), (5, "a#0"), (6, "file-3")];
    let entries = entries.map(|(sequence, name)| (sequence, name.as_bytes().to_vec())).into();
    let mut names = Names::new(&entries, PathBuf::from("d"));
    let paths: Vec<String> = (0..7).map(|sequence| names.path(sequence).display().to_string()).collect();
    assert_eq!(paths, ["d/a#0_", "d/b", "d/a#2", "d/file-3_", "d/a", "d/a#0", "d/file-3"]);
}

#[test]
fn a_file_gives_way_to_a_directory_of_its_name() {
    let long = format!("a/{}", "x".repeat(255));
    let entries =
        [(0, "a"), (1, "a/b"), (2, "a/b/c"), (3, "a#0"), (4, &*long), (5, &*long), (6, "d/e"), (7, "d/e")];
    let entries = entries.map(|(sequence, name)| (sequence, name.as_bytes().to_vec())).into();
    let mut names = Names::new(&entries, PathBuf::from("r"));
    let paths: Vec<String> = (0..8).map(|sequence| names.path(sequence).display().to_string()).collect();
    let earlier = format!("r/a/{}#4", "x".repeat(215));
    let last = format!("r/{long}");
    assert_eq!(paths, ["r/a#0_", "r/a/b#1", "r/a/b/c", "r/a#0", &earlier, &last, "r/d/e#6", "r/d/e"]);
}

#[test]
fn times_are_right_or_refused() {
    let place = tempfile::tempdir().unwrap();
    for ns in [0, 1 << 60, (1 << 63) - 1, 1 << 63, u64::MAX] {
        let path = place.path().join(ns.to_string());
        match write(&path, b"x", ns) {
            Ok(()) => {
                let stored = fs::metadata(&path).unwrap().modified().unwrap();
                let stored_ns = stored.duration_since(UNIX_EPOCH).unwrap().as_nanos();
                assert!(u128::from(ns).abs_diff(stored_ns) <= TIME_STEP_MAX.as_nanos(), "{ns}: {stored_ns}");
            }
            // Most file systems end between 2038 and 2486.
            Err(error) => assert!(ns > 1 << 60 && error.to_string().contains(NO_SUCH_TIME), "{ns}: {error}"),
        }
    }
}
