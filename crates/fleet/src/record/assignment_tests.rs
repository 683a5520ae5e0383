//! When a recorder accepts, and which streams.
use super::*;
use crate::placement::Member;

fn view(run: u64, hosts: &[HostId]) -> View {
    let member = |&host: &HostId| Member { host, address: ([10, 0, 0, host as u8], 7611).into() };
    View::new(run, 5, &hosts.iter().map(member).collect::<Vec<_>>())
}

#[test]
fn events_are_accepted_from_the_start_to_the_end_of_the_lease() {
    let own = FleetAssignment::new(3, 1);
    assert!(!own.is_open(100));
    own.lease(200);
    assert!(!own.is_open(100));
    own.start(90);
    assert!(own.is_open(100) && !own.is_open(89) && !own.is_open(200));
    own.lease(300);
    assert!(own.is_open(200));
}

#[test]
fn every_stream_has_the_same_recorder_on_all_hosts() {
    let hosts = [1, 4, 6];
    let all = hosts.map(|host| FleetAssignment::new(3, host));
    all.iter().for_each(|own| own.move_streams(&view(3, &hosts)));
    for stream in 0..500 {
        let takers: Vec<_> = all.iter().filter(|own| own.takes(stream)).map(|own| own.host).collect();
        let [taker] = takers[..] else { panic!("{takers:?} take stream {stream}") };
        assert!(all.iter().all(|own| own.locate(stream) == Some(([10, 0, 0, taker as u8], 7611).into())));
    }
    assert!(all.iter().all(|own| own.epoch() == 5));
}

#[test]
fn a_view_of_another_run_assigns_nothing() {
    let own = FleetAssignment::new(3, 1);
    own.move_streams(&view(2, &[1]));
    assert!(!own.takes(7) && own.locate(7).is_none() && own.epoch() == 0);
}
