//! Certificates of a controller and its agents, created at each start of the controller.
//!
//! Both are self-signed. The controller accepts only the certificate of its agents, and they accept only that
//! of the controller. Both end with the controller, so nothing has to be issued, stored or revoked.
use std::io;
use std::net::{IpAddr, SocketAddr};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType, date_time_ymd};

use super::memory_file::MemoryFile;
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

/// Files of one side of a connection.
pub(super) struct TlsFiles {
    /// Own certificate.
    pub(super) certificate: MemoryFile,
    /// Its key.
    pub(super) key: MemoryFile,
    /// Certificate of the other side.
    pub(super) peer: MemoryFile,
}

impl TlsFiles {
    /// Files of the controller.
    pub(super) fn of_controller(tls: &ControllerTls) -> io::Result<Self> {
        Self::create([&tls.controller.certificate, &tls.controller.key, &tls.agents.certificate])
    }

    /// Files of an agent.
    pub(super) fn of_agent(tls: &AgentTls) -> io::Result<Self> {
        Self::create([&tls.certificate, &tls.key, &tls.controller])
    }

    fn create([certificate, key, peer]: [&str; 3]) -> io::Result<Self> {
        let [certificate, key, peer] = [certificate, key, peer].map(MemoryFile::create);
        Ok(Self { certificate: certificate?, key: key?, peer: peer? })
    }
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
