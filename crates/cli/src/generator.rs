//! Flags of trials for the place of the source: this machine or another.
use std::path::PathBuf;
use std::sync::Arc;

use keepup_error::Cause;
use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError};
use keepup_stream::source::Protocol;
use keepup_workload::net::{NetServer, RemoteSource, SOURCE_PORT, TOKEN_VARIABLE};
use keepup_workload::record::{Generator, LocalSource};

use crate::exit::usage;
use crate::output::log;
use crate::token::net_credentials;

/// Flags for the place of the source.
#[derive(clap::Args)]
pub(crate) struct GeneratorArgs {
    /// Machine that runs the source, see `keepup source --serve` [default: this one, over loopback]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = endpoint)]
    source: Option<Endpoint>,
    /// File with the token of that machine [default: $KEEPUP_NET_TOKEN]
    #[arg(long, value_name = "FILE", requires = "source")]
    source_token_file: Option<PathBuf>,
}

/// Parses `HOST[:PORT]`.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, SOURCE_PORT)
}

impl GeneratorArgs {
    /// Whether the source runs on another machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.source.is_some()
    }

    /// Connects to the machine of the source, if one was given.
    pub(crate) fn connect(&self, protocol: Protocol) -> anyhow::Result<Arc<dyn Generator>> {
        let Some(endpoint) = &self.source else { return Ok(Arc::new(LocalSource)) };
        if protocol.waits_for_recorder() {
            let why = Cause::new(format!(
                "cannot use --source with --as {protocol}: the recorder would have to connect to the source"
            ));
            return Err(usage(
                why.with_hint("`keepup source --as PROTOCOL` there, `keepup record --from SOURCE` here"),
            ));
        }
        let credentials = net_credentials(self.source_token_file.as_deref())?.ok_or_else(|| {
            let why = Cause::new(format!("cannot use the source at {endpoint}: no token given"));
            usage(why.with_hint(format!(
                "--source-token-file FILE or {TOKEN_VARIABLE}=TOKEN, as printed by `keepup source --serve`"
            )))
        })?;
        let server = NetServer { endpoint: endpoint.clone(), credentials, name: None };
        let source = RemoteSource::connect(server, Arc::new(SystemClock))?;
        let host = source.host();
        log(&format!("source on {} at {}, keepup {}", host.host, host.address, host.tool_version));
        Ok(Arc::new(source))
    }
}
