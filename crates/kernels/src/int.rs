//! Integer types of the kernels, and the macro that selects instruction sets at run time.

/// An integer of up to 64 bits with wrapping arithmetic.
pub trait Int: Copy + Default + Ord + Send + Sync + 'static {
    /// Returns `self − reference` as an unsigned number of the same width.
    fn distance(self, reference: Self) -> u64;
    /// Adds the lower bits of `distance`.
    fn plus(self, distance: u64) -> Self;
    fn wrapping_plus(self, other: Self) -> Self;
    fn wrapping_minus(self, other: Self) -> Self;
}

macro_rules! int {
    ($($int:ty, $unsigned:ty;)*) => { $(
        impl Int for $int {
            #[inline(always)]
            fn distance(self, reference: $int) -> u64 {
                self.wrapping_sub(reference) as $unsigned as u64
            }
            #[inline(always)]
            fn plus(self, distance: u64) -> $int {
                self.wrapping_add(distance as $int)
            }
            #[inline(always)]
            fn wrapping_plus(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn wrapping_minus(self, other: $int) -> $int {
                self.wrapping_sub(other)
            }
        }
    )* };
}

int! { i8, u8; i16, u16; i32, u32; i64, u64; u8, u8; u16, u16; u32, u32; u64, u64; }

/// Compiles a function for AVX2 and for the baseline of the architecture, and selects a version at run time.
///
/// Functions that it calls must be `#[inline(always)]` to be compiled for the same instruction set.
///
/// With `wide` the function is compiled for AVX-512, too, for loops that were measured to be faster. Loops that store
/// as much as they load are not faster, since their vectors cross cache lines.
#[macro_export]
#[doc(hidden)]
macro_rules! dispatch {
    (
        wide $(#[$meta:meta])* $vis:vis fn $name:ident $(<$T:ident : $bound:path>)? ($($arg:ident : $type:ty),* $(,)?)
        $(-> $out:ty)? $body:block
    ) => {
        $(#[$meta])*
        $vis fn $name $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn avx512 $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? $body

            $crate::dispatch! {
                fn narrow $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? $body
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::has_avx512() {
                // SAFETY: `has_avx512` has checked the processor for every feature that `avx512` enables.
                return unsafe { avx512($($arg),*) };
            }
            narrow($($arg),*)
        }
    };
    (
        $(#[$meta:meta])* $vis:vis fn $name:ident $(<$T:ident : $bound:path>)? ($($arg:ident : $type:ty),* $(,)?)
        $(-> $out:ty)? $body:block
    ) => {
        $(#[$meta])*
        $vis fn $name $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn any $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn avx2 $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? {
                any($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if $crate::has_avx2() {
                // SAFETY: `has_avx2` has checked the processor for every feature that `avx2` enables.
                return unsafe { avx2($($arg),*) };
            }
            any($($arg),*)
        }
    };
}

/// Returns true if the processor supports the loops for AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline]
#[must_use]
pub fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Returns true if the processor supports the loops for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[must_use]
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
