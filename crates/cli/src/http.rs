//! Flags of commands that serve a page, and the start of the HTTP server.
use std::path::PathBuf;
use std::sync::Arc;

use keepup_error::Cause;
use keepup_live::{Access, AnswerLimits, Catalog, Live, LiveError, Parts, TapSource};
use keepup_peer::Endpoint;

use crate::exit::usage;
use crate::output::log;
use crate::token;

/// Default port of a page.
pub(crate) const PORT: u16 = 8611;
/// Environment variable with the token, used without a token file.
pub(crate) const TOKEN_VARIABLE: &str = "KEEPUP_TOKEN";
/// Limit on connections, high enough that hundreds of idle ones do not lock a user out.
const CONNECTIONS_MAX: usize = 1024;

/// Flags of commands that serve a page.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HttpArgs {
    /// Address of the page, HTTP API and metrics [default: off; serve: 127.0.0.1:8611]
    ///
    /// An address other than loopback requires a token.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<Endpoint>,
    /// Token file for commands [default: $KEEPUP_TOKEN, or a new token]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// File with a token for viewers, metrics and event copies, which accepts no commands
    #[arg(long, value_name = "FILE")]
    pub(crate) read_token_file: Option<PathBuf>,
    /// Additional host name that requests may use; repeatable
    ///
    /// The addresses of this host and "localhost" are always accepted.
    #[arg(long, value_name = "NAME")]
    pub(crate) http_name: Vec<String>,
}

/// Optional content of a page.
#[derive(Default)]
pub(crate) struct PageContent {
    /// Whether run control accepts commands.
    pub(crate) commands: bool,
    /// Results and recordings.
    pub(crate) catalog: Option<Arc<dyn Catalog>>,
    /// Source of event copies.
    pub(crate) tap: Option<Arc<dyn TapSource>>,
}

/// HTTP server that is configured but not started.
pub(crate) struct PreparedPage {
    /// Arguments of [`Live::start`].
    pub(crate) parts: Parts,
    /// Whether the token was generated here and has to be printed.
    is_generated: bool,
}

impl HttpArgs {
    /// Prepares to serve at `--http`, else at `default`; `None` if neither is given.
    pub(crate) fn prepare(
        &self,
        default: Option<Endpoint>,
        content: PageContent,
    ) -> anyhow::Result<Option<PreparedPage>> {
        let Some(listen) = self.http.clone().or(default) else {
            let has_token = self.token_file.is_some() || self.read_token_file.is_some();
            if has_token || !self.http_name.is_empty() {
                let why = Cause::new(
                    "cannot use --token-file, --read-token-file or --http-name: no page is served",
                );
                return Err(usage(why.with_hint("--http 127.0.0.1:8611")));
            }
            return Ok(None);
        };
        let given = token::read(self.token_file.as_deref(), TOKEN_VARIABLE)?;
        let read_token = self.read_token_file.as_deref().map(token::read_file).transpose()?;
        if read_token.as_ref().zip(given.as_ref()).is_some_and(|(read, all)| read.is(all.reveal().as_bytes()))
        {
            let why =
                Cause::new("cannot use the token of --read-token-file: it is also the one for commands");
            return Err(usage(why.with_hint("(umask 077; head -c 24 /dev/urandom | base64 > FILE)")));
        }
        let is_generated = given.is_none();
        let (first, second) = (token::generate()?, token::generate()?);
        let mut first = std::iter::once(first);
        let mut random = || first.next().unwrap_or_else(|| second.clone());
        let mut names = self.http_name.clone();
        names.push(listen.host().to_owned());
        let access = Access::new(&listen, (given, read_token), names, &mut random)?;
        let parts = Parts {
            listen,
            access,
            connections_max: CONNECTIONS_MAX,
            title: host_name(),
            colours: keepup_report::COLOURS_CSS,
            charts: keepup_report::CHARTS_JS,
            commands: content.commands,
            catalog: content.catalog,
            answers: AnswerLimits::default(),
            tap: content.tap,
            on_start: Box::new(lower_priority),
        };
        Ok(Some(PreparedPage { parts, is_generated }))
    }
}

impl PreparedPage {
    /// Starts the server and prints the URL. A generated token follows the `#`, which browsers do not send.
    /// A token given by the user is not printed.
    pub(crate) fn start(self) -> Result<Live, LiveError> {
        let token = self.is_generated.then(|| format!("#token={}", self.parts.access.token.reveal()));
        let live = Live::start(self.parts)?;
        log(&format!("live page: http://{}/{}", live.address(), token.unwrap_or_default()));
        Ok(live)
    }
}

/// Gives recorders priority for CPU and disk over the serving thread and its reader threads.
fn lower_priority() {
    keepup_sys::thread::yield_to_others();
    // Without this priority class the page still works.
    let _ = keepup_sys::thread::yield_disk();
}

/// Host name.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "this host".to_owned() } else { name.to_owned() }
}
