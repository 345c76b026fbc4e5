//! Measures when memory is short: caches shrink, the largest statement stops.

use crate::limit::budget;
use crate::resident::{excess, overhead};
use crate::tracker::used;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Above this part of the budget, in percent, reservations fail and caches shrink.
const SOFT_PERCENT: usize = 90;
/// A stopped statement has this long to free its memory before another one is stopped.
const GRACE: Duration = Duration::from_millis(500);

static STATE: Mutex<State> = Mutex::new(State { caches: Vec::new(), statements: Vec::new(), last_stop: None });

struct State {
    caches: Vec<Weak<dyn Reclaim>>,
    statements: Vec<Weak<dyn Stop>>,
    last_stop: Option<Instant>,
}

/// A cache that can give memory back.
pub trait Reclaim: Send + Sync {
    /// Frees about `bytes`; returns the number of bytes freed.
    fn reclaim(&self, bytes: usize) -> usize;
}

/// A statement that can be stopped for its memory.
pub trait Stop: Send + Sync {
    /// Returns the bytes that a stop would free.
    fn bytes(&self) -> usize;
    /// Stops the statement. `budget` is the number of bytes that the process may use.
    fn stop(&self, budget: usize);
}

/// Returns true if the live bytes exceed the budget, or the resident size exceeds the hard limit above it.
#[must_use]
#[inline]
pub fn is_over_budget() -> bool {
    used() > budget() || excess() > 0
}

/// Returns true if `bytes` more fit below 90 % of the budget, after caches were shrunk if necessary.
#[must_use]
pub fn has_room(bytes: usize) -> bool {
    let soft = budget() / 100 * SOFT_PERCENT;
    let needed = used().saturating_add(overhead()).saturating_add(bytes);
    needed <= soft || needed - reclaim(needed - soft).min(needed) <= soft
}

/// Adds a cache to those that shrink when memory is short.
pub fn register_reclaim(cache: Weak<dyn Reclaim>) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.caches.retain(|cache| cache.strong_count() > 0);
    state.caches.push(cache);
}

/// Adds a statement to those that can be stopped.
pub fn register_stop(statement: Weak<dyn Stop>) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.statements.retain(|statement| statement.strong_count() > 0);
    state.statements.push(statement);
}

/// Shrinks caches by about `bytes`; returns the number of bytes freed.
pub fn reclaim(bytes: usize) -> usize {
    let caches: Vec<Arc<dyn Reclaim>> = {
        let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.caches.iter().filter_map(Weak::upgrade).collect()
    };
    let mut freed = 0;
    for cache in caches {
        if freed >= bytes {
            break;
        }
        freed += cache.reclaim(bytes - freed);
    }
    freed
}

/// Shrinks caches if the process is over its budget, and stops the statement with the most bytes if that is not enough.
pub fn stop_largest() {
    let (budget, over) = (budget(), used().saturating_sub(budget()).max(excess()));
    if over == 0 || reclaim(over) >= over {
        return;
    }
    let largest = {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last_stop.is_some_and(|last| last.elapsed() < GRACE) {
            return;
        }
        let statements: Vec<Arc<dyn Stop>> = state.statements.iter().filter_map(Weak::upgrade).collect();
        let largest = statements.into_iter().max_by_key(|statement| statement.bytes());
        if largest.is_some() {
            state.last_stop = Some(Instant::now());
        }
        largest
    };
    if let Some(largest) = largest {
        largest.stop(budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_budget;
    use crate::{Tracker, check_resident};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    struct Statement(usize, AtomicBool);

    impl Stop for Statement {
        fn bytes(&self) -> usize {
            self.0
        }

        fn stop(&self, _: usize) {
            self.1.store(true, Relaxed);
        }
    }

    struct Cache(AtomicUsize);

    impl Reclaim for Cache {
        fn reclaim(&self, bytes: usize) -> usize {
            let freed = self.0.load(Relaxed).min(bytes);
            self.0.fetch_sub(freed, Relaxed);
            freed
        }
    }

    /// A single test: the budget belongs to the process.
    #[test]
    fn caches_shrink_before_the_largest_statement_stops() {
        let cache = Arc::new(Cache(AtomicUsize::new(1 << 40)));
        let statements = [10, 30, 20].map(|bytes| Arc::new(Statement(bytes, AtomicBool::new(false))));
        let weak: Weak<dyn Reclaim> = Arc::downgrade(&(cache.clone() as Arc<dyn Reclaim>));
        register_reclaim(weak);
        for statement in &statements {
            register_stop(Arc::downgrade(&(statement.clone() as Arc<dyn Stop>)));
        }
        Tracker::default().count(|| crate::tracker::count(1 << 30));
        let stopped = || statements.iter().map(|s| s.1.load(Relaxed)).collect::<Vec<_>>();
        assert!(has_room(1 << 20) && !is_over_budget());
        set_budget(1 << 29);
        assert!(is_over_budget() && has_room(1 << 20));
        stop_largest();
        assert_eq!(stopped(), [false; 3]);
        assert!(cache.0.load(Relaxed) < 1 << 40);
        cache.0.store(0, Relaxed);
        assert!(!has_room(1 << 20));
        stop_largest();
        stop_largest();
        assert_eq!(stopped(), [false, true, false]);
        // The resident size counts only while it is above the budget and cannot be purged.
        set_budget(1 << 31);
        assert!(has_room(1 << 29));
        let resident = AtomicUsize::new(1 << 32);
        check_resident(|| resident.load(Relaxed), || resident.store(3 << 30, Relaxed));
        assert!(!has_room(1 << 29) && is_over_budget());
        check_resident(|| resident.load(Relaxed), || resident.store(9 << 28, Relaxed));
        assert!(!has_room(1 << 29) && !is_over_budget());
        check_resident(|| resident.load(Relaxed), || resident.store(1 << 30, Relaxed));
        assert!(has_room(1 << 29) && !is_over_budget());
        set_budget(usize::MAX);
        check_resident(|| 1 << 40, || unreachable!("the budget is larger"));
        assert!(has_room(usize::MAX / 4));
    }
}
