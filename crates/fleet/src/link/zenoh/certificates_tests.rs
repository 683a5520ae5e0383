//! Validity of the certificates, and secrecy of the keys.
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;

use super::*;

const DAY_SECONDS: u64 = 86_400;
/// 9999-12-30.
const LAST_DAY: u64 = 2_932_895;

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

fn roots(pem: &str) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(der(pem)).unwrap();
    Arc::new(roots)
}

fn tls() -> AgentTls {
    ControllerTls::new("10.0.0.1:7650".parse().unwrap()).unwrap().agent()
}

#[test]
fn any_clock_accepts_the_certificates() {
    let (tls, provider) = (tls(), Arc::new(ring::default_provider()));
    let server = WebPkiServerVerifier::builder_with_provider(roots(&tls.controller), Arc::clone(&provider));
    let server = server.build().unwrap();
    let client = WebPkiClientVerifier::builder_with_provider(roots(&tls.certificate), provider);
    let client = client.build().unwrap();
    let verify = |name: &str, day: u64| {
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(day * DAY_SECONDS));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let agent = client.verify_client_cert(&der(&tls.certificate), &[], now).map(drop);
        agent.and(server.verify_server_cert(&der(&tls.controller), &[], &name, &[], now).map(drop))
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
fn zenoh_gets_paths_and_no_keys() {
    let controller = ControllerTls::new("10.0.0.1:7650".parse().unwrap()).unwrap();
    let files = TlsFiles::of_controller(&controller).unwrap();
    let read = |file: &MemoryFile| std::fs::read_to_string(file.path()).unwrap();
    assert_eq!(read(&files.key), controller.controller.key);
    assert_eq!(read(&files.certificate), controller.controller.certificate);
    assert_eq!(read(&files.peer), controller.agents.certificate);
    let tls = controller.agent();
    let files = TlsFiles::of_agent(&tls).unwrap();
    assert_eq!(
        [read(&files.key), read(&files.certificate), read(&files.peer)],
        [tls.key.clone(), tls.certificate.clone(), tls.controller.clone()]
    );
    assert!(tls.key.contains("PRIVATE KEY"));
    assert!(!format!("{tls:?}").contains("KEY"));
}
