//! Flags of trials for the place of the source: this machine or another.
use std::path::PathBuf;
use std::sync::Arc;

use keepup_error::Cause;
use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, EndpointError};
use keepup_stream::source::Protocol;
use keepup_workload::file_store::FileStore;
use keepup_workload::net::{NetServer, RemoteSource, SOURCE_PORT, TOKEN_VARIABLE};
use keepup_workload::preflight::check;
use keepup_workload::record::{FileSource, Generator, LocalSource};

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
    /// Parent directory of the files of a simulated program (--as files) [default: the first volume]
    #[arg(long, value_name = "DIR", conflicts_with = "source")]
    files_in: Option<PathBuf>,
}

/// Parses `HOST[:PORT]`.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::with_default_port(text, SOURCE_PORT)
}

/// Place of the files of a simulated detector, for a plan.
pub(crate) fn files_place(store: Option<&FileStore>) -> String {
    store.map_or_else(String::new, |store| {
        format!(" in {} (at most {:.2} GB kept)", store.below.display(), store.keep_bytes as f64 / 1e9)
    })
}

impl GeneratorArgs {
    /// Whether the source runs on another machine.
    pub(crate) fn is_remote(&self) -> bool {
        self.source.is_some()
    }

    /// Where a simulated program writes its files, if anywhere.
    pub(crate) fn place_of_files<'a>(&'a self, volumes: &'a [PathBuf]) -> Option<&'a PathBuf> {
        self.files_in.as_ref().or_else(|| volumes.first())
    }

    /// The source on this machine, with a place for `keep_bytes` of files if `protocol` needs one.
    pub(crate) fn local(
        &self,
        protocol: Protocol,
        keep_bytes: u64,
        volumes: &[PathBuf],
    ) -> anyhow::Result<Arc<dyn Generator>> {
        if self.is_remote() && !protocol.can_be_remote() {
            let why = format!(
                "cannot use --source with --as {protocol}: the recorder takes files from this machine"
            );
            return Err(usage(Cause::new(why).with_hint("leave out --as, or name another protocol")));
        }
        if protocol != Protocol::Files {
            return match &self.files_in {
                None => Ok(Arc::new(LocalSource)),
                Some(_) => {
                    let why = format!("cannot use --files-in: the source sends as {protocol}");
                    Err(usage(Cause::new(why).with_hint("add --as files, and a --rate other than max")))
                }
            };
        }
        let Some(below) = self.place_of_files(volumes).cloned() else {
            let why = Cause::new("cannot write files: no directory given");
            return Err(usage(why.with_hint("--files-in DIR")));
        };
        for checked in check(std::slice::from_ref(&below), keep_bytes)? {
            checked.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
        }
        Ok(Arc::new(FileSource { store: FileStore { below, keep_bytes } }))
    }

    /// Connects to the machine of the source, if one was given, instead of `local`.
    pub(crate) fn connect(&self, local: &Arc<dyn Generator>) -> anyhow::Result<Arc<dyn Generator>> {
        let Some(endpoint) = &self.source else { return Ok(Arc::clone(local)) };
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
