//! The members of a view that changes.
use std::net::SocketAddr;

use super::*;
use crate::placement::Member;

#[test]
fn the_members_are_those_of_the_latest_view() {
    let member = |host| Member { host, address: SocketAddr::from(([10, 0, 0, 1], 7000)) };
    let mut view = View::new(3, 1, &[member(0), member(1)]);
    let mut members = ViewMembers::default();
    let hosts = |members: &ViewMembers| (0..4).filter(|&host| members.has(host)).collect::<Vec<_>>();
    assert!(hosts(&members).is_empty());
    members.update(&view);
    assert_eq!(hosts(&members), [0, 1]);
    view.replace(0, Some(member(2))).unwrap();
    members.update(&view);
    assert_eq!(hosts(&members), [1, 2]);
    view.replace(1, None).unwrap();
    members.update(&view);
    assert_eq!(hosts(&members), [2]);
}
