//! An object store behind an address: `s3://`, `gs://`, `az://` or `file://`.
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use keepup_error::Cause;
use keepup_measure::clock::{Clock as _, SystemClock};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::multipart::MultipartStore;
use object_store::path::{Path as ObjectPath, PathPart};
use object_store::{
    ClientConfigKey, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutResult,
};
use tokio::runtime::Runtime;
use url::Url;

use crate::credentials;
use crate::error::{ArchiveError, cause, is_absent, is_final};
use crate::google::{ChecksumConnector, Crc32c};

/// Schemes of addresses.
const SCHEMES: [&str; 4] = ["s3", "gs", "az", "file"];
/// Limit on one request. A part of 8 MiB takes that long at 56 kB/s.
const REQUEST_TIMEOUT: &str = "150 seconds";
/// Attempts of a request beyond those of the client, which repeats only what a server asks it to repeat.
const ATTEMPTS: u32 = 3;
/// A request that took longer was already repeated by the client, in nanoseconds.
const REPEATED_AFTER_NS: u64 = 20_000_000_000;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// Most threads of the client.
const THREADS_MAX: usize = 8;

/// Address in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    url: Url,
}

/// Whether the text is an address in an object store: it has the scheme of one.
pub fn is_store_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

impl Location {
    /// Parses `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`.
    ///
    /// # Errors
    /// It is not an address of this form, or has a user, a password, a query or a fragment.
    pub fn parse(text: &str) -> Result<Self, ArchiveError> {
        // What may have a secret is not quoted.
        let quoted = match (text.contains(['@', '?']), text.split_once("://")) {
            (false, _) => text.to_owned(),
            (true, Some((scheme, _))) => format!("{scheme}://..."),
            (true, None) => "the address".to_owned(),
        };
        let fault = |what: Cause| ArchiveError::Url { url: quoted.clone(), what };
        let mut url = Url::parse(text).map_err(|error| fault(error.to_string().into()))?;
        if !is_store_url(text) {
            let what = Cause::new("the scheme must be s3, gs, az or file");
            return Err(fault(what.with_hint("--to s3://BUCKET/PREFIX")));
        }
        if url.scheme() == "file" && url.host_str().is_some_and(|host| !host.is_empty()) {
            return Err(fault(
                Cause::new("it names a host").with_hint("file:///DIRECTORY, with three slashes"),
            ));
        }
        if url.scheme() != "file" && url.host_str().is_none_or(str::is_empty) {
            return Err(fault(Cause::new("it has no bucket").with_hint("--to s3://BUCKET/PREFIX")));
        }
        if url.username() != "" || url.password().is_some() {
            let what = Cause::new("it has credentials").with_hint("give credentials in the environment");
            return Err(fault(what));
        }
        if url.port().is_some() {
            let hint = "s3://BUCKET/PREFIX, with AWS_ENDPOINT_URL=https://HOST:PORT for the server";
            return Err(fault(Cause::new("it has a port").with_hint(hint)));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(fault("it has a query or a fragment".into()));
        }
        let path = ObjectPath::from_url_path(url.path().trim_end_matches('/'))
            .map_err(|error| fault(error.to_string().into()))?;
        url.set_path(&path.parts().map(|part| format!("/{}", encoded(part.as_ref()))).collect::<String>());
        Ok(Self { url })
    }

    /// Path of a directory; `None` for other stores.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        if self.url.scheme() == "file" { self.url.to_file_path().ok() } else { None }
    }

    /// Address of the archive of the recording `name`.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{}", url.path().trim_end_matches('/'), encoded(name)));
        Self { url }
    }
}

/// A name in an address. All but unreserved characters (RFC 3986) are encoded, so that the address needs no
/// quotes in a shell.
fn encoded(name: &str) -> String {
    let encode = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(encode).collect()
}

impl Location {
    /// Address of the archive at this one if an earlier version wrote it; `None` if its name has the same
    /// key.
    pub(crate) fn earlier(&self) -> Option<Self> {
        let path = ObjectPath::from_url_path(self.url.path()).ok()?;
        let name = earlier_name(path.filename()?)?;
        let (home, _) = self.url.path().rsplit_once('/')?;
        let mut url = self.url.clone();
        url.set_path(&format!("{home}/{}", encoded(&name)));
        Some(Self { url })
    }
}

/// Key of `name` below `base`, with the name as it is: `join` would encode characters of it, which its
/// address then encodes a second time.
fn literal(base: &ObjectPath, name: &str) -> Result<ObjectPath, object_store::path::Error> {
    ObjectPath::parse(format!("{base}/{name}"))
}

/// Key of a name as earlier versions wrote it; `None` if it is the name.
fn earlier_name(name: &str) -> Option<String> {
    let key = PathPart::from(name).as_ref().to_owned();
    (key != name).then_some(key)
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(out)
    }
}

/// An open object store. Its paths are relative to a location.
pub(crate) struct Store {
    pub(crate) location: Location,
    base: ObjectPath,
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// Uploads that another process can continue; not every store has them.
    pub(crate) uploads: Option<Arc<dyn MultipartStore>>,
    /// Whether the store returns the CRC32C of a completed object.
    pub(crate) has_crc32c: bool,
    pub(crate) runtime: Runtime,
}

/// A store's answer to the request that made an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) etag: Option<String>,
    /// Version of the object, in stores with versions.
    pub(crate) version: Option<String>,
    /// Checksum of the whole object, if the store has returned one.
    pub(crate) crc32c: Option<Crc32c>,
}

impl From<PutResult> for Written {
    fn from(put: PutResult) -> Self {
        let crc32c = put.extensions.get::<Crc32c>().copied();
        Self { etag: put.e_tag, version: put.version, crc32c }
    }
}

type Clients = (Arc<dyn ObjectStore>, Option<Arc<dyn MultipartStore>>);

impl Store {
    /// Opens the archive `name` below a location, or the one at the location itself, with the credentials of
    /// the environment. No request is sent.
    pub(crate) fn open(location: &Location, name: Option<&str>) -> Result<Self, ArchiveError> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, THREADS_MAX);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("ku-archive")
            .enable_all()
            .build()
            .map_err(|source| ArchiveError::Threads { source })?;
        // Fails only if one was installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = &location.url;
        let fault = |what: Cause| ArchiveError::Url { url: url.to_string(), what };
        let (objects, uploads) = match url.scheme() {
            "file" => local(url).map_err(fault)?,
            scheme => remote(scheme, url).map_err(|error| fault(cause(&error)))?,
        };
        let path = if url.scheme() == "file" { "" } else { url.path() };
        let base = ObjectPath::from_url_path(path).map_err(|error| fault(error.to_string().into()))?;
        let (location, base) = match name {
            Some(name) => {
                let base = literal(&base, name).map_err(|error| fault(error.to_string().into()))?;
                (location.below(name), base)
            }
            None => (location.clone(), base),
        };
        let has_crc32c = url.scheme() == "gs";
        Ok(Self { location, base, objects, uploads, has_crc32c, runtime })
    }

    /// This store with the archive `name` of an earlier version, which encoded characters of the name in
    /// its keys; `None` if the name has no such characters.
    pub(crate) fn with_earlier_name(mut self, name: &str) -> Option<Self> {
        let encoded = earlier_name(name)?;
        let parts = self.base.as_ref().strip_suffix(name)?.to_owned();
        self.base = ObjectPath::parse(parts + &encoded).ok()?;
        Some(self)
    }

    /// Object of a path, whose parts are separated by `/`.
    pub(crate) fn object(&self, path: &str) -> ObjectPath {
        path.split('/').fold(self.base.clone(), |object, part| object.join(part))
    }

    /// Error of a request for the object `path`.
    pub(crate) fn fault(
        &self,
        doing: &'static str,
        path: &str,
    ) -> impl FnOnce(object_store::Error) -> ArchiveError + use<> {
        let object = format!("{}/{path}", self.location);
        move |error| ArchiveError::Store { doing, object, what: cause(&error) }
    }

    /// Size and ETag of an object; `None` if there is none.
    pub(crate) fn head(&self, path: &str) -> Result<Option<ObjectMeta>, ArchiveError> {
        let object = self.object(path);
        match self.runtime.block_on(repeat(|| self.objects.head(&object))) {
            Ok(meta) => Ok(Some(meta)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.fault("inspect", path)(error)),
        }
    }

    /// Content of a small object; `None` if there is none. The error is the text if it is longer than
    /// `bytes_max`.
    pub(crate) fn get(
        &self,
        path: &str,
        bytes_max: u64,
    ) -> Result<Option<Result<Vec<u8>, String>>, ArchiveError> {
        let object = self.object(path);
        let read = || async {
            let mut chunks = self.objects.get(&object).await?.into_stream();
            let mut text = Vec::new();
            while let Some(chunk) = chunks.try_next().await? {
                if (text.len() + chunk.len()) as u64 > bytes_max {
                    return Ok(Err(format!("it is longer than {bytes_max} bytes")));
                }
                text.extend_from_slice(&chunk);
            }
            Ok(Ok(text))
        };
        match self.runtime.block_on(repeat(read)) {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.fault("read", path)(error)),
        }
    }

    /// Writes a small object and reads it back; the error is the difference.
    pub(crate) fn put_confirmed(&self, path: &str, text: &[u8]) -> Result<Result<(), String>, ArchiveError> {
        self.put(path, Bytes::copy_from_slice(text))?;
        Ok(match self.get(path, text.len() as u64)? {
            Some(Ok(found)) if found == text => Ok(()),
            _ => Err("checksum mismatch: the archive does not hold the bytes that were written".to_owned()),
        })
    }

    /// Removes an object; one that does not exist is no error.
    pub(crate) fn delete(&self, path: &str) -> Result<(), ArchiveError> {
        let object = self.object(path);
        match self.runtime.block_on(repeat(|| self.objects.delete(&object))) {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            outcome => outcome.map_err(self.fault("remove", path)),
        }
    }

    /// Writes a whole object.
    pub(crate) fn put(&self, path: &str, bytes: Bytes) -> Result<Written, ArchiveError> {
        let object = self.object(path);
        let put = self.runtime.block_on(repeat(|| self.objects.put(&object, bytes.clone().into())));
        put.map(Written::from).map_err(self.fault("write", path))
    }

    /// Writes a whole object unless there is one, which is then left as it is. A store without conditional
    /// requests replaces it.
    pub(crate) fn create(&self, path: &str, bytes: Bytes) -> Result<(), ArchiveError> {
        let object = self.object(path);
        let put = || {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            self.objects.put_opts(&object, bytes.clone().into(), options)
        };
        match self.runtime.block_on(repeat(put)) {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) if is_unsupported(&error, &self.location) => self.put(path, bytes).map(drop),
            Err(error) => Err(self.fault("write", path)(error)),
        }
    }
}

/// Whether a store does not know conditional requests. A file system without hard links has none either.
fn is_unsupported(error: &object_store::Error, location: &Location) -> bool {
    matches!(error, object_store::Error::NotImplemented { .. })
        || error.to_string().contains("NotImplemented")
        || location.directory().is_some()
}

/// Reads a range of an object. A longer body is an error, and not more than one piece of it is received.
pub(crate) async fn get_range(
    objects: &dyn ObjectStore,
    object: &ObjectPath,
    range: Range<u64>,
) -> object_store::Result<Bytes> {
    let wanted = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let options = GetOptions::new().with_range(Some(range));
    let mut pieces = objects.get_opts(object, options).await?.into_stream();
    let mut part = BytesMut::new();
    while let Some(piece) = pieces.try_next().await? {
        if piece.len() > wanted - part.len() {
            let source = format!("the server sends more than the {wanted} bytes that were requested").into();
            return Err(object_store::Error::Generic { store: "archive", source });
        }
        part.extend_from_slice(&piece);
    }
    Ok(part.freeze())
}

/// Repeats a request that failed at once, unless another attempt is of no use.
pub(crate) async fn repeat<T, F>(mut request: impl FnMut() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let mut attempt = 1;
    loop {
        let since_ns = SystemClock.now_ns();
        match request().await {
            Err(error)
                if attempt < ATTEMPTS
                    && SystemClock.now_ns().saturating_sub(since_ns) < REPEATED_AFTER_NS
                    && !is_final(&error)
                    && !matches!(error, object_store::Error::NotFound { .. }) =>
            {
                attempt += 1;
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// A directory, which must exist.
fn local(url: &Url) -> Result<Clients, Cause> {
    let directory: PathBuf =
        url.to_file_path().map_err(|()| Cause::new("it is not the path of a directory"))?;
    if !directory.is_dir() {
        // Not created: the disk may not be mounted.
        return Err(
            Cause::new("the directory does not exist").with_hint("mount the disk, or create the directory")
        );
    }
    let files = LocalFileSystem::new_with_prefix(&directory).map_err(|error| cause(&error))?;
    Ok((Arc::new(files.with_fsync(true)), None))
}

/// A store in a network.
fn remote(scheme: &str, url: &Url) -> object_store::Result<Clients> {
    let bucket = url.host_str().unwrap_or_default();
    match scheme {
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
            let builder = builder.with_http_connector(ChecksumConnector);
            let key = object_store::gcp::GoogleConfigKey::Client(ClientConfigKey::Timeout);
            let store = Arc::new(builder.with_config(key, REQUEST_TIMEOUT).build()?);
            Ok((store.clone(), Some(store)))
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
            let key = object_store::azure::AzureConfigKey::Client(ClientConfigKey::Timeout);
            let store = Arc::new(builder.with_config(key, REQUEST_TIMEOUT).build()?);
            Ok((store.clone(), Some(store)))
        }
        _ => {
            let is_set = |name: &str| std::env::var_os(name).is_some();
            let mut builder = s3_settings(s3_from_environment().with_bucket_name(bucket), &is_set);
            if !is_set("AWS_ACCESS_KEY_ID") && !is_set("AWS_WEB_IDENTITY_TOKEN_FILE") {
                builder = credentials::from_files(builder);
            }
            let store = Arc::new(builder.build()?);
            Ok((store.clone(), Some(store)))
        }
    }
}

/// Variable that selects the checksum which requests to S3 carry: an algorithm, or `none`.
const CHECKSUM_VARIABLE: &str = "AWS_CHECKSUM_ALGORITHM";

/// Settings of S3 in the environment. The client does not know `none` as a checksum.
fn s3_from_environment() -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let is_known = name.starts_with("AWS_") && (name, value) != (CHECKSUM_VARIABLE, "none");
        if let (true, Ok(key)) = (is_known, name.to_ascii_lowercase().parse()) {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

/// Enters the settings of requests to S3, unless the environment has others.
fn s3_settings(mut builder: AmazonS3Builder, is_set: &dyn Fn(&str) -> bool) -> AmazonS3Builder {
    let client = AmazonS3ConfigKey::Client;
    builder = builder.with_config(client(ClientConfigKey::Timeout), REQUEST_TIMEOUT);
    if builder.get_config_value(&AmazonS3ConfigKey::Checksum).is_none() && !is_set(CHECKSUM_VARIABLE) {
        builder = builder.with_checksum_algorithm(Checksum::CRC64NVME);
    }
    let of = |key| builder.get_config_value(&key);
    let endpoint = of(AmazonS3ConfigKey::S3Endpoint).or_else(|| of(AmazonS3ConfigKey::Endpoint));
    if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder.with_config(client(ClientConfigKey::AllowHttp), "true")
    } else if is_set("AWS_UNSIGNED_PAYLOAD") {
        builder
    } else {
        // TLS protects the data against changes on the way, and the checksum's header is signed.
        builder.with_unsigned_payload(true)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
