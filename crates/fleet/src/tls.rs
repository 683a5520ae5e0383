//! What an agent needs for TLS. It arrives with the token, so that neither side has files with certificates.
use std::fmt;

use serde::{Deserialize, Serialize};

/// Certificates and key of an agent, each as PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTls {
    /// Certificate of the controller.
    pub controller: String,
    /// Own certificate.
    pub certificate: String,
    /// Private key of the own certificate.
    pub key: String,
}

impl fmt::Debug for AgentTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AgentTls(…)")
    }
}
