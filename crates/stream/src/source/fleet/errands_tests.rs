//! Questions to recorders that do not answer.
use std::net::{SocketAddr, TcpListener, TcpStream};

use keepup_error::Diagnostic as _;

use super::*;

/// Addresses on which nothing listens. No other program gets their ports while the connections that use them,
/// and their listener, exist.
fn not_listening<const N: usize>() -> ([SocketAddr; N], [TcpStream; N], TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connections = [(); N].map(|()| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let addresses = std::array::from_fn(|number| connections[number].local_addr().unwrap());
    (addresses, connections, listener)
}

#[test]
fn recorders_that_do_not_listen_are_reported_as_a_fleet() {
    let question = Locate::new("client", vec![1]);
    let ([first, last], _connections, _listener) = not_listening();
    let error = ask(&[first.into(), last.into()], &question).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot ask any of 2 recorders: nothing listens on {last}"));
    assert!(error.hint().unwrap().contains("`keepup record --fleet FILE`"));
}

#[test]
fn a_recorder_that_may_answer_later_is_reported_before_one_that_does_not_listen() {
    let question = Locate::new("client", vec![1]);
    let ([gone], _connections, _listener) = not_listening();
    // The kernel accepts the connection; nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let recorders = [silent.local_addr().unwrap(), gone].map(Endpoint::from);
    assert!(matches!(ask(&recorders, &question), Err(ClientError::TimedOut { .. })));
}
