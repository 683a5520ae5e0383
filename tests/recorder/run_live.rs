//! `keepup ctl` with `keepup record --controlled`: complete runs by commands alone.
use std::path::Path;

use keepup_testkit::program::{Program, Run};
use keepup_testkit::root::{SmallDisk, allowed};
use serde_json::{Value, json};

use crate::common::{
    busy_directory, count, directory, get, json as printed, keepup, recorder, secret_file, start, until,
    verified,
};

const TOKEN: &str = "0123456789abcdef";

/// A recorder that accepts commands.
pub(super) struct Controlled {
    url: String,
    pub(super) recorder: Program,
}

impl Controlled {
    /// Records to `volume`; the token is in the file `token` of `here`.
    fn start(here: &Path, volume: &Path) -> Self {
        Self::record(here, &["--listen", "127.0.0.1:0", "--volume", &volume.display().to_string()])
    }

    /// Records with these further flags.
    pub(super) fn record(here: &Path, flags: &[&str]) -> Self {
        let mut recorder = Self::unread(here, flags);
        let url = recorder.line("live page: ").trim_end_matches('/').to_owned();
        Self { url, recorder }
    }

    /// The same, without waiting for any of its output.
    fn unread(here: &Path, flags: &[&str]) -> Program {
        secret_file(here, "token", TOKEN);
        let own = ["record", "--controlled", "--http", "127.0.0.1:0", "--token-file", "token"];
        let sizes = ["--pool", "64 MiB", "--segment", "32 MiB"];
        start(here, &[&own[..], &sizes, flags].concat())
    }

    /// A command, with its answer in JSON.
    pub(super) fn ctl(&self, here: &Path, flags: &[&str]) -> Run {
        let base = ["ctl", "--to", &self.url, "--token-file", "token", "--json"];
        keepup(here, &[&base[..], flags].concat())
    }
}

#[test]
fn a_run_is_controlled_by_commands_alone() {
    let directory = directory();
    let here = directory.path();
    let volume = here.join("disk");
    std::fs::create_dir(&volume).unwrap();
    let controlled = Controlled::start(here, &volume);
    let done = |flags: &[&str]| {
        let run = controlled.ctl(here, flags);
        assert_eq!(run.code(), 0, "{flags:?}: {run:#?}");
        printed(&run)
    };
    done(&["configure", "--run", "30", "--meta", "sample=quartz", "--volume", &volume.display().to_string()]);
    // Armed and disarmed: nothing remains.
    assert_eq!(done(&["arm"])["state"], "armed");
    assert_eq!(done(&["stop"])["state"], "configured");
    assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 0);
    for number in [30, 31] {
        let armed = done(&["arm"]);
        let to = armed["listen"].as_str().unwrap();
        // It connects before the start and waits for it.
        let source = start(here, &["source", "csl", "--to", to, "--events", "50", "--rate", "max", "--json"]);
        assert_eq!(done(&["start"])["state"], "recording");
        let sealed = done(&["wait", "sealed", "--timeout", "60 s"]);
        let source = source.wait();
        assert_eq!(source.code(), 0, "{source:#?}");
        let (sent, last) = (count(&printed(&source)["sent"]), &sealed["last"]);
        assert_eq!((&last["run"], &last["whole"]), (&json!(number), &json!(true)));
        assert_eq!(count(&last["durable"]), sent);
        let recording = format!("disk/{}", last["name"].as_str().unwrap());
        assert_eq!(verified(here, &recording), sent);
        let info: Value = printed(&keepup(here, &["info", &recording, "--json"]));
        assert_eq!((&info["run"], &info["metadata"]["sample"]), (&json!(number), &json!("quartz")));
    }
    // A run without a source is ended by a command.
    done(&["arm"]);
    done(&["start"]);
    let stopped = done(&["stop", "--wait"]);
    assert_eq!(
        (&stopped["state"], &stopped["last"]["ended"]),
        (&json!("sealed"), &json!("stopped on request"))
    );
    // A run in progress is sealed when the recorder ends.
    done(&["arm"]);
    done(&["start"]);
    controlled.recorder.signal("INT");
    let ended = controlled.recorder.wait();
    assert_eq!(ended.code(), 0, "{ended:#?}");
    assert_eq!(ended.stdout.matches(" ended: ").count(), 4, "a report of each run: {ended:#?}");
}

#[test]
fn the_ready_file_appears_once_commands_are_accepted() {
    let directory = directory();
    let here = directory.path();
    let volume = here.join("disk");
    std::fs::create_dir(&volume).unwrap();
    let flags = ["--listen", "127.0.0.1:0", "--volume", "disk", "--ready-file", "ready"];
    let mut recorder = Controlled::unread(here, &flags);
    until("the ready file", || here.join("ready").exists());
    let pid = std::fs::read_to_string(here.join("ready")).unwrap();
    assert_eq!(pid, format!("{}\n", recorder.id()));
    let url = recorder.line("live page: ").trim_end_matches('/').to_owned();
    // The first attempt is accepted, before any run.
    let run = keepup(here, &["ctl", "--to", &url, "--token-file", "token", "configure"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 0, "no run has begun");
    // Control: a recorder that cannot become ready has no such file.
    let taken = url.trim_start_matches("http://");
    let flags = ["--to-null", "--listen", "127.0.0.1:0", "--ready-file", "not-ready"];
    let second = keepup(here, &[&["record", "--controlled", "--http", taken][..], &flags].concat());
    assert!(second.code() == 4 && !here.join("not-ready").exists(), "{second:#?}");
    recorder.signal("INT");
    assert_eq!(recorder.wait().code(), 0);
}

#[test]
fn a_refused_command_changes_nothing() {
    let directory = directory();
    let here = directory.path();
    let volume = here.join("disk");
    std::fs::create_dir(&volume).unwrap();
    secret_file(here, "wrong", "fedcba9876543210");
    let controlled = Controlled::start(here, &volume);
    let ctl = |token: &str, flags: &[&str]| {
        keepup(here, &[&["ctl", "--to", &controlled.url, "--token-file", token], flags].concat())
    };
    let refused = [
        ("wrong", &["configure"][..], "token"),
        ("token", &["arm"], "the state is idle"),
        ("token", &["configure", "--revision", "7"], "expected revision 7"),
        ("token", &["configure", "--volume", "/etc"], "not one of this recorder's volumes"),
        ("token", &["configure", "--name", "../up"], "cannot name a recording"),
    ];
    for (token, flags, why) in refused {
        let run = ctl(token, flags);
        assert_eq!(run.code(), 3, "{flags:?}: {run:#?}");
        assert!(run.stderr.contains(why), "{flags:?}: {run:#?}");
    }
    let status = ctl("token", &["status", "--json"]);
    assert_eq!((&printed(&status)["state"], &printed(&status)["revision"]), (&json!("idle"), &json!(0)));
    // Clients on loopback may read without a token.
    let page = keepup(here, &["ctl", "--to", &controlled.url, "status"]);
    assert!(page.code() == 0 && page.stdout.contains("possible commands  configure"), "{page:#?}");
}

#[test]
#[ignore = "system"]
fn the_status_reflects_a_completed_command() {
    let directory = busy_directory();
    let here = directory.path();
    let volume = here.join("disk");
    std::fs::create_dir(&volume).unwrap();
    let controlled = Controlled::start(here, &volume);
    let revision = |mut response: ureq::http::Response<ureq::Body>| {
        let status: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
        status["revision"].as_u64().unwrap()
    };
    let ask = || {
        // One persistent connection: the next request follows the response immediately.
        let agent = ureq::Agent::new_with_defaults();
        for _ in 0..1000 {
            let order = agent.post(format!("{}/api/v1/run/configure", controlled.url));
            let order = order.header("Authorization", format!("Bearer {TOKEN}"));
            let order = order.header("Content-Type", "application/json");
            let answered = revision(order.send(r#"{"settings": {}}"#).unwrap());
            let seen = revision(agent.get(format!("{}/api/v1/run", controlled.url)).call().unwrap());
            assert!(seen >= answered, "the response had revision {answered}, the status {seen}");
        }
    };
    // Often enough to interrupt run control between its steps.
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(ask))));
}

#[test]
#[ignore = "system"]
fn ended_streams_and_filling_disks_are_reported_live() {
    let test = "ended_streams_and_filling_disks_are_reported_live";
    let directory = directory();
    let here = directory.path();
    secret_file(here, "token", TOKEN);
    // A small disk is predicted to be full within the hour. Without one, the rest is tested.
    let disk = allowed(test).then(|| SmallDisk::mount(&here.join("disk"), 512).unwrap());
    let http = ["--http", "127.0.0.1:0", "--token-file", "token", "--stay"];
    let mut record = recorder(here, &["disk"], &http);
    let page = record.line("live page: http://").trim_end_matches('/').to_owned();
    let to = record.address().to_string();
    let source = ["source", "csl-old", "--to", &to, "--streams", "1", "--connections", "1"];
    let first = start(here, &[&source[..], &["--rate", "20 MB/s", "--time", "6s"]].concat());
    let look = |path: &str| -> Value {
        // Before the first sample the status is empty.
        serde_json::from_str(&get(&page, path, "").1).unwrap()
    };
    let stream = || look("/api/v1/now")["streams"][0].clone();
    until("the stream is fed", || stream()["connected"] == true);
    assert_eq!(stream()["ended"], false);
    if disk.is_some() {
        until("the page warns of the disk", || look("/health").to_string().contains("is full in"));
        // Same text, except for the remaining minutes.
        let warning = record.line_that(|line| line.contains("is full in"), "that the disk fills");
        assert!(
            warning.starts_with("warning: disk/run is full in ") && warning.ends_with(" min at this rate"),
            "{warning}"
        );
    }
    assert_eq!(first.wait().code(), 0);
    until("the stream has ended", || stream()["ended"] == true && stream()["connected"] == false);
    let again = start(here, &[&source[..], &["--rate", "20 MB/s", "--time", "60s"]].concat());
    until("it is fed again", || stream()["ended"] == false && stream()["connected"] == true);
    record.signal("INT");
    record.wait();
    again.wait();
}
