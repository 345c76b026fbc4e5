//! Requests with an `Idempotency-Key` are done once: a client that lost the answer sends the same request again, and is
//! told what came of the first.
//!
//! In: the key of a request whose body has come, and what it is ([`claimed`]). Out: the right to do it, or the answer
//! of the request that had the key before; while that one is at work, its end is waited for. What was refused is
//! forgotten: the same request may succeed later.
//!
//! Always: work under a key goes on when its client goes away ([`done_once`]), so that the answer is there for the next
//! try. Keys are remembered in memory, for a time and up to a number: not over a restart.

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use ring::digest::{Context, SHA256};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidalite::{Error, ErrorKind, Result};
use tokio::sync::watch;

/// How long an answer is remembered: much longer than clients try.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Answers remembered at most; the oldest are forgotten first. A few hundred bytes each.
const KEYS_MAX: usize = 65_536;
const KEY_BYTES_MAX: usize = 128;
const HEADER: &str = "idempotency-key";

/// The right to do a request, or what its key was answered before; neither for one without a key.
///
/// # Errors
/// The key is malformed, or belongs to a different request.
pub async fn claimed(once: &Arc<Once>, headers: &HeaderMap, request: Fingerprint) -> Result<Option<Claimed>, KeyError> {
    match (key(headers).map_err(KeyError::Malformed)?, request.0) {
        (Some(key), Some(request)) => once.claim(&key, request.finish().as_ref()).await.map(Some),
        _ => Ok(None),
    }
}

/// SHA-256 digest that distinguishes requests with the same idempotency key; covers target and body.
pub struct Fingerprint(Option<Context>);

impl Fingerprint {
    /// Starts the fingerprint of a request to `target`; requests without a key have an empty one.
    #[must_use]
    pub fn new(headers: &HeaderMap, target: &str) -> Fingerprint {
        let mut fingerprint = Fingerprint(headers.contains_key(HEADER).then(|| Context::new(&SHA256)));
        fingerprint.add(target);
        fingerprint
    }

    /// Adds a part whose end counts: `("ab", "c")` is not `("a", "bc")`.
    pub fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.piece(&(part.len() as u64).to_le_bytes());
        self.piece(part);
    }

    /// Adds the next piece of the body, which may come in any pieces.
    pub fn piece(&mut self, piece: &[u8]) {
        if let Some(context) = &mut self.0 {
            context.update(piece);
        }
    }
}

/// The reason why a key is refused.
#[derive(Debug)]
pub enum KeyError {
    Malformed(Error),
    /// The key belongs to a different request; the new request had no effect.
    Reused(Error),
}

impl KeyError {
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            KeyError::Malformed(_) => StatusCode::BAD_REQUEST,
            KeyError::Reused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    #[must_use]
    pub fn into_error(self) -> Error {
        match self {
            KeyError::Malformed(error) | KeyError::Reused(error) => error,
        }
    }
}

/// What a request was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub body: Bytes,
}

#[derive(Debug, Default)]
pub struct Once(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    keys: HashMap<String, Entry>,
    /// Keys that were answered, and when.
    answered: VecDeque<(Instant, String)>,
}

#[derive(Debug)]
struct Entry {
    /// The digest of the request, so that a key is not used for another.
    request: Box<[u8]>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Closed when the work has ended.
    Running(watch::Receiver<()>),
    Answered(Answer),
}

/// The right to do what a key stands for. Dropped without an answer the key is free again.
#[derive(Debug)]
pub struct Claim {
    once: Arc<Once>,
    key: String,
    _running: watch::Sender<()>,
}

#[derive(Debug)]
pub enum Claimed {
    First(Claim),
    Before(Answer),
}

/// The key of a request, if it has one.
///
/// # Errors
/// When it is none.
fn key(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let key = value.as_bytes();
    if !(1..=KEY_BYTES_MAX).contains(&key.len()) || !key.iter().all(u8::is_ascii_graphic) {
        let message = format!("header Idempotency-Key is not 1 to {KEY_BYTES_MAX} visible ASCII characters");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(Some(String::from_utf8_lossy(key).into_owned()))
}

impl Once {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `request` tells two requests apart.
    ///
    /// # Errors
    /// When the key stands for another request.
    async fn claim(self: &Arc<Self>, key: &str, request: &[u8]) -> Result<Claimed, KeyError> {
        loop {
            let mut running = {
                let mut known = self.known();
                known.forget(Instant::now());
                match known.keys.get(key) {
                    Some(entry) if *entry.request != *request => {
                        let message = format!("Idempotency-Key \"{key}\" was used for another request");
                        return Err(KeyError::Reused(Error::new(ErrorKind::Invalid, message)));
                    }
                    Some(Entry { state: State::Answered(answer), .. }) => return Ok(Claimed::Before(answer.clone())),
                    Some(Entry { state: State::Running(running), .. }) => running.clone(),
                    None => {
                        let (sender, receiver) = watch::channel(());
                        let entry = Entry { request: request.into(), state: State::Running(receiver) };
                        known.keys.insert(key.to_owned(), entry);
                        return Ok(Claimed::First(Claim { once: self.clone(), key: key.to_owned(), _running: sender }));
                    }
                }
            };
            // Nothing is ever sent: the other end is dropped.
            let _ = running.changed().await;
        }
    }
}

impl Known {
    fn forget(&mut self, now: Instant) {
        while let Some((at, key)) = self.answered.front()
            && (self.answered.len() > KEYS_MAX || now.duration_since(*at) > REMEMBERED)
        {
            self.keys.remove(key);
            self.answered.pop_front();
        }
    }
}

impl Claim {
    fn answered(&self, answer: Answer) {
        let mut known = self.once.known();
        if let Some(entry) = known.keys.get_mut(&self.key) {
            entry.state = State::Answered(answer);
            known.answered.push_back((Instant::now(), self.key.clone()));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut known = self.once.known();
        if known.keys.get(&self.key).is_some_and(|entry| matches!(entry.state, State::Running(_))) {
            known.keys.remove(&self.key);
        }
    }
}

/// Does the work and remembers what `answer` makes of it, if anything; with a claim to its end, whether or not anybody
/// waits for it.
///
/// # Errors
/// What the work fails with.
pub async fn done_once<T: Send + 'static>(
    claim: Option<Claim>,
    work: impl Future<Output = Result<T>> + Send + 'static,
    answer: impl FnOnce(&T) -> Option<Answer> + Send + 'static,
) -> Result<T> {
    let Some(claim) = claim else { return work.await };
    let working = tokio::spawn(async move {
        let done = work.await?;
        if let Some(answer) = answer(&done) {
            claim.answered(answer);
        }
        Ok(done)
    });
    working.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the request panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use hyper::header::HeaderValue;

    fn answer(body: &'static str) -> Answer {
        Answer { status: StatusCode::OK, content_type: "text/plain", body: Bytes::from_static(body.as_bytes()) }
    }

    async fn first(once: &Arc<Once>, key: &str) -> Claim {
        match once.claim(key, b"r").await.unwrap() {
            Claimed::First(claim) => claim,
            Claimed::Before(answer) => panic!("{answer:?}"),
        }
    }

    async fn before(once: &Arc<Once>, key: &str) -> Answer {
        match once.claim(key, b"r").await.unwrap() {
            Claimed::Before(answer) => answer,
            Claimed::First(_) => panic!("it was forgotten"),
        }
    }

    #[tokio::test]
    async fn the_second_is_told_what_came_of_the_first() {
        let once = Arc::new(Once::default());
        let claim = first(&once, "a").await;
        let done = done_once(Some(claim), async { Ok(7) }, |_| Some(answer("seven"))).await;
        assert_eq!(done.unwrap(), 7);
        assert_eq!(before(&once, "a").await, answer("seven"));
        let refused = once.claim("a", b"another").await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.into_error().message, "Idempotency-Key \"a\" was used for another request");
        drop(first(&once, "b").await);
    }

    #[tokio::test]
    async fn what_was_refused_may_be_tried_again() {
        let once = Arc::new(Once::default());
        let claim = first(&once, "a").await;
        let work = async { Err::<(), _>(Error::new(ErrorKind::Unavailable, "not now")) };
        assert!(done_once(Some(claim), work, |()| Some(answer("done"))).await.is_err());
        // A query is not remembered either.
        let claim = first(&once, "a").await;
        done_once(Some(claim), async { Ok(()) }, |()| None).await.unwrap();
        drop(first(&once, "a").await);
        assert!(once.known().keys.is_empty());
    }

    #[tokio::test]
    async fn the_second_waits_for_the_first_even_when_its_client_is_gone() {
        let once = Arc::new(Once::default());
        let claim = first(&once, "a").await;
        let (go, waits) = tokio::sync::oneshot::channel();
        let work = async move { waits.await.map_err(|_| Error::new(ErrorKind::Internal, "gone")) };
        let mut abandoned = Box::pin(done_once(Some(claim), work, |()| Some(answer("done"))));
        assert!((&mut abandoned).now_or_never().is_none());
        drop(abandoned);
        let mut second = Box::pin(before(&once, "a"));
        assert!((&mut second).now_or_never().is_none());
        go.send(()).unwrap();
        assert_eq!(second.await, answer("done"));
    }

    #[tokio::test]
    async fn answers_are_forgotten_after_a_time_and_a_number() {
        let once = Arc::new(Once::default());
        first(&once, "a").await.answered(answer("done"));
        let now = Instant::now();
        once.known().forget(now + REMEMBERED / 2);
        assert_eq!(once.known().keys.len(), 1);
        once.known().forget(now + REMEMBERED + Duration::from_secs(1));
        assert!(once.known().keys.is_empty());
        for i in 0..=KEYS_MAX {
            first(&once, &format!("k{i}")).await.answered(answer("done"));
        }
        drop(first(&once, "k0").await);
        assert_eq!(before(&once, "k1").await, answer("done"));
        assert!(once.known().keys.len() <= KEYS_MAX && once.known().answered.len() <= KEYS_MAX);
    }

    #[test]
    fn fingerprints_tell_bodies_and_the_borders_of_parts_apart() {
        let headers = HeaderMap::from_iter([(HEADER.parse().unwrap(), HeaderValue::from_static("k"))]);
        let digest = |target: &str, pieces: &[&[u8]]| {
            let mut fingerprint = Fingerprint::new(&headers, target);
            pieces.iter().for_each(|piece| fingerprint.piece(piece));
            fingerprint.0.unwrap().finish().as_ref().to_vec()
        };
        assert_eq!(digest("/write", &[b"a v=1", b"2"]), digest("/write", &[b"a v=12"]));
        let all = [digest("/write", &[b"a v=1"]), digest("/write", &[b"a v=2"]), digest("/writea", &[b" v=1"])];
        assert!(all[0] != all[1] && all[0] != all[2]);
        assert!(Fingerprint::new(&HeaderMap::new(), "/write").0.is_none());
    }

    #[test]
    fn keys_are_short_and_visible() {
        let read = |value: &str| {
            key(&HeaderMap::from_iter([("idempotency-key".parse().unwrap(), HeaderValue::from_str(value).unwrap())]))
        };
        assert_eq!(key(&HeaderMap::new()).unwrap(), None);
        assert_eq!(read("0b5e-\"x\"").unwrap().as_deref(), Some("0b5e-\"x\""));
        for bad in ["", "a b", "ä", &"x".repeat(129)] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
