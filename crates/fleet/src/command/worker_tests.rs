//! Commands of a script in place of keepup.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::Receiver;

use super::super::{CheckedCommand, unpack};
use super::*;
use crate::agent_loop::reports_for_test;

/// Runs a script of sh. Arguments: a path that it writes to, the output of the dry run, the script.
struct Script;

impl Program for Script {
    fn paths_written(&self, arguments: &[String]) -> Result<Vec<PathBuf>, String> {
        match arguments {
            [path, _, _] => Ok(vec![path.into()]),
            _ => Err("the command stores no result".to_owned()),
        }
    }

    /// `sh -c START PATH PLAN SCRIPT --out DIR`, or with `--dry-run` instead: prints the plan, if any.
    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new("sh");
        let start = "[ $3 = --dry-run ] && [ -z \"$1\" ] && { echo error: no space >&2; exit 4; }; \
                     [ $3 = --dry-run ] && { echo \"$1\"; exit; }; cd \"$4\"; eval \"$2\"";
        command.args(["-c", start]).args(arguments);
        command
    }
}

/// A dry run that writes to `volume`.
fn plan(volume: &Path) -> String {
    let volumes = serde_json::json!({ volume.to_str().unwrap(): 10 });
    serde_json::json!({
        "bytes_written": 10, "volume_bytes_written": volumes, "space_bytes": volumes,
        "seconds": null, "text": "",
    })
    .to_string()
}

fn worker(volume: &Path) -> CommandWorker {
    CommandWorker::new(Box::new(Script), Directories::open(&[volume.to_owned()]).unwrap())
}

fn prepare(worker: &mut CommandWorker, run: u64, plan: &CommandPlan, reports: &Reports) {
    worker.prepare(run, &serde_json::to_string(plan).unwrap(), reports);
}

/// Prepares and starts; returns the end.
fn ended(worker: &mut CommandWorker, run: u64, plan: &CommandPlan) -> Result<String, String> {
    let (reports, done) = reports_for_test();
    prepare(worker, run, plan, &reports);
    worker.start(run, Duration::ZERO, &reports);
    end(&done)
}

fn end(done: &Receiver<Done>) -> Result<String, String> {
    match done.recv().unwrap() {
        Done::Prepared { .. } => end(done),
        Done::Finished { outcome, .. } => Ok(outcome),
        Done::Failed { why, .. } => Err(why),
        Done::Ending { .. } => panic!("a command does not end by itself"),
    }
}

/// Arguments of a command that writes to `volume`.
fn arguments(volume: &Path, script: &str) -> Vec<String> {
    vec![volume.to_str().unwrap().to_owned(), plan(volume), script.to_owned()]
}

#[test]
fn a_result_of_several_parts_arrives() {
    let [volume, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut worker = worker(volume.path());
    let script = "head -c 1500000 /dev/urandom > noise; echo said; exit 1";
    let run = CommandPlan::Run(arguments(volume.path(), script));
    let (mut reply, mut text) = (Reply::default(), ended(&mut worker, 7, &run).unwrap());
    let mut run = 7;
    while let Some(number) = reply.add(&text).unwrap() {
        run += 1;
        text = ended(&mut worker, run, &CommandPlan::Part { of: 7, number }).unwrap();
    }
    assert_eq!(run, 9, "further parts");
    assert_eq!(unpack(&reply, to.path()).unwrap(), CommandEnd { code: Some(1), signal: None });
    assert_eq!(std::fs::metadata(to.path().join("noise")).unwrap().len(), 1_500_000);
    assert_eq!(std::fs::read_to_string(to.path().join("stdout.txt")).unwrap(), "said\n");
    let other = ended(&mut worker, 10, &CommandPlan::Part { of: 6, number: 0 });
    assert_eq!(other.unwrap_err(), "the answer of run 6 was replaced by a later one");
}

#[test]
fn nothing_runs_that_writes_outside_the_directories() {
    let [volume, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut worker = worker(volume.path());
    let proof = elsewhere.path().join("proof");
    let script = format!("touch {}", proof.display());
    let link = volume.path().join("link");
    std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
    // By its flags, through a link, and by what its dry run says.
    let mut lying = arguments(volume.path(), &script);
    lying[1] = plan(elsewhere.path());
    for command in [arguments(elsewhere.path(), &script), arguments(&link, &script), lying] {
        let why = ended(&mut worker, 1, &CommandPlan::Run(command.clone())).unwrap_err();
        assert!(why.contains("outside the volumes of this host\nhint: add the directory"), "{why}");
        let mut reply = Reply::default();
        reply.add(&ended(&mut worker, 2, &CommandPlan::Check(vec![command])).unwrap()).unwrap();
        let found: Vec<CheckedCommand> = serde_json::from_str(&reply.text().unwrap()).unwrap();
        assert_eq!(found, [CheckedCommand::Refused(why)]);
    }
    assert!(!proof.exists());
    let why = ended(&mut worker, 3, &CommandPlan::Run(vec!["rm".to_owned()])).unwrap_err();
    assert_eq!(why, "the command stores no result");
}

#[test]
fn a_command_that_is_refused_before_its_run_has_its_exit_code_and_error() {
    let [volume, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut command = arguments(volume.path(), "touch ran");
    command[1].clear();
    let mut reply = Reply::default();
    reply.add(&ended(&mut worker(volume.path()), 1, &CommandPlan::Run(command)).unwrap()).unwrap();
    assert_eq!(unpack(&reply, to.path()).unwrap(), CommandEnd { code: Some(4), signal: None });
    assert_eq!(std::fs::read_to_string(to.path().join("stderr.txt")).unwrap(), "error: no space\n");
}

#[test]
fn all_commands_of_a_check_are_answered_in_order() {
    let volume = tempfile::tempdir().unwrap();
    let mut commands: Vec<_> = (0..20).map(|n| arguments(&volume.path().join(n.to_string()), "")).collect();
    commands[11][1] = "no JSON".to_owned();
    let mut reply = Reply::default();
    let text = ended(&mut worker(volume.path()), 1, &CommandPlan::Check(commands.clone())).unwrap();
    assert_eq!(reply.add(&text).unwrap(), None);
    let found: Vec<CheckedCommand> = serde_json::from_str(&reply.text().unwrap()).unwrap();
    for (n, (answer, command)) in found.iter().zip(&commands).enumerate() {
        match answer {
            CheckedCommand::Plan(plan) => assert!(n != 11 && plan.trim_end() == command[1], "{n}: {plan}"),
            CheckedCommand::Refused(why) => assert!(n == 11 && why.contains("dry run"), "{n}: {why}"),
        }
    }
    assert_eq!(found.len(), 20);
}

#[test]
fn a_command_that_is_ended_cleans_up_and_its_result_arrives() {
    let [volume, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut worker = worker(volume.path());
    let ready = volume.path().join("ready");
    let script = format!(
        "trap 'rm {0}; echo cleaned; exit 130' INT; touch {0}; while :; do sleep 0.05; done",
        ready.display()
    );
    let (reports, done) = reports_for_test();
    prepare(&mut worker, 1, &CommandPlan::Run(arguments(volume.path(), &script)), &reports);
    worker.start(1, Duration::ZERO, &reports);
    while !ready.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    worker.finish(1, false, &reports);
    let mut reply = Reply::default();
    reply.add(&end(&done).unwrap()).unwrap();
    assert_eq!(unpack(&reply, to.path()).unwrap().code, Some(130));
    assert!(!ready.exists());
    assert_eq!(std::fs::read_to_string(to.path().join("stdout.txt")).unwrap(), "cleaned\n");
}

#[test]
fn a_part_that_is_ended_before_the_start_runs_nothing() {
    let volume = tempfile::tempdir().unwrap();
    let mut worker = worker(volume.path());
    let (reports, done) = reports_for_test();
    prepare(&mut worker, 1, &CommandPlan::Run(arguments(volume.path(), "")), &reports);
    worker.finish(1, false, &reports);
    assert_eq!(end(&done).unwrap_err(), STOPPED);
}

#[test]
fn a_result_that_is_too_large_fails_the_run() {
    let volume = tempfile::tempdir().unwrap();
    let script = "truncate -s 300M big";
    let run = CommandPlan::Run(arguments(volume.path(), script));
    let why = ended(&mut worker(volume.path()), 1, &run).unwrap_err();
    assert!(why.starts_with("the result is too large to be sent: more than 268435456 bytes"), "{why}");
}
