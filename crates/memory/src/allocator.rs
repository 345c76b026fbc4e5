//! The global allocator that counts live bytes.

use crate::tracker::count;
use std::alloc::{GlobalAlloc, Layout};

/// Passes requests on to another allocator and counts the bytes of live allocations.
///
/// The count uses the requested sizes. Fragmentation and freed pages that the allocator keeps are not included.
#[derive(Debug, Default)]
pub struct CountingAllocator<A>(A);

impl<A> CountingAllocator<A> {
    /// Wraps `allocator`.
    pub const fn new(allocator: A) -> CountingAllocator<A> {
        CountingAllocator(allocator)
    }
}

// SAFETY: every request goes unchanged to the wrapped allocator, which upholds the contract. Counting neither allocates
// nor unwinds: it uses thread-local cells without destructors and atomics only.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        let at = unsafe { self.0.alloc(layout) };
        if !at.is_null() {
            count(layout.size() as isize);
        }
        at
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        let at = unsafe { self.0.alloc_zeroed(layout) };
        if !at.is_null() {
            count(layout.size() as isize);
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { self.0.dealloc(at, layout) };
        count(-(layout.size() as isize));
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        let moved = unsafe { self.0.realloc(at, layout, size) };
        if !moved.is_null() {
            count(size as isize - layout.size() as isize);
        }
        moved
    }
}
