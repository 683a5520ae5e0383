//! Configuration of the server.
use std::sync::Arc;

use keepup_peer::Endpoint;

use crate::answers::AnswerLimits;
use crate::catalog::Catalog;
use crate::guard::Access;
use crate::tap::TapSource;

/// Configuration of the server.
pub struct Parts {
    /// Address to listen on: the first one that works; port 0 lets the kernel choose.
    pub listen: Endpoint,
    /// Access rules.
    pub access: Access,
    /// Most connections. Beyond them, the oldest without a token is closed.
    pub connections_max: usize,
    /// Title in the page's header.
    pub title: String,
    /// Colours of all pages, light and dark, as CSS custom properties.
    pub colours: &'static str,
    /// Chart library, as a script.
    pub charts: &'static str,
    /// Whether commands for run control are accepted.
    pub commands: bool,
    /// Stored results and recordings.
    pub catalog: Option<Arc<dyn Catalog>>,
    /// Limits of answers with stored data.
    pub answers: AnswerLimits,
    /// Source of event copies.
    pub tap: Option<Arc<dyn TapSource>>,
    /// Called first on the server's thread, for example to lower its priority.
    pub on_start: Box<dyn FnOnce() + Send>,
}
