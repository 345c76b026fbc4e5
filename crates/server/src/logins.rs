//! Rate limit of failed logins by address and by user.
//!
//! An address may fail [`FREE_FAILURES`] times; after each further failure the address must wait, twice as long each time.
//! The rate of failures as one user is limited over all addresses; beyond the rate, addresses without an earlier login
//! must wait, so that many machines guess no faster than one. During the wait the password is not checked.
//!
//! Always: memory is bounded, and log lines are throttled ([`LineThrottle`]).

use crate::logging::{LineThrottle, cut};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures of an address without a wait.
const FREE_FAILURES: u32 = 10;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The failures of an address are reset after this time without a failure.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// Burst of failures as one user; one more is permitted per [`USER_INTERVAL`].
const USER_FAILURES: u32 = 50;
const USER_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of addresses and of users; about 100 bytes each.
const ENTRIES_MAX: usize = 16_384;

static FAILED: LineThrottle = LineThrottle::new();

#[derive(Debug, Default)]
pub struct Logins {
    state: Mutex<State>,
    failed: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    addresses: HashMap<IpAddr, Failures>,
    users: HashMap<String, User>,
    /// Addresses that have logged in.
    known: HashSet<IpAddr>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
    wait_until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct User {
    /// Fill level of the token bucket: failures that the rate has not covered.
    count: u32,
    since: Instant,
}

impl User {
    fn settle(&mut self, now: Instant) {
        let covered = now.duration_since(self.since).as_secs() / USER_INTERVAL.as_secs();
        self.count = self.count.saturating_sub(u32::try_from(covered).unwrap_or(u32::MAX));
        self.since += USER_INTERVAL * u32::try_from(covered).unwrap_or(0);
    }
}

impl Logins {
    /// Permits or refuses a login attempt.
    ///
    /// # Errors
    /// The time until the next attempt is permitted.
    pub fn may_try(&self, address: IpAddr, user: &str) -> Result<(), Duration> {
        self.may_try_at(address, user, Instant::now())
    }

    fn may_try_at(&self, address: IpAddr, user: &str, now: Instant) -> Result<(), Duration> {
        let (address, mut state) = (network(address), self.lock());
        let of_address = state.addresses.get(&address).map(|f| f.wait_until.saturating_duration_since(now));
        let is_known = state.known.contains(&address);
        let of_user = state.users.get_mut(&*cut(user)).filter(|_| !is_known).map(|user| {
            user.settle(now);
            if user.count >= USER_FAILURES { USER_INTERVAL } else { Duration::ZERO }
        });
        let wait = of_address.unwrap_or_default().max(of_user.unwrap_or_default());
        if wait.is_zero() {
            return Ok(());
        }
        self.refused.fetch_add(1, Relaxed);
        Err(wait)
    }

    /// Records and logs a failed login.
    pub fn failed(&self, protocol: &str, address: IpAddr, user: &str) {
        self.failed_at(address, user, Instant::now());
        if let Some(left_out) = FAILED.pass() {
            tracing::warn!(protocol, %address, user = cut(user), left_out, "authentication failed");
        }
    }

    fn failed_at(&self, address: IpAddr, user: &str, now: Instant) {
        self.failed.fetch_add(1, Relaxed);
        let (address, user, mut state) = (network(address), cut(user), self.lock());
        prune(&mut state.addresses, |f| now.duration_since(f.last) < FORGOTTEN);
        let failures = state.addresses.entry(address).or_insert(Failures { count: 0, last: now, wait_until: now });
        if now.duration_since(failures.last) >= FORGOTTEN {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        if let Some(over) = failures.count.checked_sub(FREE_FAILURES) {
            let wait = FIRST_WAIT.saturating_mul(1 << over.min(10)).min(WAIT_MAX);
            failures.wait_until = now + wait;
        }
        prune(&mut state.users, |u| now.duration_since(u.since) < FORGOTTEN);
        let user = state.users.entry(user).or_insert(User { count: 0, since: now });
        user.settle(now);
        user.count = user.count.saturating_add(1);
    }

    /// Resets the failures of an address after a login.
    pub fn succeeded(&self, address: IpAddr) {
        let (address, mut state) = (network(address), self.lock());
        state.addresses.remove(&address);
        if state.known.len() >= ENTRIES_MAX {
            state.known.clear();
        }
        state.known.insert(address);
    }

    /// Returns the number of failed logins and of logins refused without a password check.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.failed.load(Relaxed), self.refused.load(Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes old entries if the map is full, and all entries if none is old.
fn prune<K: std::hash::Hash + Eq, V>(entries: &mut HashMap<K, V>, is_recent: impl Fn(&V) -> bool) {
    if entries.len() >= ENTRIES_MAX {
        entries.retain(|_, entry| is_recent(entry));
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
    }
}

/// Returns the network of an address: an IPv6 client usually owns a /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn growing_waits_of_an_address() {
        let (logins, start) = (Logins::default(), Instant::now());
        for _ in 0..FREE_FAILURES - 1 {
            logins.failed_at(address(1), "me", start);
        }
        assert_eq!(logins.may_try_at(address(1), "me", start), Ok(()));
        let mut now = start;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            logins.failed_at(address(1), "me", now);
            assert_eq!(logins.may_try_at(address(1), "me", now), Err(Duration::from_secs(seconds)));
            assert_eq!(logins.may_try_at(address(2), "me", now), Ok(()));
            now += Duration::from_secs(seconds);
            assert_eq!(logins.may_try_at(address(1), "me", now), Ok(()));
        }
        logins.succeeded(address(1));
        logins.failed_at(address(1), "me", now);
        assert_eq!(logins.may_try_at(address(1), "me", now), Ok(()));
    }

    #[test]
    fn limit_of_a_user_over_all_addresses() {
        let (logins, start) = (Logins::default(), Instant::now());
        logins.succeeded(address(200));
        for last in 0..USER_FAILURES as u8 {
            logins.failed_at(address(last), "me", start);
        }
        assert_eq!(logins.may_try_at(address(201), "me", start), Err(USER_INTERVAL));
        assert_eq!(logins.may_try_at(address(201), "you", start), Ok(()));
        assert_eq!(logins.may_try_at(address(200), "me", start), Ok(()));
        assert_eq!(logins.may_try_at(address(201), "me", start + 2 * USER_INTERVAL), Ok(()));
        assert_eq!(logins.counts(), (u64::from(USER_FAILURES), 1));
    }

    #[test]
    fn networks_and_bounded_memory() {
        let (logins, now) = (Logins::default(), Instant::now());
        let at = |text: &str| network(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:2"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        for n in 0..20_000u32 {
            logins.failed_at(IpAddr::from(n.to_be_bytes()), &"x".repeat(n as usize % 9000), now);
        }
        let state = logins.lock();
        assert!(state.addresses.len() <= ENTRIES_MAX && state.users.len() <= ENTRIES_MAX);
        assert!(state.users.keys().all(|name| name.len() <= 70));
    }
}
