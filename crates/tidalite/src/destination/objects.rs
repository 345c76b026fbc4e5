//! Backups in an object store: S3-compatible stores, Google Cloud Storage, Azure.
//!
//! Input: names below a bucket and a prefix. Output: objects, each written completely: in one request, or in parts that
//! become visible together when all exist. No object is renamed or listed before it is complete, so `sync` does
//! nothing.
//!
//! Blocks the caller. Requests run on a separate thread, which keeps connections alive between calls; the cancellation
//! of a waiting caller is checked periodically.

use super::{Destination, PIECE_BYTES};
use crate::{Error, ErrorKind, Result};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig};
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidalite_storage::fs::File;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Size in bytes up to which an object is written in one request. Stores require parts of at least 5 MiB, and equal
/// parts except the last.
const PART_BYTES: u64 = 8 << 20;

/// Largest number of parts; stores accept 10,000.
const PARTS_MAX: u64 = 9_000;

/// Number of concurrent uploads of parts.
const UPLOADS: usize = 4;

/// Bytes that are prefetched from an object that is read in order.
const AHEAD_BYTES: u64 = 8 << 20;

/// Interval between cancellation checks of a waiting caller.
const LOOK: Duration = Duration::from_millis(200);

/// Limits of retries, after which a store counts as unreachable.
const RETRIES: usize = 6;
const RETRY: Duration = Duration::from_secs(60);

/// URL schemes of object stores.
pub(super) const SCHEMES: &[&str] = &["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

#[derive(Clone, Debug)]
pub struct Objects(Arc<Shared>);

struct Shared {
    store: Arc<dyn ObjectStore>,
    /// Prefix of all names.
    prefix: Path,
    url: String,
    /// Taken only when the value is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Opens a store. Credentials and endpoints are taken from the environment variables of the stores' own tools.
pub(super) fn open(url: &str) -> Result<Objects> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, format!("{url} names no bucket")));
    }
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY, ..RetryConfig::default() };
    let store: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        "s3" | "s3a" => AmazonS3Builder::from_env().with_url(url).with_retry(retry).build().map(|s| Arc::new(s) as _),
        "gs" => GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry).build().map(|s| Arc::new(s) as _),
        _ => MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry).build().map(|s| Arc::new(s) as _),
    };
    let store = store.map_err(|e| failed("use", url, e))?;
    let invalid = |e| Error::new(ErrorKind::Invalid, format!("{url} has a path that no object can have: {e}"));
    Objects::new(
        store,
        Path::parse(prefix.trim_end_matches('/')).map_err(invalid)?,
        url.trim_end_matches('/').to_owned(),
    )
}

impl Objects {
    /// Creates a destination.
    ///
    /// # Errors
    /// Fails if the system cannot start a thread.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, url: String) -> Result<Objects> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("objects").enable_all().build();
        let runtime = runtime.map_err(|e| Error::new(ErrorKind::Unavailable, format!("no thread: {e}")))?;
        Ok(Objects(Arc::new(Shared { store, prefix, url, runtime: Some(runtime) })))
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').filter(|part| !part.is_empty()).fold(self.0.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, action: &str, name: &str, error: object_store::Error) -> Error {
        failed(action, &format!("{}/{name}", self.0.url), error)
    }

    /// Waits for requests; an error of `go_on` ends the wait.
    fn wait<T>(&self, work: impl Future<Output = T>, go_on: &mut dyn FnMut() -> Result<()>) -> Result<T> {
        let runtime = self.0.runtime.as_ref().expect("the runtime is there until this is dropped");
        runtime.block_on(async {
            let mut work = pin!(work);
            loop {
                match tokio::time::timeout(LOOK, work.as_mut()).await {
                    Ok(done) => return Ok(done),
                    Err(_) => go_on()?,
                }
            }
        })
    }

    fn wait_for<T>(&self, work: impl Future<Output = object_store::Result<T>>, action: &str, name: &str) -> Result<T> {
        self.wait(work, &mut || Ok(()))?.map_err(|e| self.failed(action, name, e))
    }

    /// Uploads an object in parts.
    fn put_parts(&self, name: &str, len: u64, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        let path = self.path(name);
        let begun = self.wait(self.0.store.put_multipart(&path), &mut || read(&mut []))?;
        let mut upload = begun.map_err(|e| self.failed("write", name, e))?;
        let put = self.put_all(&mut *upload, name, len, read);
        if put.is_err() {
            // Parts without an object cost the user money. The store may have failed, so the wait is short.
            let _ = self.wait(async { tokio::time::timeout(ABORT, upload.abort()).await }, &mut || Ok(()));
        }
        put
    }

    fn put_all(
        &self,
        upload: &mut dyn MultipartUpload,
        name: &str,
        len: u64,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let runtime = self.0.runtime.as_ref().expect("the runtime is there until this is dropped");
        let part_bytes = PART_BYTES.max(len.div_ceil(PARTS_MAX));
        // Dropping it cancels the running uploads.
        let mut uploads = JoinSet::new();
        let mut at = 0;
        while at < len || !uploads.is_empty() {
            if at < len && uploads.len() < UPLOADS {
                let part = part_bytes.min(len - at);
                uploads.spawn_on(upload.put_part(payload(part, read)?), runtime.handle());
                at += part;
                continue;
            }
            if let Some(done) = self.wait(uploads.join_next(), &mut || read(&mut []))? {
                let done = done.map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
                done.map_err(|e| self.failed("write", name, e))?;
            }
        }
        let completed = self.wait(upload.complete(), &mut || read(&mut []))?;
        completed.map(drop).map_err(|e| self.failed("write", name, e))
    }
}

/// Timeout of cancelling an upload.
const ABORT: Duration = Duration::from_secs(10);

/// Returns the next bytes to copy.
fn payload(len: u64, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<PutPayload> {
    let mut bytes = vec![0; len as usize];
    bytes.chunks_mut(PIECE_BYTES).try_for_each(read)?;
    Ok(PutPayload::from(bytes))
}

impl Destination for Objects {
    fn name(&self) -> String {
        self.0.url.clone()
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder);
        let found = self.wait_for(self.0.store.list_with_delimiter(Some(&path)), "list", folder)?;
        let objects = found.objects.into_iter().map(|object| object.location);
        let all = objects.chain(found.common_prefixes);
        let mut names: Vec<String> = all.filter_map(|path| path.filename().map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>> {
        let path = self.path(name);
        let found = self.wait_for(self.0.store.head(&path), "open", name)?;
        Ok(Arc::new(Object { objects: self.clone(), name: name.to_owned(), len: found.size, ahead: Mutex::default() }))
    }

    fn find(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        let path = self.path(name);
        let len = match self.wait(self.0.store.head(&path), &mut || Ok(()))? {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|e| self.failed("open", name, e))?.size,
        };
        Ok(Some(Arc::new(Object { objects: self.clone(), name: name.to_owned(), len, ahead: Mutex::default() })))
    }

    fn is_near(&self) -> bool {
        false
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        let get = async { self.0.store.get(&path).await?.bytes().await };
        Ok(self.wait_for(get, "read", name)?.to_vec())
    }

    fn put(&self, name: &str, len: u64, read: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        if len > PART_BYTES {
            return self.put_parts(name, len, read);
        }
        let payload = payload(len, read)?;
        let put = self.wait(self.0.store.put(&self.path(name), payload), &mut || read(&mut []))?;
        put.map(drop).map_err(|e| self.failed("write", name, e))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name);
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.0.store.put_opts(&path, PutPayload::from(bytes.to_vec()), options);
        match self.wait(put, &mut || Ok(()))? {
            Ok(_) => Ok(()),
            // A response may be lost, in which case its request is repeated.
            Err(object_store::Error::AlreadyExists { .. }) if self.read(name)? == bytes => Ok(()),
            Err(object_store::Error::AlreadyExists { .. }) => {
                let message = format!("{}/{name} is there already, and another one", self.0.url);
                Err(Error::new(ErrorKind::Conflict, message))
            }
            // Backup names contain the microsecond: they are distinct even if a store does not guarantee it.
            Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) => {
                self.put_bytes(name, bytes)
            }
            Err(error) => Err(self.failed("write", name, error)),
        }
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

fn failed(action: &str, url: &str, error: object_store::Error) -> Error {
    let (kind, hint) = match &error {
        object_store::Error::NotFound { .. } => (ErrorKind::NotFound, None),
        object_store::Error::AlreadyExists { .. } => (ErrorKind::Conflict, None),
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            (ErrorKind::Invalid, Some(CREDENTIALS))
        }
        object_store::Error::Generic { source, .. } if source.to_string().contains("169.254.169.254") => {
            (ErrorKind::Invalid, Some(CREDENTIALS))
        }
        _ => (ErrorKind::Unavailable, None),
    };
    let mut out = Error::new(kind, format!("could not {action} {url}: {error}"));
    out.hint = hint.map(str::to_owned);
    out
}

const CREDENTIALS: &str = "credentials come from the environment of the process that makes the backup: \
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and …_KEY";

/// An object that is mostly read in order.
#[derive(Debug)]
struct Object {
    objects: Objects,
    name: String,
    len: u64,
    /// The last fetched bytes, and their position.
    ahead: Mutex<(u64, Vec<u8>)>,
}

impl Object {
    fn fetch(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let path = self.objects.path(&self.name);
        let got = self.objects.wait_for(self.objects.0.store.get_range(&path, from..to), "read", &self.name);
        got.map(|bytes| bytes.to_vec()).map_err(|e| io::Error::other(e.message))
    }
}

impl File for Object {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if offset < ahead.0 || end > ahead.0 + ahead.1.len() as u64 {
            *ahead = (offset, self.fetch(offset, end.max(offset.saturating_add(AHEAD_BYTES)).min(self.len))?);
        }
        let from = (offset - ahead.0) as usize;
        let there = ahead.1.get(from..from + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(there);
        Ok(())
    }

    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
