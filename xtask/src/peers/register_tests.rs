//! Both programs' words are read alike, and the plain loop is compiled and says what is expected of it.

use keepup_testkit::root::skip;

use super::*;
use crate::peers::group::tests::assert_whole;

#[test]
fn both_tell_of_the_same_depths() {
    assert_whole(&groups(Path::new("keepup"), Path::new("loads")));
    let of_loads = told_by_loads("1 0.5\n1024 0.25\n").unwrap();
    let of_keepup = read_keepup(
        r#"{"failure":null,"run":{"methods":[{"points":[{"depth":1,"seconds":[1e-9,5e-10,4e-10]},
        {"depth":1024,"seconds":[2.56e-7]}]}]}}"#,
    );
    assert_eq!(of_loads, of_keepup.unwrap());
    assert!((Figure::Rate.of(&of_loads[1]).unwrap() - 16_000.0).abs() < 1e-6);
    assert!(told_by_loads("nothing").is_err() && read_keepup("{}").is_err());
    assert!(read_keepup(r#"{"failure":"it broke"}"#).unwrap_err().to_string().contains("it broke"));
}

#[test]
fn the_plain_loop_compiles_and_reads() {
    if !COMPILER.is_installed() {
        return skip("the_plain_loop_compiles_and_reads", &COMPILER.advice());
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(compile(directory.path()).unwrap()).args(["1", "0x400"]).output().unwrap();
    let runs = told_by_loads(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert!(runs.len() == 2 && runs[1].phase == "0x400" && runs[1].seconds > 0.0, "{runs:?}");
}
