//! Mutual authentication over real connections.
use std::io::Write as _;
use std::net::Ipv4Addr;

use keepup_measure::clock::SystemClock;
use keepup_peer::Token;

use super::*;
use crate::net::{NetServer, NetSpec, NetTest};
use crate::{Context, Workload as _, WorkloadError};

fn credentials(token: &str) -> Credentials {
    Credentials { token: Token::new(token).unwrap(), random: || Ok("0".repeat(SECRET_BYTES)) }
}

fn context() -> Context {
    Context {
        clock: Arc::new(SystemClock),
        stop: Arc::new(AtomicBool::new(false)),
        sample: Box::new(|_, _| {}),
        note: Box::new(|_| {}),
    }
}

/// Runs `client` with the address of a server that has token `0123456789abcdef`; returns the
/// server's log.
fn served(client: impl FnOnce(SocketAddr)) -> Vec<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let endpoint = Endpoint::from((Ipv4Addr::LOCALHOST, 0));
    let (clock, settings) = (Arc::new(SystemClock), ServerSettings::default());
    let server =
        Listening::bind(&endpoint, credentials("0123456789abcdef"), settings, clock, Arc::clone(&stop));
    let server = server.unwrap();
    let address = server.address();
    let serving = std::thread::spawn(move || {
        let mut log = Vec::new();
        server.serve(|words| log.push(words.to_owned()));
        log
    });
    client(address);
    stop.store(true, Ordering::Release);
    serving.join().unwrap()
}

/// Handshake of a client of `version` with `token`: the server's last answer, the nonces, and the
/// client's proof.
fn greet(address: SocketAddr, version: u32, token: &str) -> (Option<Message>, Nonces, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&CONTROL_MAGIC).unwrap();
    let client = "c".repeat(SECRET_BYTES);
    wire::write(&mut stream, &Message::Hello { version, nonce: client.clone() }).unwrap();
    let challenge = wire::read(&mut stream, STRANGER_BYTES_MAX).unwrap();
    let Some(Message::Challenge { version: VERSION, nonce: server }) = challenge else {
        panic!("no challenge: {challenge:?}")
    };
    let nonces = Nonces { client, server };
    let proof = credentials(token).prove(Side::Client, &nonces);
    wire::write(&mut stream, &Message::Proof { proof: proof.clone() }).unwrap();
    (wire::read(&mut stream, STRANGER_BYTES_MAX).unwrap(), nonces, proof)
}

#[test]
fn the_token_is_checked_before_the_version() {
    let log = served(|address| {
        for (version, token, words) in [
            (VERSION, "0123456789abcdeF", "the token is wrong"),
            (VERSION + 1, "0123456789abcdeF", "the token is wrong"),
            (VERSION + 1, "0123456789abcdef", "the client version 5"),
            (VERSION - 1, "0123456789abcdef", "the client version 3"),
        ] {
            let (answer, ..) = greet(address, version, token);
            let Some(Message::Refused { why }) = answer else { panic!("let in: {answer:?}") };
            assert!(why.contains(words), "{why}");
        }
        let (answer, nonces, _) = greet(address, VERSION, "0123456789abcdef");
        let Some(Message::Welcome { proof, .. }) = answer else { panic!("not let in: {answer:?}") };
        let known = credentials("0123456789abcdef");
        assert!(
            known.accepts(Side::Server, &nonces, &proof) && !known.accepts(Side::Client, &nonces, &proof)
        );
    });
    assert!(!log.is_empty() && log.iter().all(|line| !line.contains("0123456789")), "{log:?}");
}

#[test]
fn a_client_does_not_use_a_server_that_does_not_know_the_token() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let impostor = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        let hello = wire::read(&mut stream, STRANGER_BYTES_MAX).unwrap();
        let nonce = "s".repeat(SECRET_BYTES);
        wire::write(&mut stream, &Message::Challenge { version: VERSION, nonce }).unwrap();
        let proof = wire::read(&mut stream, STRANGER_BYTES_MAX).unwrap();
        let Some(Message::Proof { proof: returned }) = proof.clone() else { panic!("no proof") };
        // The client's own proof is not valid for the server.
        wire::write(&mut stream, &Message::Welcome { proof: returned, host: "x".into() }).unwrap();
        format!("{hello:?} {proof:?}")
    });
    let server =
        NetServer { endpoint: address.into(), credentials: credentials("0123456789abcdef"), name: None };
    let mut test = NetTest::new(NetSpec::default(), vec![server], "test".into()).unwrap();
    let refused = test.prepare(&mut context());
    assert!(matches!(refused, Err(WorkloadError::Net(NetError::Impostor { .. }))), "{refused:?}");
    let seen = impostor.join().unwrap();
    assert!(!seen.contains("0123456789abcdef"), "the token is not sent: {seen}");
}
