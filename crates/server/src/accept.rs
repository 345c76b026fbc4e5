//! The loop that takes connections: the same for every port.
//!
//! Always: the number of open connections stays within three limits: per port, per address, and for the process. A small
//! reserve serves connections beyond the limits; there a protocol answers administrative requests and refuses all others
//! with a reason. At a limit, the connection that has been silent longest is closed for the new one. After the stop signal
//! no connection is accepted, and the loop ends when the last connection is closed.

use crate::logging::LineThrottle;
use crate::stop::Stop;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Delay after a failed accept, for example without free file handles: the loop must not spin until a handle is free.
const PAUSE: Duration = Duration::from_millis(50);

/// Time without packets before the first keepalive probe, and the interval of further probes.
const VANISHED: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// Connections of a port beyond its limit: a refusal needs a connection, and so do administrators. At most 48 handles of
/// the three ports, within the handles that `system` reserves.
const RESERVE: usize = 16;

/// Minimum time of silence before a connection may be evicted.
const SILENCE: Duration = Duration::from_secs(1);

static ACCEPT_FAILED: LineThrottle = LineThrottle::new();
static REFUSED: LineThrottle = LineThrottle::new();

/// Name and connection limits of a port.
#[derive(Clone, Debug)]
pub struct Port {
    pub protocol: &'static str,
    pub connections_max: usize,
    /// Maximum number of connections from one address.
    pub per_address_max: usize,
    /// The setting of `connections_max`, for messages.
    pub setting: &'static str,
    /// Number of connections beyond a limit.
    pub refused: Arc<AtomicU64>,
    /// Connections of all ports together.
    pub all: Total,
}

/// Connections of several ports, limited by the file handles of the process. Clones share one count.
#[derive(Clone, Debug)]
pub struct Total {
    open: Arc<AtomicUsize>,
    max: usize,
}

impl Total {
    #[must_use]
    pub fn new(max: usize) -> Total {
        Total { open: Arc::default(), max }
    }
}

/// Enables TCP keepalive, so that the operating system detects a vanished peer within minutes.
pub fn notice_the_vanished(socket: &TcpStream) {
    let asking = socket2::TcpKeepalive::new().with_time(VANISHED).with_interval(ASK_AGAIN);
    // The connection works without keepalive.
    let _ = socket2::SockRef::from(socket).set_tcp_keepalive(&asking);
}

/// Waits for `work` of a client at most `timeout`; `None` after the timeout. Zero is no limit.
pub async fn in_time<T>(timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
    if timeout.is_zero() { Some(work.await) } else { tokio::time::timeout(timeout, work).await.ok() }
}

/// The place of a connection within the limits of its port; released on drop.
#[derive(Debug)]
pub struct Slot {
    id: u64,
    address: IpAddr,
    /// The limit that is reached, if the connection is in the reserve.
    full: Option<&'static str>,
    is_evicted: Arc<Notify>,
    places: Arc<Places>,
}

impl Slot {
    /// Returns the limit that is reached, if the connection is in the reserve.
    #[must_use]
    pub fn full(&self) -> Option<&'static str> {
        self.full
    }

    /// Excludes the connection from eviction: a request or session has begun.
    pub fn keep(&self) {
        self.places.lock().silent.remove(&self.id);
    }

    /// Permits eviction again: the connection is idle, and closing the connection loses nothing.
    pub fn release(&self) {
        if self.full.is_some() {
            return;
        }
        let mut open = self.places.lock();
        // An evicted connection may finish a request before its task ends; its place is released already.
        if !open.evicted.contains(&self.id) {
            let silent = Silent { since: Instant::now(), address: self.address, evict: self.is_evicted.clone() };
            open.silent.insert(self.id, silent);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.places.lock();
        open.silent.remove(&self.id);
        if self.full.is_some() {
            open.reserve -= 1;
        } else if !open.evicted.remove(&self.id) {
            self.places.leave(&mut open, self.address);
        }
        drop(open);
        self.places.left.notify_one();
    }
}

/// The connections of a port.
#[derive(Debug)]
struct Places {
    port: Port,
    open: Mutex<Open>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Open {
    last_id: u64,
    regular: usize,
    reserve: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Connections that may be evicted.
    silent: HashMap<u64, Silent>,
    /// Evicted connections whose tasks have not ended; their places are released already.
    evicted: HashSet<u64>,
}

#[derive(Debug)]
struct Silent {
    since: Instant,
    address: IpAddr,
    evict: Arc<Notify>,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place for a connection; `None` if the reserve is full, too.
    fn enter(self: &Arc<Places>, peer: IpAddr) -> Option<Slot> {
        let address = peer.to_canonical();
        let mut open = self.lock();
        open.last_id += 1;
        let id = open.last_id;
        let full = self.admit(&mut open, address).err();
        if full.is_some() {
            self.port.refused.fetch_add(1, Relaxed);
            if open.reserve >= RESERVE {
                return None;
            }
            open.reserve += 1;
        } else {
            open.regular += 1;
            *open.by_address.entry(address).or_default() += 1;
            self.port.all.open.fetch_add(1, Relaxed);
        }
        drop(open);
        let slot = Slot { id, address, full, is_evicted: Arc::default(), places: self.clone() };
        slot.release();
        Some(slot)
    }

    /// Permits one more regular connection, if necessary by an eviction.
    ///
    /// # Errors
    /// The limit that is reached.
    fn admit(&self, open: &mut Open, address: IpAddr) -> Result<(), &'static str> {
        let of_address = open.by_address.get(&address).copied().unwrap_or(0);
        let is_address_full = of_address >= self.port.per_address_max;
        let limit = if open.regular >= self.port.connections_max {
            self.port.setting
        } else if is_address_full {
            "connections.per_address_max"
        } else if self.port.all.open.load(Relaxed) >= self.port.all.max {
            "the limit of open files (ulimit -n)"
        } else {
            return Ok(());
        };
        // One eviction suffices for all limits. An address at its limit must not evict connections of others.
        if self.evict(open, is_address_full.then_some(address)) { Ok(()) } else { Err(limit) }
    }

    /// Closes the connection that has been silent longest, of one address or of any. Returns false if there is none.
    fn evict(&self, open: &mut Open, of: Option<IpAddr>) -> bool {
        let silent = open.silent.iter().filter(|(_, s)| of.is_none_or(|of| of == s.address));
        let longest = silent.min_by_key(|(_, s)| s.since).filter(|(_, s)| s.since.elapsed() >= SILENCE);
        let Some(id) = longest.map(|(id, _)| *id) else { return false };
        let Some(silent) = open.silent.remove(&id) else { return false };
        open.evicted.insert(id);
        self.leave(open, silent.address);
        silent.evict.notify_one();
        true
    }

    fn leave(&self, open: &mut Open, address: IpAddr) {
        open.regular -= 1;
        self.port.all.open.fetch_sub(1, Relaxed);
        if let Some(count) = open.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

/// Runs `handle` for each connection in a separate task, which must end after the stop signal.
pub async fn serve<F>(
    listener: TcpListener,
    port: Port,
    mut stop: Stop,
    handle: impl Fn(TcpStream, SocketAddr, Arc<Slot>, Stop) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let protocol = port.protocol;
    let places = Arc::new(Places { port, open: Mutex::default(), left: Notify::new() });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.wait() => break,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(left_out) = ACCEPT_FAILED.pass() {
                    tracing::warn!(protocol, %error, left_out, "could not accept a connection");
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let slot = places.enter(peer.ip());
        let limit = slot.as_ref().map_or(Some("the limit and its reserve"), Slot::full);
        if let Some(limit) = limit
            && let Some(left_out) = REFUSED.pass()
        {
            tracing::warn!(protocol, %peer, limit, left_out, "refused a connection: too many are open");
        }
        let Some(slot) = slot.map(Arc::new) else { continue };
        let connection = handle(socket, peer, slot.clone(), stop.clone());
        tokio::spawn(async move {
            let evicted = slot.is_evicted.clone();
            tokio::select! {
                () = connection => {}
                () = evicted.notified() => {
                    tracing::debug!(protocol, %peer, "closed an idle connection: a connection limit is reached");
                }
            }
            drop(slot);
        });
    }
    // Closed first: no new client must wait for a response.
    drop(listener);
    loop {
        let left = places.left.notified();
        let is_empty = {
            let open = places.lock();
            open.regular + open.reserve + open.evicted.len() == 0
        };
        if is_empty {
            return;
        }
        left.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections_max: usize, per_address_max: usize, all_max: usize) -> Arc<Places> {
        let port = Port {
            protocol: "test",
            connections_max,
            per_address_max,
            setting: "test.connections_max",
            refused: Arc::default(),
            all: Total::new(all_max),
        };
        Arc::new(Places { port, open: Mutex::default(), left: Notify::new() })
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn connection_limits() {
        let places = places(4, 3, 100);
        let kept = |last| {
            let slot = places.enter(address(last)).unwrap();
            slot.keep();
            slot
        };
        let mut slots: Vec<Slot> = (0..3).map(|_| kept(1)).collect();
        assert_eq!(kept(1).full(), Some("connections.per_address_max"));
        slots.push(kept(2));
        assert_eq!(kept(3).full(), Some("test.connections_max"));
        assert_eq!(places.port.refused.load(Relaxed), 2);
        let reserve: Vec<Slot> = (0..RESERVE).map(|_| kept(3)).collect();
        assert!(places.enter(address(3)).is_none());
        drop(reserve);
        slots.pop();
        assert_eq!(kept(3).full(), None);
        drop(slots);
        let open = places.lock();
        assert_eq!((open.regular, open.reserve, open.by_address.len()), (0, 0, 0));
        assert_eq!(places.port.all.open.load(Relaxed), 0);
    }

    #[test]
    fn eviction_of_the_longest_silent_connection() {
        let places = places(2, 2, 100);
        let (first, second) = (places.enter(address(1)).unwrap(), places.enter(address(1)).unwrap());
        // No connection has been silent long enough.
        assert!(places.enter(address(2)).unwrap().full().is_some());
        for silent in places.lock().silent.values_mut() {
            silent.since -= 2 * SILENCE;
        }
        first.keep();
        let third = places.enter(address(2)).unwrap();
        assert_eq!(third.full(), None);
        assert!(places.lock().evicted.contains(&second.id));
        second.release();
        assert!(!places.lock().silent.contains_key(&second.id));
        drop((first, second, third));
        let open = places.lock();
        assert_eq!((open.regular, open.evicted.len()), (0, 0));
    }

    #[test]
    fn full_address_evicts_only_its_own_connections() {
        let places = places(2, 1, 100);
        let (busy, idle) = (places.enter(address(1)).unwrap(), places.enter(address(2)).unwrap());
        for silent in places.lock().silent.values_mut() {
            silent.since -= 2 * SILENCE;
        }
        busy.keep();
        assert_eq!(places.enter(address(1)).unwrap().full(), Some("test.connections_max"));
        assert!(places.lock().evicted.is_empty());
        drop((busy, idle));
    }

    #[test]
    fn total_of_several_ports() {
        let (one, mut other) = (places(10, 10, 2), places(10, 10, 2));
        Arc::get_mut(&mut other).unwrap().port.all = one.port.all.clone();
        let slots = [one.enter(address(1)).unwrap(), other.enter(address(1)).unwrap()];
        slots.iter().for_each(Slot::keep);
        assert!(one.enter(address(1)).unwrap().full().is_some_and(|why| why.contains("ulimit")));
    }
}
