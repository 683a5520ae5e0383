//! Flags of everything that serves a page, and how it begins to serve.
use std::path::PathBuf;
use std::sync::Arc;

use keepup_error::Cause;
use keepup_live::{Access, AnswerLimits, Catalog, Live, LiveError, Parts, TapSource};
use keepup_peer::Endpoint;

use crate::exit::usage;
use crate::output::say;
use crate::token;

/// Port of a page unless told otherwise.
pub(crate) const PORT: u16 = 8611;
/// Environment variable with the token, where no file has it.
pub(crate) const TOKEN_VARIABLE: &str = "KEEPUP_TOKEN";
/// Connections served at a time; some hundred may do nothing, and one can still get in.
const CONNECTIONS_MAX: usize = 1024;

/// Flags of everything that serves a page.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HttpArgs {
    /// Serve a page, an interface for programs and metrics here; an address beyond loopback needs a token
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<Endpoint>,
    /// File with the token that whoever changes something must know [default: $KEEPUP_TOKEN, or one made up]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A name under which this host may be asked for, beside its addresses and "localhost"; once for each
    #[arg(long, value_name = "NAME")]
    pub(crate) http_name: Vec<String>,
}

/// What is served beside the figures.
#[derive(Default)]
pub(crate) struct Offer {
    /// Whether somebody takes commands for run control.
    pub(crate) commands: bool,
    /// Results and recordings to look at.
    pub(crate) catalog: Option<Arc<dyn Catalog>>,
    /// Where copies of events come from.
    pub(crate) tap: Option<Arc<dyn TapSource>>,
}

/// What is ready to be served.
pub(crate) struct Opening {
    /// For [`Live::start`], by way of [`Opening::start`].
    pub(crate) parts: Parts,
    /// Whether the token was made up here, so that nobody knows it yet.
    is_made_up: bool,
}

impl HttpArgs {
    /// Makes ready to serve at `--http`, or at `default` without it; nothing without both.
    pub(crate) fn open(&self, default: Option<Endpoint>, offer: Offer) -> anyhow::Result<Option<Opening>> {
        let Some(listen) = self.http.clone().or(default) else {
            if self.token_file.is_some() || !self.http_name.is_empty() {
                let why = Cause::new("cannot use --token-file or --http-name: they belong to a page");
                return Err(usage(why.with_hint("--http 127.0.0.1:8611")));
            }
            return Ok(None);
        };
        let given = token::given(self.token_file.as_deref(), TOKEN_VARIABLE)?;
        let is_made_up = given.is_none();
        let (first, second) = (token::made_up()?, token::made_up()?);
        let mut first = std::iter::once(first);
        let mut random = || first.next().unwrap_or_else(|| second.clone());
        let mut names = self.http_name.clone();
        names.push(listen.host().to_owned());
        let access = Access::new(&listen, given, names, &mut random)?;
        let parts = Parts {
            listen,
            access,
            connections_max: CONNECTIONS_MAX,
            title: host_name(),
            colours: keepup_report::COLOURS_CSS,
            charts: keepup_report::CHARTS_JS,
            commands: offer.commands,
            catalog: offer.catalog,
            answers: AnswerLimits::default(),
            tap: offer.tap,
            on_start: Box::new(be_polite),
        };
        Ok(Some(Opening { parts, is_made_up }))
    }
}

impl Opening {
    /// Serves, and says where. A token that somebody gave is not shown; one that was made up stands behind
    /// the `#`, which browsers keep to themselves.
    pub(crate) fn start(self) -> Result<Live, LiveError> {
        let token = self.is_made_up.then(|| format!("#token={}", self.parts.access.token.reveal()));
        let live = Live::start(self.parts)?;
        say(&format!("live page: http://{}/{}", live.address(), token.unwrap_or_default()));
        Ok(live)
    }
}

/// Lets recorders have processors and disks first: the thread that serves, and those that it starts to read.
fn be_polite() {
    keepup_sys::thread::yield_to_others();
    // Where the kernel refuses, disks are asked as before.
    let _ = keepup_sys::thread::yield_disk();
}

/// What this host calls itself.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "this host".to_owned() } else { name.to_owned() }
}
