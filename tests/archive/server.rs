//! A server of S3 in this process, on a directory, that fails on command.
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use keepup_testkit::{Program, Run};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Error};
use s3s_fs::FileSystem;

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// This status with this code, before the body is read.
    Status(u16, &'static str),
    /// The connection is closed after part of the body.
    Cut,
    /// A byte of the body is changed on the way.
    Corrupt,
    /// The answer to a request for a range has many more bytes.
    Endless,
}

/// Requests that fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Text in the method and address of the request.
    pub(super) part: &'static str,
    pub(super) fault: Fault,
    /// Matching requests that pass first.
    pub(super) pass: usize,
    /// Requests that fail after those.
    pub(super) times: usize,
}

#[derive(Debug, Default)]
struct Shared {
    rules: Vec<Rule>,
    /// Method and address of every request.
    requests: Vec<String>,
    /// Bytes of [`Fault::Endless`] that were taken from the server.
    endless_bytes: u64,
}

/// The server. It ends with the process.
pub(super) struct Server {
    address: SocketAddr,
    root: PathBuf,
    shared: Arc<Mutex<Shared>>,
}

impl Server {
    /// Starts a server with the empty bucket `bucket`, whose objects are files below `root`.
    pub(super) fn start(root: &Path) -> Self {
        std::fs::create_dir_all(root.join("bucket")).unwrap();
        let mut builder = S3ServiceBuilder::new(FileSystem::new(root).unwrap());
        builder.set_auth(SimpleAuth::from_single("key", "secret"));
        let service = Arc::new(builder.build());
        let shared = Arc::new(Mutex::new(Shared::default()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let for_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, service, for_thread));
        });
        Self { address, root: root.to_path_buf(), shared }
    }

    /// Lets requests fail, instead of the rules before.
    pub(super) fn fail(&self, rules: &[Rule]) {
        self.shared.lock().unwrap().rules = rules.to_vec();
    }

    /// Bytes that clients took of bodies without an end.
    pub(super) fn endless_bytes(&self) -> u64 {
        self.shared.lock().unwrap().endless_bytes
    }

    /// Requests since the last call that have this text in their method and address.
    pub(super) fn requests(&self, part: &str) -> Vec<String> {
        let mut found = std::mem::take(&mut self.shared.lock().unwrap().requests);
        found.retain(|request| request.contains(part));
        found
    }

    /// Number of requests with this text, without forgetting them.
    pub(super) fn count(&self, part: &str) -> usize {
        let shared = self.shared.lock().unwrap();
        shared.requests.iter().filter(|request| request.contains(part)).count()
    }

    /// File of an object.
    pub(super) fn object(&self, path: &str) -> PathBuf {
        self.root.join("bucket").join(path)
    }

    /// Starts keepup with the address and credentials of this server.
    pub(super) fn start_keepup(&self, here: &Path, arguments: &[&str]) -> Program {
        self.start_keepup_with(here, &[], arguments)
    }

    /// Starts keepup with more settings, as `NAME=VALUE`.
    fn start_keepup_with(&self, here: &Path, more: &[&str], arguments: &[&str]) -> Program {
        let endpoint = format!("AWS_ENDPOINT_URL=http://{}", self.address);
        let settings = ["AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=us-east-1"];
        let mut all = vec!["-u", "HTTP_PROXY", "-u", "http_proxy", "-u", "ALL_PROXY", &endpoint];
        all.extend(settings);
        all.extend(more);
        all.push(env!("CARGO_BIN_EXE_keepup"));
        all.extend(arguments);
        Program::start("env", &all, here)
    }

    /// Runs keepup with the address and credentials of this server.
    pub(super) fn keepup(&self, here: &Path, arguments: &[&str]) -> Run {
        self.start_keepup(here, arguments).wait()
    }

    /// Runs keepup with more settings, as `NAME=VALUE`.
    pub(super) fn keepup_with(&self, here: &Path, more: &[&str], arguments: &[&str]) -> Run {
        self.start_keepup_with(here, more, arguments).wait()
    }
}

async fn serve(listener: std::net::TcpListener, service: Arc<S3Service>, shared: Arc<Mutex<Shared>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((socket, _)) = listener.accept().await {
        let (service, shared) = (Arc::clone(&service), Arc::clone(&shared));
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&service, &shared, request));
            // A connection that the client or a fault closes is no failure of the server.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), answer)
                .await;
        });
    }
}

/// First rule for this request, which is counted.
fn fault_of(shared: &Mutex<Shared>, request: &str) -> Option<Fault> {
    let mut shared = shared.lock().unwrap();
    shared.requests.push(request.to_owned());
    for rule in shared.rules.iter_mut().filter(|rule| request.contains(rule.part)) {
        if rule.pass > 0 {
            rule.pass -= 1;
        } else if rule.times > 0 {
            rule.times -= 1;
            return Some(rule.fault);
        }
    }
    None
}

async fn answer(
    service: &S3Service,
    shared: &Arc<Mutex<Shared>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let line = format!("{} {}", request.method(), request.uri());
    match fault_of(shared, &line) {
        None => Ok(service.call(request.map(Body::from)).await.unwrap_or_else(internal)),
        Some(Fault::Status(status, code)) => {
            let xml = format!("<Error><Code>{code}</Code><Message>on command</Message></Error>");
            Ok(Response::builder().status(status).body(Body::from(xml)).unwrap_or_default())
        }
        Some(Fault::Cut) => {
            let (_, mut body) = request.into_parts();
            let _ = next_frame(&mut body).await;
            Err("cut on command".into())
        }
        Some(Fault::Endless) => Ok(endless(shared, &request)),
        Some(Fault::Corrupt) => {
            let (head, mut body) = request.into_parts();
            let mut bytes = Vec::new();
            while let Some(frame) = next_frame(&mut body).await {
                bytes.extend_from_slice(&frame);
            }
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            let request = Request::from_parts(head, Body::from(bytes));
            Ok(service.call(request).await.unwrap_or_else(internal))
        }
    }
}

/// Answers a request for a range with the headers that it expects, and a body of a GiB.
fn endless(shared: &Arc<Mutex<Shared>>, request: &Request<Incoming>) -> Response<Body> {
    let range = request.headers()["range"].to_str().unwrap().trim_start_matches("bytes=").to_owned();
    let body = Body::http_body(EndlessBody { shared: Arc::clone(shared), pieces: 1024 });
    let answer = Response::builder().status(206).header("etag", "\"x\"").header("content-length", 1024 << 20);
    let answer = answer.header("last-modified", "Thu, 26 Nov 2026 00:00:00 GMT");
    answer.header("content-range", format!("bytes {range}/99999999999")).body(body).unwrap()
}

/// Body of a number of pieces of a MiB.
struct EndlessBody {
    shared: Arc<Mutex<Shared>>,
    pieces: u32,
}

impl hyper::body::Body for EndlessBody {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.pieces == 0 {
            return Poll::Ready(None);
        }
        self.pieces -= 1;
        self.shared.lock().unwrap().endless_bytes += 1 << 20;
        Poll::Ready(Some(Ok(Frame::data(vec![0; 1 << 20].into()))))
    }
}

fn internal(error: S3Error) -> Response<Body> {
    Response::builder().status(500).body(Body::from(error.to_string())).unwrap_or_default()
}

/// Next piece of a body.
async fn next_frame(body: &mut Incoming) -> Option<Vec<u8>> {
    use hyper::body::Body as _;
    let mut body = std::pin::Pin::new(body);
    loop {
        let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await?;
        if let Ok(data) = frame.ok()?.into_data() {
            return Some(data.to_vec());
        }
    }
}
