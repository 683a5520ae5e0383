//! `keepup ctl` with a recorder behind the real interface: a whole run by commands alone.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_live::{Access, Live, Parts, Scene, Token};
use keepup_measure::clock::SystemClock;
use keepup_recorder::run::{RunControl, RunOffer, RunParts};
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_results::live::RunState;
use serde_json::{Value, json};

use crate::common::{count, directory, json as printed, keepup, start, verified};

const TOKEN: &str = "0123456789abcdef";

/// A recorder that takes commands, on a thread.
struct Controlled {
    url: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Controlled {
    fn start(volume: &Path) -> Self {
        let token = || Token::new(TOKEN).unwrap();
        let listen = ([127, 0, 0, 1], 0).into();
        let live = Live::start(Parts {
            listen,
            access: Access::new(listen, Some(token()), Vec::new(), &mut || token()).unwrap(),
            connections_max: 100,
            title: "test".into(),
            colours: "",
            charts: "",
            commands: true,
            shelf: None,
            on_start: Box::new(|| ()),
        })
        .unwrap();
        let url = format!("http://{}", live.address());
        let over = Arc::new(AtomicBool::new(false));
        let (mut control, flag) = (control(volume), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                control.look();
                publish(&live, &control);
                if let Some(asked) = live.orders().next(Duration::from_millis(20)) {
                    let outcome = control.order(&asked.order).map(|()| control.status());
                    publish(&live, &control);
                    asked.answer(outcome);
                }
            }
        });
        Self { url, over, thread: Some(thread) }
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn publish(live: &Live, control: &RunControl) {
    live.publish(Scene { run: Some(&control.status()), moment: None, search: None });
}

fn control(volume: &Path) -> RunControl {
    let listen = ([127, 0, 0, 1], 0).into();
    let volumes = vec![PathBuf::from(volume)];
    RunControl::new(RunParts {
        offer: RunOffer { volumes, listen, takes_commands: true },
        prepare: Box::new(move |settings, _, number| {
            let name = settings.name.clone().unwrap_or_else(|| format!("run{number}"));
            let mut config = RecorderConfig::new(listen, Target::Null, name);
            (config.pool_bytes, config.segment_bytes) = (64 << 20, 32 << 20);
            Ok(config)
        }),
        clock: Arc::new(SystemClock),
        new_id: Box::new(Id::random),
    })
}

#[test]
fn from_settings_to_a_sealed_recording_by_command_alone() {
    let directory = directory();
    let here = directory.path();
    let volume = here.join("disk");
    std::fs::create_dir(&volume).unwrap();
    std::fs::write(here.join("token"), TOKEN).unwrap();
    let controlled = Controlled::start(&volume);
    let ctl = |flags: &[&str]| {
        let base = ["ctl", "--to", &controlled.url, "--token-file", "token", "--json"];
        keepup(here, &[&base[..], flags].concat())
    };
    let done = |flags: &[&str]| {
        let run = ctl(flags);
        assert_eq!(run.code(), 0, "{flags:?}: {run:#?}");
        printed(&run)
    };
    done(&["configure", "--run", "30", "--meta", "sample=quartz", "--volume", &volume.display().to_string()]);
    // Armed and given back: nothing is left of it.
    assert_eq!(done(&["arm"])["state"], "armed");
    assert_eq!(done(&["stop"])["state"], "configured");
    assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 0);
    for number in [30, 31] {
        let armed = done(&["arm"]);
        let to = armed["listen"].as_str().unwrap();
        // It connects before the start, and waits for it.
        let source = start(here, &["source", "csl", "--to", to, "--events", "50", "--rate", "max", "--json"]);
        assert_eq!(done(&["start"])["state"], "recording");
        let sealed = done(&["wait", "sealed", "--timeout", "60 s"]);
        let source = source.wait();
        assert_eq!(source.code(), 0, "{source:#?}");
        let (sent, last) = (count(&printed(&source)["sent"]), &sealed["last"]);
        assert_eq!((&last["run"], &last["whole"]), (&json!(number), &json!(true)));
        assert_eq!(count(&last["durable"]), sent);
        assert_eq!(verified(here, &format!("disk/run{number}")), sent);
        let info: Value = printed(&keepup(here, &["info", &format!("disk/run{number}"), "--json"]));
        assert_eq!((&info["run"], &info["metadata"]["sample"]), (&json!(number), &json!("quartz")));
    }
    // A run that nobody sends to is ended by command.
    done(&["arm"]);
    done(&["start"]);
    let stopped = done(&["stop", "--wait"]);
    assert_eq!(
        (&stopped["state"], &stopped["last"]["ended"]),
        (&json!("sealed"), &json!("stopped on request"))
    );
}

#[test]
fn what_is_refused_changes_nothing() {
    let directory = directory();
    let here = directory.path();
    let volume = here.join("disk");
    std::fs::create_dir(&volume).unwrap();
    std::fs::write(here.join("token"), TOKEN).unwrap();
    std::fs::write(here.join("wrong"), "fedcba9876543210").unwrap();
    let controlled = Controlled::start(&volume);
    let ctl = |token: &str, flags: &[&str]| {
        keepup(here, &[&["ctl", "--to", &controlled.url, "--token-file", token], flags].concat())
    };
    let refused = [
        ("wrong", &["configure"][..], "token"),
        ("token", &["arm"], "the state is idle"),
        ("token", &["configure", "--revision", "7"], "revision 7 was expected"),
        ("token", &["configure", "--volume", "/etc"], "not one of this recorder's volumes"),
        ("token", &["configure", "--name", "../up"], "cannot name a recording"),
    ];
    for (token, flags, why) in refused {
        let run = ctl(token, flags);
        assert_eq!(run.code(), 3, "{flags:?}: {run:#?}");
        assert!(run.stderr.contains(why), "{flags:?}: {run:#?}");
    }
    let status = ctl("token", &["status", "--json"]);
    assert_eq!(
        (&printed(&status)["state"], &printed(&status)["revision"]),
        (&json!(RunState::Idle), &json!(0))
    );
    // Loopback may look without a token.
    let page = keepup(here, &["ctl", "--to", &controlled.url, "status"]);
    assert!(page.code() == 0 && page.stdout.contains("possible now: configure"), "{page:#?}");
}
