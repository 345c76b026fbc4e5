//! The loop that takes connections: the same for every port.
//!
//! Always: at most so many connections as allowed are open at once, on a port, from one address, and in all; a few more
//! are served in a reserve, in which a protocol answers what an administrator needs and refuses everything else with a
//! reason. Where a port is full, the connection that was first to say nothing makes room. When the stop comes nobody new is
//! taken, and the loop ends once those who are here have gone.

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

/// After a failed accept, which happens when the process is out of file handles, say: keeps the loop from spinning
/// until a connection is closed.
const PAUSE: Duration = Duration::from_millis(50);

/// A peer that vanished without a word is asked after this long without one, and then so often.
const VANISHED: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// Connections of a port that are served beyond its limit, to be told why they are refused or to do what an
/// administrator has to.
const RESERVE: usize = 16;

/// A connection may be silent for this long before it has to make room.
const SILENCE: Duration = Duration::from_secs(1);

static ACCEPT_FAILED: LineThrottle = LineThrottle::new();
static REFUSED: LineThrottle = LineThrottle::new();

/// What a port is called, and how many connections it may have.
#[derive(Clone, Debug)]
pub struct Port {
    pub protocol: &'static str,
    pub connections_max: usize,
    /// Connections of one address.
    pub per_address_max: usize,
    /// The setting that says so, for who is turned away.
    pub setting: &'static str,
    /// Connections that were turned away.
    pub refused: Arc<AtomicU64>,
    /// Those of all ports.
    pub all: Total,
}

/// Connections of several ports, which share the process's file handles. Clones count together.
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

/// Has the system find out, within minutes, that a peer is gone of which no more packets come.
pub fn notice_the_vanished(socket: &TcpStream) {
    let asking = socket2::TcpKeepalive::new().with_time(VANISHED).with_interval(ASK_AGAIN);
    // Without, the connection is as good as before.
    let _ = socket2::SockRef::from(socket).set_tcp_keepalive(&asking);
}

/// Waits for what a client has to do before it is served; `None` if it takes longer than allowed. Zero is no limit.
pub async fn in_time<T>(timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
    if timeout.is_zero() { Some(work.await) } else { tokio::time::timeout(timeout, work).await.ok() }
}

/// The place of a connection; dropping it gives the place back.
#[derive(Debug)]
pub struct Slot {
    id: u64,
    address: IpAddr,
    /// Why the connection has no regular place: the setting that is reached.
    full: Option<&'static str>,
    is_evicted: Arc<Notify>,
    places: Arc<Places>,
}

impl Slot {
    /// Returns the setting that does not allow another regular connection.
    #[must_use]
    pub fn full(&self) -> Option<&'static str> {
        self.full
    }

    /// The client has shown what it is here for: it no longer makes room for others.
    pub fn keep(&self) {
        self.places.lock().silent.remove(&self.id);
    }

    /// The client has nothing to do, and closing the connection would do it no harm: it makes room again.
    pub fn release(&self) {
        if self.full.is_none() {
            let silent = Silent { since: Instant::now(), address: self.address, evict: self.is_evicted.clone() };
            self.places.lock().silent.insert(self.id, silent);
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
    /// Connections that can be closed to make room.
    silent: HashMap<u64, Silent>,
    /// Closed to make room, and not gone yet: their places are given already.
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

    /// A place for a connection; `None` if there is none even in the reserve.
    fn enter(self: &Arc<Places>, peer: IpAddr) -> Option<Slot> {
        let address = peer.to_canonical();
        let mut open = self.lock();
        open.last_id += 1;
        let id = open.last_id;
        let full = self.make_room(&mut open, address).err();
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

    /// Makes room for one more regular connection, or says which setting does not allow it.
    fn make_room(&self, open: &mut Open, address: IpAddr) -> Result<(), &'static str> {
        let is_full = open.regular >= self.port.connections_max;
        if is_full && !self.evict(open, None) {
            return Err(self.port.setting);
        }
        let of_address = open.by_address.get(&address).copied().unwrap_or(0);
        if of_address >= self.port.per_address_max && !self.evict(open, Some(address)) {
            return Err("connections.per_address_max");
        }
        if self.port.all.open.load(Relaxed) >= self.port.all.max && !self.evict(open, None) {
            return Err("the limit of open files (ulimit -n)");
        }
        Ok(())
    }

    /// Closes the connection that has been silent longest, of an address or of any. False if there is none.
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

/// Gives each connection to `handle`, a task of its own, which has to end when its stop comes.
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
        let full = slot.as_ref().map_or(Some("the reserve, too"), Slot::full);
        if let Some(setting) = full
            && let Some(left_out) = REFUSED.pass()
        {
            tracing::warn!(protocol, %peer, left_out, "refused a connection: as many as {setting} allows are open");
        }
        let Some(slot) = slot.map(Arc::new) else { continue };
        let connection = handle(socket, peer, slot.clone(), stop.clone());
        tokio::spawn(async move {
            let evicted = slot.is_evicted.clone();
            tokio::select! {
                () = connection => {}
                () = evicted.notified() => {
                    tracing::debug!(protocol, %peer, "closed a connection that had nothing to do: others need its place");
                }
            }
            drop(slot);
        });
    }
    // Closed first, so that nobody new waits for an answer.
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
    fn limits_hold_and_places_come_back() {
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
    fn the_connection_that_was_silent_longest_makes_room() {
        let places = places(2, 2, 100);
        let (first, second) = (places.enter(address(1)).unwrap(), places.enter(address(1)).unwrap());
        // Nobody was silent for long.
        assert!(places.enter(address(2)).unwrap().full().is_some());
        for silent in places.lock().silent.values_mut() {
            silent.since -= 2 * SILENCE;
        }
        first.keep();
        let third = places.enter(address(2)).unwrap();
        assert_eq!(third.full(), None);
        assert!(places.lock().evicted.contains(&second.id));
        drop((first, second, third));
        let open = places.lock();
        assert_eq!((open.regular, open.evicted.len()), (0, 0));
    }

    #[test]
    fn ports_share_the_handles() {
        let (one, mut other) = (places(10, 10, 2), places(10, 10, 2));
        Arc::get_mut(&mut other).unwrap().port.all = one.port.all.clone();
        let slots = [one.enter(address(1)).unwrap(), other.enter(address(1)).unwrap()];
        slots.iter().for_each(Slot::keep);
        assert!(one.enter(address(1)).unwrap().full().is_some_and(|why| why.contains("ulimit")));
    }
}
