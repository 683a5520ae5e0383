//! Checksums of Google Cloud Storage, which its client library neither sends nor returns.
//!
//! Google compares the CRC32C in the header `x-goog-hash` of a request with the data that it received, and
//! returns the CRC32C of the whole object when a multipart upload is completed. The ETag of such an object
//! says nothing about its content. Both are done here, around the library's HTTP client.
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm::Crc32Iscsi;
use crc_fast::Digest;
use http_body::Body as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpRequestBody, HttpResponse, HttpService,
    ReqwestConnector,
};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};

/// Header with checksums of the data, in requests and answers.
const HASH_HEADER: &str = "x-goog-hash";

/// The CRC32C that a store returned; in the extensions of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crc32c(pub(crate) u32);

/// CRC32C of data that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Crc32cDigest(Digest);

impl Crc32cDigest {
    pub(crate) fn new() -> Self {
        Self(Digest::new(Crc32Iscsi))
    }

    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(crate) fn finish(&self) -> Crc32c {
        Crc32c(self.0.finalize() as u32)
    }
}

/// Connections that add checksums to uploads, and take those of the answers.
#[derive(Debug)]
pub(crate) struct ChecksumConnector;

impl HttpConnector for ChecksumConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(ChecksumService { client }))
    }
}

#[derive(Debug)]
struct ChecksumService {
    client: HttpClient,
}

/// The future of [`HttpService::call`].
type Call<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for ChecksumService {
    fn call<'a, 'b>(&'a self, mut request: HttpRequest) -> Call<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            if request.method() == Method::PUT
                && let Some(value) = crc32c_of(request.body()).and_then(header_value)
            {
                request.headers_mut().insert(HASH_HEADER, value);
            }
            let mut answer = self.client.execute(request).await?;
            if let Some(crc32c) = returned(answer.headers()) {
                answer.extensions_mut().insert(crc32c);
            }
            Ok(answer)
        })
    }
}

/// CRC32C of the body of a request; `None` if it is not in memory.
fn crc32c_of(body: &HttpRequestBody) -> Option<Crc32c> {
    let mut digest = Crc32cDigest::new();
    // A copy of the references to the data, not of the data.
    let mut body = pin!(body.clone());
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match body.as_mut().poll_frame(&mut context) {
            Poll::Ready(None) => return Some(digest.finish()),
            Poll::Ready(Some(Ok(frame))) => digest.update(frame.data_ref()?),
            Poll::Ready(Some(Err(_))) | Poll::Pending => return None,
        }
    }
}

/// The header of a request with this checksum.
fn header_value(Crc32c(crc): Crc32c) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("crc32c={}", STANDARD.encode(crc.to_be_bytes()))).ok()
}

/// The CRC32C in the headers of an answer: one header with a list, or several headers.
fn returned(headers: &HeaderMap) -> Option<Crc32c> {
    let values = headers.get_all(HASH_HEADER).iter().filter_map(|value| value.to_str().ok());
    let text =
        values.flat_map(|value| value.split(',')).find_map(|hash| hash.trim().strip_prefix("crc32c="))?;
    let bytes: [u8; 4] = STANDARD.decode(text).ok()?.try_into().ok()?;
    Some(Crc32c(u32::from_be_bytes(bytes)))
}

#[cfg(test)]
#[path = "google_tests.rs"]
mod tests;
