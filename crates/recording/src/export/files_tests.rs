//! Names of restored files.
use super::*;

#[test]
fn names_that_lead_elsewhere_are_not_used() {
    let refused: [&[u8]; 6] = [b"", b".", b"..", b"../x", b"/etc/passwd", b"a\0b"];
    assert!(!refused.iter().any(|name| is_file_name(name)));
    assert!(!is_file_name(&[b'x'; 256]) && is_file_name(&[0xFF; 255]) && is_file_name(b"..a\n"));
}

#[test]
fn each_version_has_a_name_of_its_own() {
    let entries = [(0, "a"), (1, "b"), (2, "a"), (4, "a"), (5, "a#0"), (6, "file-3")];
    let entries = entries.map(|(sequence, name)| (sequence, name.as_bytes().to_vec())).into();
    let mut names = Names::new(&entries, PathBuf::from("d"));
    let paths: Vec<String> = (0..7).map(|sequence| names.path(sequence).display().to_string()).collect();
    assert_eq!(paths, ["d/a#0_", "d/b", "d/a#2", "d/file-3_", "d/a", "d/a#0", "d/file-3"]);
}
