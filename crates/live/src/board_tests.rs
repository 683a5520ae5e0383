//! Serialization of the board, and detection of changes.
use super::{Board, FLEET, HISTORY_HOSTS_MAX, HISTORY_MAX, NOW, RUN, STREAMS, Scene};
use crate::testing::{fleet, moment, recording};

#[test]
fn a_part_is_new_only_when_its_content_changes() {
    let board = Board::default();
    let (run, mut seen) = (recording(), moment(3));
    board.publish(Scene { run: Some(&run), moment: Some(&seen), ..Scene::default() });
    let first = board.now();
    assert_eq!([first.parts[RUN].version, first.parts[STREAMS].version, first.parts[NOW].version], [1, 1, 1]);
    seen.seconds += 1.0;
    board.publish(Scene { run: Some(&run), moment: Some(&seen), ..Scene::default() });
    let second = board.now();
    assert_eq!(
        [second.parts[RUN].version, second.parts[STREAMS].version, second.parts[NOW].version],
        [1, 1, 2]
    );
    board.publish(Scene { run: Some(&run), moment: Some(&moment(4)), ..Scene::default() });
    assert_eq!(board.now().parts[STREAMS].version, 2);
}

#[test]
fn events_are_one_line_of_json_each() {
    let board = Board::default();
    board.publish(Scene { run: Some(&recording()), moment: Some(&moment(508)), ..Scene::default() });
    for part in &board.now().parts {
        let text = String::from_utf8(part.event.to_vec()).unwrap();
        if text.is_empty() {
            continue;
        }
        let (head, data) = text.split_once("\ndata: ").unwrap();
        assert!(head.starts_with("event: "));
        serde_json::from_str::<serde_json::Value>(data.strip_suffix("\n\n").unwrap()).unwrap();
        assert_eq!(data.trim_end().lines().count(), 1);
    }
}

#[test]
fn figures_of_many_streams_are_compact() {
    let board = Board::default();
    board.publish(Scene { moment: Some(&moment(508)), ..Scene::default() });
    assert!(board.now().parts[NOW].event.len() < 40_000, "{}", board.now().parts[NOW].event.len());
}

#[test]
fn the_history_is_bounded() {
    let board = Board::default();
    for at in 0..HISTORY_MAX as u64 + 10 {
        let mut seen = moment(1);
        seen.t_unix_ns = at * 1_000_000;
        board.publish(Scene { moment: Some(&seen), ..Scene::default() });
    }
    let history = board.history();
    assert_eq!(history.len(), HISTORY_MAX);
    assert_eq!((history[0].t_unix_ms, history[0].received), (10, 200.0));
}

#[test]
fn the_history_of_a_fleet_has_the_rates_of_its_hosts() {
    let board = Board::default();
    let mut now = fleet();
    now.hosts = vec![now.hosts[0].clone(); HISTORY_HOSTS_MAX + 1];
    board.publish(Scene { fleet: Some(&now), ..Scene::default() });
    let history = board.history();
    assert_eq!((history.len(), history[0].hosts.len()), (1, HISTORY_HOSTS_MAX));
    assert_eq!((history[0].received, history[0].hosts[0]), (200.0, [200.0, 190.0]));
    let json = serde_json::to_value(&history[0]).unwrap();
    assert!(json.get("written").is_none() && json.get("pool").is_none(), "{json}");
    assert_eq!(board.now().parts[FLEET].version, 1);
}
