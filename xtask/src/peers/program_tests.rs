//! Programs that tell of themselves.

use anyhow::bail;

use super::*;

fn shell(script: &str, read: Reader) -> Program {
    Program {
        name: "shell",
        program: "/bin/sh".into(),
        arguments: ["-c", script].map(str::to_owned).to_vec(),
        shown: None,
        tool: None,
        read,
    }
}

fn each_line() -> Reader {
    Box::new(|said| {
        let run = |line: &str| Run {
            phase: line.to_owned(),
            bytes: 2,
            seconds: 1.0,
            billed_ns: Some(3),
            ..Run::default()
        };
        Ok(said.lines().map(run).collect())
    })
}

#[test]
fn it_runs_in_its_directory_and_the_whole_is_added() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "").unwrap();
    std::fs::write(directory.path().join("b"), "").unwrap();
    let limits = RunLimits { directory: directory.path(), bytes: 0, time: Duration::from_secs(60) };
    let runs = shell("ls", each_line()).run(&limits).unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run.phase.as_str()).collect();
    assert_eq!(names, ["a", "b", WHOLE]);
    assert_eq!((runs[2].bytes, runs[2].seconds, runs[2].billed_ns), (4, 2.0, Some(6)));
    assert!(runs[2].cpu_ns.is_some() && runs[2].resident_bytes_max.is_some());
}

#[test]
fn what_cannot_be_read_fails() {
    let directory = tempfile::tempdir().unwrap();
    let limit = Duration::from_secs(60);
    let refusing: Reader = Box::new(|_| bail!("not a word"));
    assert!(shell("echo x", refusing).once(directory.path(), limit).is_err());
    assert!(shell("exit 3", each_line()).once(directory.path(), limit).is_err());
}

#[test]
fn arguments_are_shown_as_one_types_them() {
    assert_eq!(shell("a b", each_line()).shown(), "`sh -c 'a b'`");
    let few = Program { shown: Some("...".to_owned()), ..shell("a b", each_line()) };
    assert_eq!(few.shown(), "`sh ...`");
}
