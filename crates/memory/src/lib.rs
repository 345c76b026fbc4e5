//! Memory accounting: the process's live heap bytes, the share of each statement, and one budget for all.
//!
//! [`CountingAllocator`] wraps the global allocator. Each thread adds up its allocations and passes the sum on in steps
//! of 64 KiB. Bytes that a thread allocates within [`Tracker::count`] count for that tracker as well. Trackers therefore
//! see memory that no operator reserves: plans, literals, aggregate states, window frames.
//!
//! A tracker over its limit is marked, and the statement stops at its next check. When the process is over its budget,
//! [`stop_largest`] first shrinks caches ([`Reclaim`]) and then stops the statement with the most bytes.
//!
//! The resident size exceeds the live bytes by freed pages and fragmentation. [`check_resident`], called periodically,
//! returns freed pages to the system while the resident size is above the budget.
//!
//! Without the allocator, as in tests of libraries, every count stays 0 and no limit applies.
//!
//! ```
//! use tidalite_memory::{CountingAllocator, Tracker};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator<std::alloc::System> = CountingAllocator::new(std::alloc::System);
//!
//! let tracker = Tracker::default();
//! let rows = tracker.count(|| vec![1u8; 1 << 20]);
//! assert!(tracker.used() >= 1 << 20);
//! drop(rows);
//! ```

#![deny(missing_docs)]

mod allocator;
mod budget;
mod limit;
mod resident;
mod tracker;

pub use allocator::CountingAllocator;
pub use budget::{Reclaim, Stop, has_room, is_over_budget, reclaim, register_reclaim, register_stop, stop_largest};
pub use limit::{budget, set_budget};
pub use resident::{check_resident, purge, resident_bytes};
pub use tracker::{Tracker, is_counting, reassign, tracked, used};
