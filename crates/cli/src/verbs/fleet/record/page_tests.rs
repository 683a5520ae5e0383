//! Commands of clients.
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
