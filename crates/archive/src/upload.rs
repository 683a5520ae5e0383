//! Copies one file to the store: in one request, or in parts of which several are in flight.
//!
//! The calling thread reads the file and hashes it in order; tasks of the runtime send the parts. A part
//! counts as sent once the store has confirmed a checksum of it ([`crate::part_checks`]). Where a store
//! confirms none, the object is read back.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use keepup_measure::clock::Clock;
use keepup_recording::archived::PartChecks;
use keepup_recording::id::Id;
use md5::Md5;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectMeta, ObjectStoreExt as _, UploadPart};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use crate::claim::check_owner;
use crate::counters::ArchiveCounters;
use crate::download::{Download, download};
use crate::error::{ArchiveError, is_checksum_refused, is_denied};
use crate::google::{Crc32c, Crc32cDigest};
use crate::inventory::{ArchivedFile, INVENTORY_FILE, hex};
use crate::local::LocalFile;
use crate::pace::{POLL, Pace, wait_until};
use crate::part_checks::{checks, is_confirmed, is_part, no_checks, unquoted};
use crate::reading::PartReader;
use crate::receipt::Receipt;
use crate::segment_check::{SegmentCheck, SegmentFault};
use crate::state::{ArchiveState, KnownFile};
use crate::store::{Store, Written, repeat};

/// Attempts to send a file until the store holds what was sent.
const ATTEMPTS: u32 = 3;
/// Most parts of one object (S3).
const PARTS_MAX: u64 = 10_000;

/// Sends files to a store, one after the other.
pub(crate) struct Uploader<'a> {
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) live: &'a ArchiveCounters,
    pub(crate) pace: Pace,
    /// Most parts in flight.
    pub(crate) connections: usize,
    /// Size of a part, bytes.
    pub(crate) part_bytes: u64,
    /// Read every object back, even if the store has confirmed its checksum.
    pub(crate) read_back: bool,
    pub(crate) reader: PartReader,
    /// Whether the archive has an inventory. It is removed before anything else changes.
    pub(crate) has_inventory: bool,
    /// Recording for which a receipt is left with each segment; `None` if none is needed.
    pub(crate) receipts: Option<Id>,
}

/// Content of a file as it was read.
#[derive(Clone, Debug)]
struct Content {
    sha256: [u8; 32],
    /// For a store that returns the CRC32C of the whole object.
    crc32c: Option<Crc32c>,
    /// For a sealed segment: outcome of the check of its blocks.
    check: Option<Result<(), SegmentFault>>,
}

/// A file that the store has.
struct Sent {
    content: Content,
    etag: Option<String>,
    /// Version of the object, in stores with versions.
    version: Option<String>,
    /// Whether the store has confirmed the checksum of every byte.
    is_confirmed: bool,
}

/// A file that was sent and is being completed by the store, which takes seconds for many parts.
pub(crate) struct Completing {
    pub(crate) file: LocalFile,
    content: Content,
    outcome: Outcome,
}

/// How a file was sent.
enum Outcome {
    /// In one request: the answer, and whether its ETag is the MD5.
    Whole(Written, bool),
    /// In these parts, which a task puts together.
    Parts(BTreeMap<usize, (String, PartChecks)>, JoinHandle<object_store::Result<Written>>),
}

/// Destination of the parts of one file.
enum Parts {
    /// An upload that another process can continue.
    Named { uploads: Arc<dyn MultipartStore>, id: String },
    /// One that ends with this process.
    Own(Box<dyn MultipartUpload>),
}

/// A part that a task has sent.
type PartDone = (usize, u64, object_store::Result<(String, PartChecks)>);

/// Parts of a file in flight.
struct Flight {
    tasks: BTreeMap<usize, JoinHandle<()>>,
    to: Sender<PartDone>,
    from: Receiver<PartDone>,
    /// Parts that the store has.
    done: BTreeMap<usize, (String, PartChecks)>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

impl Uploader<'_> {
    /// Sends a file and makes sure that the store holds its bytes; enters it in the state.
    pub(crate) fn archive(&mut self, file: &LocalFile, state: &mut ArchiveState) -> Result<(), ArchiveError> {
        let sent = self.send(file, state)?;
        self.finish(sent, state)
    }

    /// Waits until the store has completed a file, and makes sure that it holds the file's bytes. Enters it
    /// in the state; otherwise, sends it again.
    pub(crate) fn finish(
        &mut self,
        completing: Completing,
        state: &mut ArchiveState,
    ) -> Result<(), ArchiveError> {
        let file = completing.file.clone();
        let (mut next, mut attempt) = (completing, 1);
        loop {
            let content = next.content.clone();
            let (sent, refused) = match self.complete(next) {
                Ok(sent) => (sent, None),
                // An interrupted copy may have completed the upload: the object decides.
                Err(SendError::Gone(error)) => {
                    (Sent { content, etag: None, version: None, is_confirmed: false }, Some(error))
                }
                Err(SendError::Other(error)) => return Err(error),
            };
            let Some(what) = self.enter(&file, sent, state)? else { return Ok(()) };
            let object = format!("{}/{}", self.store.location, file.archive_path);
            let error = refused.unwrap_or(ArchiveError::Mismatch { doing: "archive", object, what });
            if attempt == ATTEMPTS {
                return Err(error);
            }
            self.live.subtract_done(file.bytes);
            self.live.warn(format!("{error}; sending it again"));
            attempt += 1;
            state.forget_upload(&file.archive_path)?;
            next = self.send(&file, state)?;
        }
    }

    /// Enters a file in the state if the store holds its bytes; returns the difference otherwise.
    fn enter(
        &self,
        file: &LocalFile,
        sent: Sent,
        state: &mut ArchiveState,
    ) -> Result<Option<String>, ArchiveError> {
        file.check_unchanged()?;
        let archived = ArchivedFile {
            path: file.archive_path.clone(),
            bytes: file.bytes,
            sha256: hex(&sent.content.sha256),
            modified_unix_ns: file.modified_unix_ns,
        };
        let found = match self.compare(&archived, sent.is_confirmed)? {
            Ok(found) => found,
            Err(difference) => return Ok(Some(difference)),
        };
        if let (Some(sent), Some(found)) = (&sent.version, &found.version)
            && sent != found
        {
            return Ok(Some("it was replaced while it was archived".to_owned()));
        }
        if let Some(Err(fault)) = &sent.content.check {
            let SegmentFault { offset, what } = fault;
            let path = file.path.display();
            self.live.warn(format!("{path}: damaged at offset {offset}: {what}; archived as it is"));
        }
        let intact = sent.content.check.as_ref().map(Result::is_ok);
        // Google's answer to a completion may name another ETag than its answers about the object.
        let etag = if self.store.has_crc32c { found.e_tag.or(sent.etag) } else { sent.etag.or(found.e_tag) };
        let known = KnownFile { file: archived, etag, intact };
        if let (Some(recording), true) = (self.receipts, file.check.is_some()) {
            // Both before the entry in the state, which allows the removal of the segment. A recording that
            // has taken the place may have replaced the object.
            check_owner(self.store, recording)?;
            Receipt::of(recording, &known).write(self.store)?;
        }
        state.add_file(known)?;
        Ok(None)
    }

    /// Removes the inventory before the archive changes.
    pub(crate) fn reopen(&mut self) -> Result<(), ArchiveError> {
        if self.has_inventory {
            self.store.delete(INVENTORY_FILE)?;
            self.has_inventory = false;
        }
        Ok(())
    }

    /// Compares what the store holds with what was sent: the object, or the difference. A file
    /// that the store has not confirmed is read back.
    pub(crate) fn compare(
        &self,
        archived: &ArchivedFile,
        is_confirmed: bool,
    ) -> Result<Result<ObjectMeta, String>, ArchiveError> {
        let Some(meta) = self.store.head(&archived.path)? else {
            return Ok(Err("the object does not exist".to_owned()));
        };
        if meta.size != archived.bytes {
            return Ok(Err(format!("it has {} bytes instead of {}", meta.size, archived.bytes)));
        }
        if is_confirmed && !self.read_back {
            return Ok(Ok(meta));
        }
        let mut sha256 = Sha256::new();
        let plan = Download {
            store: self.store,
            clock: self.clock,
            stop: self.stop,
            connections: self.connections,
            part_bytes: self.part_bytes,
        };
        download(&plan, &archived.path, archived.bytes, &mut Pace::new(None, 0), &mut |part| {
            sha256.update(part);
            self.live.read_back_bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
            Ok(())
        })?;
        let found = hex(&sha256.finalize());
        if found != archived.sha256 {
            return Ok(Err(format!("SHA-256 is {found} instead of {}", archived.sha256)));
        }
        Ok(Ok(meta))
    }

    /// Sends a file, and lets the store complete it.
    pub(crate) fn send(
        &mut self,
        file: &LocalFile,
        state: &mut ArchiveState,
    ) -> Result<Completing, ArchiveError> {
        self.reopen()?;
        let part_bytes = self.part_bytes.max(file.bytes.div_ceil(PARTS_MAX).next_multiple_of(1 << 20));
        if file.bytes <= part_bytes {
            return self.send_whole(file);
        }
        loop {
            let upload = state.upload(&file.archive_path);
            let is_resumed = upload.is_some_and(|upload| upload.is_of(file, part_bytes));
            match self.send_parts(file, part_bytes, state) {
                // The store has discarded the upload.
                Err(SendError::Gone(_)) if is_resumed => {
                    state.forget_upload(&file.archive_path)?;
                    self.live.warn(format!("{}: the upload is started again", file.archive_path));
                }
                Err(SendError::Gone(error) | SendError::Other(error)) => return Err(error),
                Ok(sent) => return Ok(sent),
            }
        }
    }

    /// Sends a small file in one request.
    fn send_whole(&mut self, file: &LocalFile) -> Result<Completing, ArchiveError> {
        let mut bytes = Vec::new();
        if file.bytes > 0 {
            self.reader.begin(&file.path, file.bytes)?;
            bytes = self.reader.next(file.bytes as usize)?;
        }
        self.wait_for_pace(file.bytes)?;
        let mut check = file.check.clone();
        check.iter_mut().for_each(|check| check.update(&bytes));
        let (sha256, md5) = (Sha256::digest(&bytes).into(), hex(&Md5::digest(&bytes)));
        let content = Content { sha256, crc32c: None, check: check.map(SegmentCheck::finish) };
        let written = self.store.put(&file.archive_path, bytes.into())?;
        self.live.add_done(file.bytes);
        let is_confirmed = written.etag.as_deref().is_some_and(|etag| unquoted(etag) == md5);
        Ok(Completing { file: file.clone(), content, outcome: Outcome::Whole(written, is_confirmed) })
    }

    fn send_parts(
        &mut self,
        file: &LocalFile,
        part_bytes: u64,
        state: &mut ArchiveState,
    ) -> Result<Completing, SendError> {
        let object = self.store.object(&file.archive_path);
        let mut parts = self.open_parts(file, &object, part_bytes, state)?;
        let (to, from) = channel();
        let upload = state.upload(&file.archive_path);
        let done = upload.map(|upload| upload.parts.clone()).unwrap_or_default();
        let mut flight = Flight { tasks: BTreeMap::new(), to, from, done };
        let (mut sha256, mut check) = (Sha256::new(), file.check.clone());
        let mut crc32c = self.store.has_crc32c.then(Crc32cDigest::new);
        self.reader.begin(&file.path, file.bytes)?;
        let count = file.bytes.div_ceil(part_bytes) as usize;
        for index in 0..count {
            let bytes = part_bytes.min(file.bytes - index as u64 * part_bytes);
            let part = self.reader.next(bytes as usize)?;
            sha256.update(&part);
            crc32c.iter_mut().for_each(|crc32c| crc32c.update(&part));
            check.iter_mut().for_each(|check| check.update(&part));
            if let Some((_, checks)) = flight.done.get(&index) {
                if is_part(checks, &part) {
                    self.live.add_known(bytes);
                    continue;
                }
                // It was read otherwise when it was sent.
                flight.done.remove(&index);
            }
            self.wait_for_pace(bytes)?;
            while flight.tasks.len() >= self.connections {
                self.take_part(&mut flight, file, state)?;
            }
            self.spawn(&mut parts, &object, index, part.into(), &mut flight);
        }
        while !flight.tasks.is_empty() {
            self.take_part(&mut flight, file, state)?;
        }
        let done = std::mem::take(&mut flight.done);
        let task = self.spawn_completion(parts, object, &done);
        let crc32c = crc32c.map(|crc32c| crc32c.finish());
        let content =
            Content { sha256: sha256.finalize().into(), crc32c, check: check.map(SegmentCheck::finish) };
        Ok(Completing { file: file.clone(), content, outcome: Outcome::Parts(done, task) })
    }

    /// Continues the upload of the state if it is of this file, else begins another.
    fn open_parts(
        &self,
        file: &LocalFile,
        object: &ObjectPath,
        part_bytes: u64,
        state: &mut ArchiveState,
    ) -> Result<Parts, ArchiveError> {
        let fault = || self.store.fault("write", &file.archive_path);
        let Some(uploads) = self.store.uploads.clone() else {
            let own =
                self.store.runtime.block_on(self.store.objects.put_multipart(object)).map_err(fault())?;
            return Ok(Parts::Own(own));
        };
        match state.upload(&file.archive_path) {
            Some(upload) if upload.is_of(file, part_bytes) => {
                let id = upload.id.clone();
                return Ok(Parts::Named { uploads, id });
            }
            Some(_) => self.discard_upload(&file.archive_path, state)?,
            None => {}
        }
        let begun = self.store.runtime.block_on(repeat(|| uploads.create_multipart(object)));
        let id = begun.map_err(fault())?;
        state.begin_upload(file, id.clone(), part_bytes)?;
        Ok(Parts::Named { uploads, id })
    }

    /// Discards an interrupted upload.
    pub(crate) fn discard_upload(&self, path: &str, state: &mut ArchiveState) -> Result<(), ArchiveError> {
        if let (Some(uploads), Some(old)) = (&self.store.uploads, state.upload(path)) {
            // If it fails, the bucket's rule for incomplete uploads removes the parts.
            let _ = self.store.runtime.block_on(uploads.abort_multipart(&self.store.object(path), &old.id));
        }
        state.forget_upload(path)
    }

    /// Starts to send a part.
    fn spawn(&self, parts: &mut Parts, object: &ObjectPath, index: usize, part: Bytes, flight: &mut Flight) {
        let (to, bytes) = (flight.to.clone(), part.len() as u64);
        let task = match parts {
            Parts::Named { uploads, id } => {
                let (uploads, id, object) = (Arc::clone(uploads), id.clone(), object.clone());
                self.store.runtime.spawn(async move {
                    let put = || uploads.put_part(&object, &id, index, part.clone().into());
                    let sent = repeat(put).await.map(|sent| {
                        let checks = checks(&sent.content_id, index, &part);
                        (sent.content_id, checks)
                    });
                    let _ = to.send((index, bytes, sent));
                })
            }
            Parts::Own(own) => {
                let sending: UploadPart = own.put_part(part.into());
                let checks = no_checks();
                self.store.runtime.spawn(async move {
                    let sent = sending.await.map(|()| (String::new(), checks));
                    let _ = to.send((index, bytes, sent));
                })
            }
        };
        flight.tasks.insert(index, task);
    }

    /// Waits until a part was sent, and enters it.
    fn take_part(
        &self,
        flight: &mut Flight,
        file: &LocalFile,
        state: &mut ArchiveState,
    ) -> Result<(), SendError> {
        let (index, bytes, sent) = loop {
            if self.stop.load(Ordering::Acquire) {
                return Err(ArchiveError::Stopped.into());
            }
            match flight.from.recv_timeout(POLL) {
                Ok(done) => break done,
                Err(_) if flight.tasks.values().all(|task| task.is_finished()) => {
                    // One that ended between the two looks has sent its outcome.
                    let lost =
                        || ArchiveError::Threads { source: std::io::Error::other("a transfer panicked") };
                    break flight.from.try_recv().map_err(|_| lost())?;
                }
                Err(_) => {}
            }
        };
        flight.tasks.remove(&index);
        let (content, checks) = sent.map_err(|error| self.part_error(file, error))?;
        self.live.add_done(bytes);
        if self.store.uploads.is_some() {
            state.add_part(&file.archive_path, index, content.clone(), checks.clone())?;
        }
        flight.done.insert(index, (content, checks));
        Ok(())
    }

    /// Lets the store put the parts of a file together.
    fn spawn_completion(
        &self,
        parts: Parts,
        object: ObjectPath,
        done: &BTreeMap<usize, (String, PartChecks)>,
    ) -> JoinHandle<object_store::Result<Written>> {
        let ids: Vec<PartId> =
            done.values().map(|(content, _)| PartId { content_id: content.clone() }).collect();
        self.store.runtime.spawn(async move {
            let completed = match parts {
                Parts::Own(mut own) => own.complete().await,
                Parts::Named { uploads, id } => {
                    repeat(|| uploads.complete_multipart(&object, &id, ids.clone())).await
                }
            };
            completed.map(Written::from)
        })
    }

    /// Waits until the store has completed a file.
    fn complete(&self, completing: Completing) -> Result<Sent, SendError> {
        let Completing { file, content, outcome } = completing;
        let (done, task) = match outcome {
            Outcome::Whole(Written { etag, version, .. }, is_confirmed) => {
                return Ok(Sent { content, etag, version, is_confirmed });
            }
            Outcome::Parts(done, task) => (done, task),
        };
        let completed = self.store.runtime.block_on(task).unwrap_or_else(|error| Err(error.into()));
        let written = completed.map_err(|error| self.completion_error(&file, error))?;
        let Written { etag, version, crc32c } = written;
        let is_whole_equal = crc32c.filter(|_| self.store.has_crc32c).map(|crc| Some(crc) == content.crc32c);
        let is_confirmed = is_confirmed(&done, etag.as_deref(), is_whole_equal);
        Ok(Sent { content, etag, version, is_confirmed })
    }

    fn part_error(&self, file: &LocalFile, error: object_store::Error) -> SendError {
        let text = error.to_string();
        // An upload keeps the checksum with which it was begun; another one may have been chosen since.
        let is_gone = matches!(error, object_store::Error::NotFound { .. })
            || ["NoSuchUpload", "InvalidPart"].iter().any(|code| text.contains(code))
            || is_checksum_refused(&text);
        let error = self.store.fault("write", &file.archive_path)(error);
        if is_gone { SendError::Gone(error) } else { SendError::Other(error) }
    }

    /// Error of a completion. S3 reports some failures, such as an unknown upload, in the body of a success.
    fn completion_error(&self, file: &LocalFile, error: object_store::Error) -> SendError {
        let (text, is_denied) = (error.to_string(), is_denied(&error));
        let is_unanswered =
            ["status code: 5", "error sending request"].iter().any(|part| text.contains(part));
        match self.part_error(file, error) {
            SendError::Other(error) if !is_unanswered && !is_denied => SendError::Gone(error),
            error => error,
        }
    }

    /// Waits until the next `bytes` may be sent.
    fn wait_for_pace(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        let until_ns = self.pace.before(bytes, self.clock.now_ns());
        wait_until(self.clock, until_ns, self.stop)
    }
}

/// Why a file was not sent.
enum SendError {
    /// The store does not know the upload, or lacks a part of it.
    Gone(ArchiveError),
    /// Anything else.
    Other(ArchiveError),
}

impl From<ArchiveError> for SendError {
    fn from(error: ArchiveError) -> Self {
        Self::Other(error)
    }
}
