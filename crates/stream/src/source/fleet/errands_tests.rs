//! Questions to recorders that do not answer.
use std::net::TcpListener;

use keepup_error::Diagnostic as _;

use super::*;

#[test]
fn recorders_that_do_not_listen_are_reported_as_a_fleet() {
    let question = Locate::new("client", vec![1]);
    let is_reported = |_| {
        let [first, last] = [(); 2].map(|()| {
            // Closed at once.
            TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
        });
        let error = ask(&[first.into(), last.into()], &question).unwrap_err();
        let text = format!("cannot ask any of 2 recorders: nothing listens on {last}");
        error.to_string() == text && error.hint().unwrap().contains("`keepup record --fleet FILE`")
    };
    // A child process started by another test may hold a port a little longer.
    assert!((0..100).any(is_reported));
}
