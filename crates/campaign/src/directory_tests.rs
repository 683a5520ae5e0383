//! A campaign's directory through crashes, changes, and two that want it.
use keepup_error::Cause;
use keepup_results::Event;

use super::*;
use crate::state::tests::campaign;

fn begun(campaign: &Campaign) -> Begun {
    Begun {
        id: "0123abcd".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 1_000_000_000,
        command: "keepup campaign run c.toml".into(),
        workload: campaign.name.clone(),
        plan: serde_json::to_value(campaign).unwrap(),
        environment: serde_json::json!({"kernel": "6.12"}),
    }
}

fn made(out: &Path) -> CampaignDirectory {
    let campaign = campaign(2, 2, "");
    CampaignDirectory::create(out, "the text", &begun(&campaign)).unwrap()
}

fn run(cell: u32, repetition: u32) -> Event {
    Event::CellRun { t_unix_ns: 2, cell, repetition, exit_code: 0, directory: None, seconds: 1.0, why: None }
}

#[test]
fn what_was_written_down_is_read_back() {
    let place = tempfile::tempdir().unwrap();
    let mut directory = made(place.path());
    let path = directory.path().to_owned();
    directory.append(&run(1, 1)).unwrap();
    let found = CampaignDirectory::read(&path).unwrap();
    assert!(found.is_running);
    assert_eq!((found.campaign.clone(), found.runs.len()), (campaign(2, 2, ""), 1));
    assert_eq!(found.begun, begun(&found.campaign));
    assert_eq!(fs::read_to_string(CampaignDirectory::plan_of(&path)).unwrap(), "the text");
    // Nobody else may run it meanwhile; the one who does is named.
    let other = CampaignDirectory::resume(&path).unwrap_err().to_string();
    assert!(other.contains(&format!("process {}", std::process::id())), "{other}");
    drop(directory);
    // A crash left half a line.
    let log = path.join("events.jsonl");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, [&whole[..], b"{\"event\":\"cell_run\",\"t_un"].concat()).unwrap();
    let mut directory = CampaignDirectory::resume(&path).unwrap();
    directory.append(&run(2, 1)).unwrap();
    drop(directory);
    let found = CampaignDirectory::read(&path).unwrap();
    assert_eq!(found.runs.iter().map(|run| run.cell).collect::<Vec<_>>(), [1, 2]);
    assert!(!found.is_running);
}

#[test]
fn what_was_cut_off_is_kept_aside() {
    let place = tempfile::tempdir().unwrap();
    let directory = made(place.path());
    for n in ["first", "second", "third"] {
        let run_directory = directory.create_run_directory(2, 1).unwrap();
        assert!(run_directory.ends_with("cells/2-r1"));
        fs::write(run_directory.join("what"), n).unwrap();
    }
    let what =
        |name: &str| fs::read_to_string(directory.path().join("cells").join(name).join("what")).unwrap();
    assert_eq!(
        (what("2-r1-cut"), what("2-r1-cut2"), what("2-r1")),
        ("first".into(), "second".into(), "third".into())
    );
    assert_eq!(directory.result_in(&directory.path().join("cells/2-r1")), None);
}

#[test]
fn directories_that_are_no_campaigns_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let nothing = CampaignDirectory::read(place.path()).unwrap_err().to_string();
    assert!(nothing.contains("keepup did not make it"), "{nothing}");
    let other = ResultDirectory::create(&place.path().join("disk"), "ab").unwrap();
    let mut log = other.create_log().unwrap();
    let campaign = campaign(1, 1, "");
    let start = |kind, plan| Event::Started {
        t_unix_ns: 1,
        schema_version: 1,
        tool_version: "0.1.0".into(),
        id: "ab".into(),
        kind,
        command: "keepup disk sweep".into(),
        profile: "sweep".into(),
        plan,
        environment: serde_json::Value::Null,
    };
    log.append(&start(Kind::Disk, serde_json::Value::Null)).unwrap();
    let disk = CampaignDirectory::read(other.path()).unwrap_err().to_string();
    assert!(disk.contains("another kind of measurement"), "{disk}");
    let foreign = ResultDirectory::create(&place.path().join("foreign"), "ab").unwrap();
    let mut log = foreign.create_log().unwrap();
    let mut plan = serde_json::to_value(&campaign).unwrap();
    plan["repetitions"] = 4_000_000_000u32.into();
    log.append(&start(Kind::Campaign, plan)).unwrap();
    let large = CampaignDirectory::read(foreign.path()).unwrap_err().to_string();
    assert!(large.contains("more than 10000 runs"), "{large}");
}

#[test]
fn a_campaign_that_was_changed_is_not_gone_on_with() {
    let path = Path::new("results/c");
    let found = StoredCampaign {
        campaign: campaign(3, 2, ""),
        begun: begun(&campaign(3, 2, "")),
        runs: vec![RunDone { cell: 2, repetition: 1, ..RunDone::default() }],
        is_running: false,
    };
    let may = |now: &Campaign, version: &str, anyway| {
        found.check_resume(path, now, version, anyway).map_err(|why| Cause::of(&why).to_text())
    };
    let with = |change: &dyn Fn(&mut Campaign)| {
        let mut changed = campaign(3, 2, "");
        change(&mut changed);
        changed
    };
    may(&campaign(3, 2, ""), "0.1.0", false).unwrap();
    may(&with(&|c| c.repetitions = 7), "0.1.0", false).unwrap();
    may(&with(&|c| c.stop.failures = Some(1)), "0.1.0", false).unwrap();
    let version = may(&campaign(3, 2, ""), "0.2.0", false).unwrap_err();
    assert!(version.contains("started with keepup 0.1.0, this is 0.2.0\nhint: use --anyway"), "{version}");
    may(&campaign(3, 2, ""), "0.2.0", true).unwrap();
    let baseline = with(&|c| drop(c.baseline.insert("n".into(), "1".into())));
    assert!(may(&baseline, "0.1.0", false).unwrap_err().contains("campaign.toml was changed"));
    may(&baseline, "0.1.0", true).unwrap();
    // What was run is not what would be run: nothing helps.
    let other = with(&|c| drop(c.run.insert("quick".into(), vec![])));
    assert!(may(&other, "0.1.0", true).unwrap_err().contains("the command of cell 2"));
    assert!(may(&campaign(1, 2, ""), "0.1.0", true).unwrap_err().contains("the command of cell 2"));
    // A further value at the end of the only axis leaves those before alone.
    assert!(may(&campaign(4, 2, ""), "0.1.0", false).is_err());
    may(&campaign(4, 2, ""), "0.1.0", true).unwrap();
}
