//! Commands of clients.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;

use keepup_fleet::file::FleetFile;

use super::*;

fn status(state: RunState) -> RunStatus {
    let commands = if state == RunState::Recording { vec![RunCommand::Stop] } else { Vec::new() };
    RunStatus { state, commands, revision: 4, ..RunStatus::default() }
}

fn refusal(state: RunState, command: RunCommand, revision: Option<u64>) -> Option<RefusalKind> {
    allow(&status(state), &RunOrder { command, settings: None, revision }).err().map(|refusal| refusal.kind)
}

#[test]
fn a_client_may_only_stop_the_run_that_it_has_seen() {
    assert_eq!(refusal(RunState::Recording, RunCommand::Stop, Some(4)), None);
    assert_eq!(refusal(RunState::Recording, RunCommand::Stop, None), None);
    assert_eq!(refusal(RunState::Recording, RunCommand::Stop, Some(3)), Some(RefusalKind::Revision));
    assert_eq!(refusal(RunState::Recording, RunCommand::Arm, None), Some(RefusalKind::Uncontrolled));
    assert_eq!(refusal(RunState::Draining, RunCommand::Stop, None), Some(RefusalKind::State));
    assert_eq!(refusal(RunState::Configured, RunCommand::Stop, None), Some(RefusalKind::State));
}

/// Page of a run that has not started, with its token file.
fn page(directory: &std::path::Path) -> FleetPage {
    let token_file = directory.join("token");
    std::fs::write(&token_file, TOKEN).unwrap();
    std::fs::set_permissions(&token_file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let http = "127.0.0.1:0".parse().unwrap();
    let http = HttpArgs { http: Some(http), token_file: Some(token_file), ..HttpArgs::default() };
    let live = serve(&http, "hall").unwrap().unwrap();
    let text = "name = \"hall\"\nlisten = \"127.0.0.1:7600\"\n[launcher]\npreset = \"local\"\n\
                program = \"keepup\"\n[[host]]\nname = \"daq1\"\nrole = \"recorder\"\n\
                volumes = [\"/a\"]\ndata = \"127.0.0.1\"\n";
    let file: FleetFile = text.parse().unwrap();
    FleetPage::new(live, FleetWatch::new(&file, 1, &[None]), RunSettings::default(), "runs/run-1".to_owned())
}

const TOKEN: &str = "0123456789abcdef-token";

fn exchange(address: SocketAddr, head: &str, body: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let more = format!("Host: {address}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    write!(client, "{head}\r\n{more}\r\n{body}").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_run_that_failed_is_shown_and_commands_are_answered_until_the_agents_have_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut page = page(directory.path());
    page.fail(5, "cannot record: the controller lost its socket\nforged line");
    let address = page.live.address();
    let status = exchange(address, "GET /api/v1/run HTTP/1.1", "");
    assert!(status.contains("\"state\":\"error\"") && status.contains("lost its socket forged"), "{status}");
    let (running, over) = mpsc::channel();
    std::thread::scope(|scope| {
        let page = &page;
        let thread = scope.spawn(move || page.answer_commands(&over));
        let json = "Content-Type: application/json";
        let head = format!("POST /api/v1/run/stop HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n{json}");
        let refused = exchange(address, &head, "{}");
        assert!(refused.starts_with("HTTP/1.1 409"), "{refused}");
        assert!(refused.contains("cannot stop: the run has failed"), "{refused}");
        assert!(!thread.is_finished());
        drop(running);
    });
}
