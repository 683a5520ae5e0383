//! Certificates of a controller and its agents, created at each start of the controller.
//!
//! Both are self-signed. The controller accepts only the certificate of its agents, and they accept only that
//! of the controller. Both end with the controller, so nothing has to be issued, stored or revoked.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};

use crate::error::FleetError;
use crate::tls::AgentTls;

/// First and last day of validity. Clocks of hosts may be years off, and that of a host without a battery
/// starts in 1970, the earliest year that can be verified.
const VALID_DAYS: [(i32, u8, u8); 2] = [(1970, 1, 1), (9999, 12, 31)];

/// Certificates of a controller and its agents.
pub struct ControllerTls {
    controller: Identity,
    agents: Identity,
}

/// A certificate with its key, as PEM.
struct Identity {
    certificate: String,
    key: String,
}

impl ControllerTls {
    /// Creates the certificates of a controller that listens on `address`.
    ///
    /// # Errors
    /// No random numbers.
    pub fn new(address: SocketAddr) -> Result<Self, FleetError> {
        let failed = |error: rcgen::Error| FleetError::Listen {
            address: address.to_string(),
            why: format!("cannot create a certificate: {error}").into(),
        };
        let controller = Identity::new("keepup fleet controller", Some(address.ip())).map_err(failed)?;
        let agents = Identity::new("keepup fleet agent", None).map_err(failed)?;
        Ok(Self { controller, agents })
    }

    /// What an agent needs.
    #[must_use]
    pub fn agent(&self) -> AgentTls {
        AgentTls {
            controller: self.controller.certificate.clone(),
            certificate: self.agents.certificate.clone(),
            key: self.agents.key.clone(),
        }
    }
}

impl Identity {
    fn new(name: &str, address: Option<IpAddr>) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = address.map(SanType::IpAddress).into_iter().collect();
        [params.not_before, params.not_after] =
            VALID_DAYS.map(|(year, month, day)| date_time_ymd(year, month, day));
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, key: key.serialize_pem() })
    }
}

/// Configuration of the controller, which accepts only its agents.
pub(super) fn server(tls: &ControllerTls) -> Result<ServerConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let agents = Arc::new(roots(Some(&tls.agents.certificate))?);
    let agents = WebPkiClientVerifier::builder_with_provider(agents, Arc::clone(&provider))
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let Identity { certificate: own, key } = &tls.controller;
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(agents)
        .with_single_cert(vec![certificate(own)?], private_key(key)?)
}

/// Configuration of an agent, which accepts only its controller; without `tls`, one that accepts nobody.
pub(super) fn client(tls: Option<&AgentTls>) -> Result<ClientConfig, Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots(tls.map(|tls| &*tls.controller))?);
    match tls {
        Some(tls) => {
            config.with_client_auth_cert(vec![certificate(&tls.certificate)?], private_key(&tls.key)?)
        }
        None => Ok(config.with_no_client_auth()),
    }
}

fn roots(pem: Option<&str>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    pem.map_or(Ok(()), |pem| roots.add(certificate(pem)?))?;
    Ok(roots)
}

fn certificate(pem: &str) -> Result<CertificateDer<'static>, Error> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| Error::General(error.to_string()))
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| Error::General(error.to_string()))
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
