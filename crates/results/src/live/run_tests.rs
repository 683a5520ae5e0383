//! What may be asked for when, and where it leads: the whole table.
use super::RunCommand::{Arm, Configure, Reset, Start, Stop};
use super::RunState::{Armed, Configured, Draining, Error, Idle, Recording, Sealed};
use super::*;

#[test]
fn every_command_in_every_state() {
    // In the order of `RunCommand::ALL`: configure, arm, start, stop, reset.
    let table = [
        (Idle, [Some(Configured), None, None, None, None]),
        (Configured, [Some(Configured), Some(Armed), None, None, Some(Idle)]),
        (Armed, [None, None, Some(Recording), Some(Configured), Some(Idle)]),
        (Recording, [None, None, None, Some(Draining), None]),
        (Draining, [None; 5]),
        (Sealed, [Some(Configured), Some(Armed), None, None, Some(Idle)]),
        (Error, [Some(Configured), None, None, None, Some(Idle)]),
    ];
    assert_eq!(RunCommand::ALL, [Configure, Arm, Start, Stop, Reset]);
    assert_eq!(table.map(|(state, _)| state), RunState::ALL);
    for (state, expected) in table {
        assert_eq!(RunCommand::ALL.map(|command| state.after(command)), expected, "{state}");
        let possible = RunCommand::ALL.into_iter().filter(|&command| state.after(command).is_some());
        assert_eq!(possible.collect::<Vec<_>>(), state.commands(), "{state}");
    }
}

#[test]
fn settings_are_read_strictly_and_may_be_empty() {
    assert_eq!(serde_json::from_str::<RunSettings>("{}").unwrap(), RunSettings::default());
    let text = r#"{"run": 7, "metadata": {"sample": "quartz"}, "stop": {"events": 10}}"#;
    let settings: RunSettings = serde_json::from_str(text).unwrap();
    assert_eq!(settings.run, Some(7));
    assert_eq!(settings.stop, StopAfter { events: Some(10), ..StopAfter::default() });
    assert_eq!(
        serde_json::from_str::<RunSettings>(&serde_json::to_string(&settings).unwrap()).unwrap(),
        settings
    );
    for bad in [r#"{"runs": 7}"#, r#"{"stop": {"blocks": 1}}"#, r#"{"run": -1}"#, r#"{"metadata": {"a": 1}}"#]
    {
        assert!(serde_json::from_str::<RunSettings>(bad).is_err(), "{bad}");
    }
}
