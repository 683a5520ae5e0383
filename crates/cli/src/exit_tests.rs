//! Every error ends with its documented exit code.
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use keepup_model::machine;
use keepup_peer::{Endpoint, Token};
use keepup_stream::source::SourceReport;
use keepup_trace::FilePosition;
use keepup_workload::VolumeTrouble;
use keepup_workload::net::NetSpec;

use super::*;

#[test]
fn codes_are_the_documented_ones() {
    let codes = [
        (Exit::Done, 0),
        (Exit::Failed, 1),
        (Exit::Usage, 2),
        (Exit::Unsafe, 3),
        (Exit::Environment, 4),
        (Exit::Inconclusive, 5),
        (Exit::Interrupted, 130),
    ];
    for (exit, code) in codes {
        assert_eq!(format!("{:?}", ExitCode::from(exit)), format!("{:?}", ExitCode::from(code)));
    }
}

/// Names of the types in `text` that implement `Diagnostic`.
fn diagnostics(text: &str) -> impl Iterator<Item = &str> {
    let headers = text.lines().filter(|line| line.starts_with("impl Diagnostic for "));
    headers.filter_map(|line| line.split_whitespace().nth(3))
}

#[test]
fn every_error_of_keepup_is_in_the_list() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let (mut folders, mut found) = (vec![PathBuf::from(crates)], 0);
    let listed = include_str!("exit.rs").split_once("first_of![").unwrap().1.split_once("]\n").unwrap().0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_none_or(|ending| ending != "rs") => {}
                false => {
                    for name in diagnostics(&std::fs::read_to_string(&path).unwrap()) {
                        let is_listed = listed.split(',').any(|one| one.trim() == name);
                        assert!(is_listed, "{name} of {} is not in the list of exit.rs", path.display());
                        found += 1;
                    }
                }
            }
        }
    }
    assert_eq!(found, listed.matches(',').count(), "types found and listed");
}

#[test]
fn causes_decide_through_context() {
    let error = anyhow::Error::from(UsageError::new("no")).context("cannot run");
    assert_eq!(Exit::of(&error), Exit::Usage);
    assert_eq!(Exit::of(&anyhow::anyhow!("unknown")), Exit::Environment);
    let missing =
        WorkloadError::Volume { path: "/no".into(), why: "".into(), trouble: VolumeTrouble::Missing };
    assert_eq!(Exit::of(&missing.into()), Exit::Usage);
}

fn io(kind: ErrorKind) -> io::Error {
    kind.into()
}

fn path() -> PathBuf {
    "/no".into()
}

fn json_error() -> serde_json::Error {
    serde_json::from_str::<u8>("x").unwrap_err()
}

fn results_io(kind: ErrorKind) -> ResultsError {
    ResultsError::Io { what: "read", path: path(), source: io(kind) }
}

fn not_empty() -> ResultsError {
    ResultsError::NotEmpty { path: path() }
}

fn recording_io() -> RecordingError {
    RecordingError::Io { doing: "read", path: path(), source: io(ErrorKind::PermissionDenied) }
}

fn address() -> SocketAddr {
    ([127, 0, 0, 1], 7611).into()
}

fn wire() -> ClientError {
    ClientError::Wire(WireError::NotKeepup { looks_like: "nothing" })
}

fn no_recorder(last: ClientError) -> ClientError {
    ClientError::NoRecorder { stream: 0, waited: Duration::ZERO, last: Box::new(last) }
}

fn refused() -> ClientError {
    ClientError::Refused { error: String::new(), hint: String::new() }
}

fn report() -> Box<SourceReport> {
    Box::new(SourceReport::empty(false).unwrap())
}

#[test]
fn the_hint_is_that_of_the_innermost_cause_that_has_one() {
    let hint = |error: &anyhow::Error| hint(error).map(Cow::into_owned);
    let system = SysError::Ring { source: io(ErrorKind::Other), hint: "inner" };
    let error = anyhow::Error::new(QualifyError::Workload(RecorderError::Sys(system).into()));
    assert_eq!(hint(&error).as_deref(), Some("inner"));
    let client = ClientError::Refused { error: String::new(), hint: "of the peer".into() };
    let error = anyhow::Error::new(SourceError::Connect { connection: 0, error: client });
    assert_eq!(hint(&error.context("cannot run")).as_deref(), Some("of the peer"));
    let error = anyhow::Error::new(UsageError::new(Cause::new("no").with_hint("yes"))).context("cannot run");
    assert_eq!(hint(&error).as_deref(), Some("yes"));
    assert_eq!(hint(&anyhow::anyhow!("unknown")), None);
}

fn assert_all(exit: Exit, errors: Vec<anyhow::Error>) {
    for error in errors {
        assert_eq!(Exit::of(&error), exit, "{error:?}");
        assert_eq!(Exit::of(&error.context("cannot run")), exit);
    }
}

/// Every wrapping of the error in other error types.
fn nested(inner: impl Fn() -> WorkloadError) -> Vec<anyhow::Error> {
    let mut errors: Vec<anyhow::Error> = vec![QualifyError::Workload(inner()).into()];
    match inner() {
        WorkloadError::Recorder(e) => errors.push(e.into()),
        WorkloadError::Source(e) => errors.push(e.into()),
        WorkloadError::Recording(e) => {
            errors.push(e.into());
            if let WorkloadError::Recording(e) = inner() {
                errors.push(RecorderError::Recording(e).into());
            }
        }
        _ => {}
    }
    errors.push(inner().into());
    errors
}

fn assert_nested(exit: Exit, makers: &[fn() -> WorkloadError]) {
    makers.iter().for_each(|inner| assert_all(exit, nested(inner)));
}

#[test]
fn errors_of_measurements_keep_their_codes() {
    use WorkloadError as W;
    assert_nested(
        Exit::Usage,
        &[
            || W::Volume { path: path(), why: "".into(), trouble: VolumeTrouble::Missing },
            || NetSpec { flows: 0, ..NetSpec::default() }.check().map_err(NetError::from).unwrap_err().into(),
            || NetError::Address { address: String::new(), why: "" }.into(),
            || NetError::Endpoint("a:b:c".parse::<Endpoint>().unwrap_err()).into(),
            || W::Interface { name: String::new(), known: String::new() },
            || W::Recorder(RecorderError::Config { what: "".into() }),
            || W::Source(SourceError::Plan { what: "".into() }),
            || W::Recording(RecordingError::NotARecording { path: path() }),
        ],
    );
    assert_nested(
        Exit::Unsafe,
        &[
            || W::Volume { path: path(), why: "".into(), trouble: VolumeTrouble::Unsafe },
            || W::Recording(RecordingError::Exists { path: path() }),
        ],
    );
    assert_nested(
        Exit::Failed,
        &[
            || W::Source(SourceError::Broken { connection: 0, error: refused(), report: report() }),
            || W::Recording(RecordingError::File { path: path(), what: "" }),
        ],
    );
    assert_nested(
        Exit::Environment,
        &[
            || W::Volume { path: path(), why: "".into(), trouble: VolumeTrouble::Unable },
            || W::Sys(SysError::Invalid { what: String::new() }),
            || W::Measure(MeasureError::Thread { why: io(ErrorKind::Other) }),
            || NetError::Random { source: io(ErrorKind::Other) }.into(),
            || NetError::Refused { server: String::new(), why: "".into() }.into(),
            || NetError::NoRecorder { server: String::new(), why: String::new() }.into(),
            || NetError::Impostor { server: String::new() }.into(),
            || NetError::Version { server: String::new(), theirs: 1, ours: 2 }.into(),
            || NetError::Silent { peer: String::new(), silence: Duration::ZERO }.into(),
            || NetError::Late { peer: String::new(), silence: Duration::ZERO }.into(),
            || NetError::Disconnected { peer: String::new(), why: None }.into(),
            || NetError::Stopped { peer: String::new() }.into(),
            || NetError::Protocol { peer: String::new(), what: String::new() }.into(),
            || W::Route { peer: address().ip(), source: io(ErrorKind::Other) },
            || W::Load { spec: String::new(), why: "".into() },
            || W::System { action: String::new(), source: io(ErrorKind::Other) },
            || W::Thread { name: "" },
            || W::Recorder(RecorderError::Ended { why: "".into() }),
            || W::Recording(recording_io()),
        ],
    );
}

#[test]
fn errors_of_soaks_and_replays_keep_their_codes() {
    use ReplayError as R;
    use SoakError as S;
    let system = || WorkloadError::System { action: String::new(), source: io(ErrorKind::Other) };
    let invalid = || SysError::Invalid { what: String::new() };
    let unsafe_volume =
        || WorkloadError::Volume { path: path(), why: "".into(), trouble: VolumeTrouble::Unsafe };
    assert_all(
        Exit::Usage,
        vec![
            S::StatePlan { path: path(), what: String::new() }.into(),
            R::Unfit { trace: String::new(), what: "".into(), hint: "".into() }.into(),
            R::Trace(TraceError::Usage { what: "".into(), help: "".into() }).into(),
        ],
    );
    assert_all(Exit::Unsafe, vec![S::Workload(unsafe_volume()).into(), R::Workload(unsafe_volume()).into()]);
    assert_all(
        Exit::Failed,
        vec![
            S::State { path: path(), line: 1, offset: 0, what: String::new() }.into(),
            S::Reference { path: path(), what: "".into() }.into(),
        ],
    );
    assert_all(
        Exit::Environment,
        vec![
            S::StateBusy { path: path() }.into(),
            S::StateFile { path: path(), source: io(ErrorKind::NotFound), hint: "".into() }.into(),
            S::Sys(invalid()).into(),
            S::Workload(system()).into(),
            R::Failed { trace: String::new(), place: String::new(), count: 1, why: "".into() }.into(),
            R::Sys(invalid()).into(),
            R::Workload(system()).into(),
        ],
    );
}

#[test]
fn errors_of_registers_keep_their_codes() {
    use IpbusError as I;
    use RegisterError as R;
    let (none, target) = (String::new, address());
    assert_all(
        Exit::Usage,
        vec![
            R::Name { name: none(), why: none() }.into(),
            R::Span { target: none(), what: none(), hint: none() }.into(),
            R::Profile { origin: none(), what: "".into() }.into(),
            R::Ipbus(I::Range { address: 0, words: 1 }).into(),
            I::Options(none()).into(),
            I::Range { address: 0, words: 1 }.into(),
        ],
    );
    assert_all(
        Exit::Unsafe,
        vec![
            R::Unsafe { target: none(), what: none(), hint: none() }.into(),
            R::Ipbus(I::Exposed { endpoint: target.into() }).into(),
            I::Exposed { endpoint: target.into() }.into(),
        ],
    );
    assert_all(
        Exit::Environment,
        vec![
            R::Driver { target: none(), what: none(), hint: none() }.into(),
            R::Identity { target: none(), what: none(), hint: none() }.into(),
            R::Sys(SysError::Invalid { what: none() }).into(),
            I::Foreign { target, what: none() }.into(),
            I::Status { target, what: none() }.into(),
            I::Sequence { target, expected: 1, ours: 2 }.into(),
        ],
    );
}

#[test]
fn errors_of_traces_keep_their_codes() {
    let trace_io = |kind| TraceError::Io { action: "read", path: path(), source: io(kind) };
    assert_all(
        Exit::Usage,
        vec![
            trace_io(ErrorKind::NotFound).into(),
            TraceError::Ambiguous { path: path(), what: "".into(), help: "".into() }.into(),
            TraceError::Usage { what: "".into(), help: "".into() }.into(),
        ],
    );
    assert_all(Exit::Environment, vec![trace_io(ErrorKind::PermissionDenied).into()]);
    let bad = TraceError::Invalid {
        path: path(),
        position: FilePosition::Line(1),
        what: "".into(),
        help: "".into(),
    };
    assert_all(Exit::Failed, vec![bad.into()]);
}

#[test]
fn errors_of_recordings_keep_their_codes() {
    use RecordingError as R;
    assert_all(
        Exit::Unsafe,
        vec![
            R::Exists { path: path() }.into(),
            R::Foreign { path: path() }.into(),
            R::Remains { path: path() }.into(),
            R::Taken { path: path() }.into(),
        ],
    );
    assert_all(
        Exit::Usage,
        vec![
            R::NotARecording { path: path() }.into(),
            R::Unborn { path: path() }.into(),
            R::Name { name: String::new() }.into(),
            R::VolumeMissing { path: path(), index: 0, volume: path() }.into(),
        ],
    );
    assert_all(Exit::Environment, vec![recording_io().into()]);
    assert_all(
        Exit::Failed,
        vec![
            R::Manifest { path: path(), what: "".into() }.into(),
            R::Mixed { first: path(), second: path(), what: "" }.into(),
            R::JournalLine { path: path(), line: 1, offset: 0, what: String::new() }.into(),
            R::File { path: path(), what: "" }.into(),
            R::Busy { path: path() }.into(),
            R::NoLocks { path: path() }.into(),
            R::NotSealed { path: path() }.into(),
            R::Unsealed { path: path(), source: io(ErrorKind::StorageFull) }.into(),
            R::TooLarge { path: path(), events_max: 1 }.into(),
            R::JournalBroken { path: path() }.into(),
            R::JournalRecord { path: path(), what: String::new() }.into(),
            R::Segment { path: path(), offset: 0, what: "".into() }.into(),
        ],
    );
}

#[test]
fn errors_of_recorders_and_sources_keep_their_codes() {
    let client = |error| RecorderError::Client(error);
    let failed = || io(ErrorKind::Other);
    let environment: Vec<anyhow::Error> = vec![
        RecorderError::Listen { endpoint: address().into(), source: failed() }.into(),
        RecorderError::Sys(SysError::Invalid { what: String::new() }).into(),
        RecorderError::Thread { name: String::new(), why: "".into() }.into(),
        RecorderError::Ended { why: "".into() }.into(),
        client(ClientError::NotListening { addr: address() }).into(),
        client(ClientError::Io { action: "", addr: address(), source: failed() }).into(),
        client(refused()).into(),
        client(ClientError::Closed { action: "", addr: address() }).into(),
        client(ClientError::TimedOut { action: "", addr: address(), waited: Duration::ZERO }).into(),
        client(ClientError::Unassigned { stream: 0 }).into(),
        client(no_recorder(refused())).into(),
        SourceError::Connect { connection: 0, error: wire() }.into(),
        SourceError::Thread { connection: 0, what: "".into() }.into(),
    ];
    assert_all(Exit::Environment, environment);
    assert_all(Exit::Failed, vec![client(wire()).into(), client(no_recorder(wire())).into()]);
}

#[test]
fn errors_of_results_keep_their_codes_and_depend_on_who_has_them() {
    use ResultsError as R;
    assert_all(
        Exit::Usage,
        vec![
            results_io(ErrorKind::NotFound).into(),
            R::NotAResult { path: path() }.into(),
            R::NotASummary { path: path() }.into(),
            R::SchemaVersion { path: path(), found: 9 }.into(),
            R::BadName { what: "", text: String::new() }.into(),
        ],
    );
    assert_all(Exit::Unsafe, vec![not_empty().into(), R::NotADirectory { path: path() }.into()]);
    assert_all(
        Exit::Failed,
        vec![
            R::Summary { path: path(), source: json_error() }.into(),
            R::Event { path: path(), line: 1, reason: String::new() }.into(),
            R::CutOff { path: path(), reason: String::new() }.into(),
        ],
    );
    assert_all(
        Exit::Environment,
        vec![
            results_io(ErrorKind::PermissionDenied).into(),
            R::LogBroken { path: path() }.into(),
            R::Unwritable { path: path(), source: json_error() }.into(),
            QualifyError::Results(results_io(ErrorKind::NotFound)).into(),
            CampaignError::Results(results_io(ErrorKind::NotFound)).into(),
        ],
    );
    assert_all(
        Exit::Unsafe,
        vec![
            QualifyError::Results(R::LogBroken { path: path() }).into(),
            QualifyError::Results(not_empty()).into(),
            CampaignError::Results(not_empty()).into(),
        ],
    );
    let marker = R::NotADirectory { path: path() };
    assert_all(Exit::Usage, vec![CampaignError::Results(marker).into()]);
}

#[test]
fn a_fleet_that_is_stopped_before_its_hosts_join_is_interrupted() {
    assert_all(Exit::Interrupted, vec![FleetError::Stopped("record".to_owned()).into()]);
}

#[test]
fn errors_of_campaigns_and_qualifications_keep_their_codes() {
    use CampaignError as C;
    let model = || machine("no-such-machine").unwrap_err();
    let campaign_io = |kind| C::Io { what: "read", path: path(), source: io(kind) };
    let place = || keepup_plan::SourceLocation { origin: String::new(), line: None };
    let profile = || keepup_plan::load("no-such-profile").unwrap_err();
    let settings = |environment| QualifyError::Settings { what: "".into(), environment };
    assert_all(
        Exit::Usage,
        vec![
            campaign_io(ErrorKind::NotFound).into(),
            C::Invalid { place: place(), key: String::new(), reason: "".into() }.into(),
            ReproduceError::Paper { name: String::new(), why: "".into() }.into(),
            ReproduceError::NotPublished { paper: String::new(), why: "".into() }.into(),
            C::NotACampaign { path: path(), why: String::new() }.into(),
            C::Changed { path: path(), why: String::new(), hint: "" }.into(),
            CompareError::Nothing.into(),
            model().into(),
            profile().into(),
            Token::new("short").unwrap_err().into(),
            settings(false).into(),
            QualifyError::Profile(keepup_plan::Invalid { key: "", reason: "".into() }).into(),
            QualifyError::Search(PlanError::NoRange { min: 2.0, max: 1.0 }).into(),
        ],
    );
    assert_all(
        Exit::Environment,
        vec![
            campaign_io(ErrorKind::PermissionDenied).into(),
            C::Run { cell: 1, name: String::new(), why: "".into() }.into(),
            settings(true).into(),
            QualifyError::Measure(MeasureError::Thread { why: io(ErrorKind::Other) }).into(),
        ],
    );
    assert_all(Exit::Unsafe, vec![C::Running { path: path(), pid: String::new() }.into()]);
}

#[test]
fn errors_of_pages_keep_their_codes() {
    let endpoint = || Endpoint::from(address());
    let other = || io(ErrorKind::Other);
    assert_all(
        Exit::Unsafe,
        vec![
            LiveError::Open { endpoint: endpoint() }.into(),
            CtlError::Refused { why: "".into() }.into(),
            SharedTokenFile { path: path() }.into(),
        ],
    );
    assert_all(
        Exit::Environment,
        vec![
            LiveError::Listen { endpoint: endpoint(), source: other() }.into(),
            LiveError::Start { source: other() }.into(),
            CtlError::Unreachable { to: String::new(), why: String::new() }.into(),
            CtlError::Answer { to: String::new(), what: "".into() }.into(),
        ],
    );
    assert_all(Exit::Failed, vec![CtlError::Failed { why: "".into() }.into()]);
}
