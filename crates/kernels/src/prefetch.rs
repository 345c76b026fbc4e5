//! Prefetches memory before it is needed. A prefetch is a hint: results never depend on it.

const LINE_BYTES: usize = 64;
/// A core fetches no more lines at the same time.
const LINES_MAX: usize = 8;

/// Prefetches the element at `at`, if there is one.
#[inline(always)]
pub fn prefetch<T>(values: &[T], at: usize) {
    if let Some(value) = values.get(at) {
        ask(std::ptr::from_ref(value).cast());
    }
}

/// Prefetches the first 512 bytes of a slice.
#[inline(always)]
pub fn prefetch_slice<T>(values: &[T]) {
    let start = values.as_ptr().cast::<u8>();
    for line in 0..size_of_val(values).div_ceil(LINE_BYTES).min(LINES_MAX) {
        ask(start.wrapping_add(line * LINE_BYTES));
    }
}

#[inline(always)]
fn ask(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect and faults on no address; SSE is in the baseline.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
