//! How fio is started, and which of its jobs count.

use super::*;

const SETTING: Setting = Setting { huge: false, unique: true, filled: true };

fn job(name: &str, verb: &'static str, time: Option<Duration>) -> Job {
    Job { name: name.to_owned(), verb, bytes: 65536, depth: 8, time }
}

#[test]
fn the_file_is_filled_and_the_jobs_follow_one_by_one() {
    let time = Some(Duration::from_millis(300));
    let jobs = [job("write a", "write", time), job("read a", "read", time)];
    let words = program("fio", SETTING, 1 << 30, &jobs).arguments;
    let names: Vec<&String> = words.iter().filter(|word| word.starts_with("--name=")).collect();
    assert_eq!(names, ["--name=fill", "--name=write a", "--name=read a"]);
    let at = |word: &str| words.iter().position(|w| w == word).unwrap();
    assert!(at("--fallocate=posix") < at("--name=fill"), "for all jobs");
    assert_eq!(
        words[at("--name=write a")..at("--name=read a")].join(" "),
        "--name=write a --stonewall --rw=write --bs=65536 --iodepth=8 --time_based --runtime=300ms \
         --end_fsync=1"
    );
    assert_eq!(words.iter().filter(|word| *word == "--end_fsync=1").count(), 2, "no read ends with a flush");
    assert!(
        words.contains(&"--scramble_buffers=1".to_owned()) && !words.contains(&"--mem=mmaphuge".to_owned())
    );
}

#[test]
fn settings_show() {
    let setting = Setting { huge: true, unique: false, filled: false };
    let program = program("fio", setting, 1 << 20, &[job("write", "write", None)]);
    let line = program.arguments.join(" ");
    assert!(line.contains("--fallocate=none --scramble_buffers=0 --mem=mmaphuge --name=write"), "{line}");
    assert!(!line.contains("fill") && !line.contains("time_based"), "{line}");
    assert!(
        program.shown().ends_with("--rw=write --bs=65536 --iodepth=8 --end_fsync=1`"),
        "{}",
        program.shown()
    );
}

#[test]
fn filling_does_not_count() {
    let of = |phase: &str| Run { phase: phase.to_owned(), ..Run::default() };
    assert_eq!(counted(vec![of("fill"), of("write")]), [of("write")]);
}
