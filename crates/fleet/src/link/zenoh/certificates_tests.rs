//! Validity of the certificates, and secrecy of the keys.
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{ServerName, UnixTime};

use super::*;

const DAY_SECONDS: u64 = 86_400;
/// 9999-12-30.
const LAST_DAY: u64 = 2_932_895;

fn accepting(pem: &str) -> Arc<RootCertStore> {
    Arc::new(roots(Some(pem)).unwrap())
}

fn tls() -> AgentTls {
    ControllerTls::new("10.0.0.1:7650".parse().unwrap()).unwrap().agent()
}

#[test]
fn any_clock_accepts_the_certificates() {
    let (tls, provider) = (tls(), Arc::new(ring::default_provider()));
    let server =
        WebPkiServerVerifier::builder_with_provider(accepting(&tls.controller), Arc::clone(&provider));
    let server = server.build().unwrap();
    let client = WebPkiClientVerifier::builder_with_provider(accepting(&tls.certificate), provider);
    let client = client.build().unwrap();
    let verify = |name: &str, day: u64| {
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(day * DAY_SECONDS));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let agent = client.verify_client_cert(&certificate(&tls.certificate).unwrap(), &[], now).map(drop);
        agent.and(
            server.verify_server_cert(&certificate(&tls.controller).unwrap(), &[], &name, &[], now).map(drop),
        )
    };
    for day in [0, 1, 10_957, 20_000, 40_000, LAST_DAY] {
        verify("10.0.0.1", day).unwrap();
    }
    assert!(verify("10.0.0.1", LAST_DAY + 2).is_err(), "the days are checked");
    assert!(verify("10.0.0.2", 20_000).is_err(), "the address is checked");
}

#[test]
fn each_controller_has_its_own_certificates() {
    let (first, second) = (tls(), tls());
    assert_ne!(first.controller, second.controller);
    assert_ne!(first.certificate, second.certificate);
    assert_ne!(first.key, second.key);
}

#[test]
fn keys_are_not_printed() {
    let tls = tls();
    assert!(tls.key.contains("PRIVATE KEY"));
    assert!(!format!("{tls:?}").contains("KEY"));
}
