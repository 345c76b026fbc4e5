//! Compares loops for merging and copying inside and outside of the caches: `cargo run --release -p tidalite-kernels
//! --example merge_speed`. The table is kept in bench/results; `gather` and the merge use the fastest loops.

use std::hint::black_box;
use std::time::Instant;
use tidalite_kernels::{Stretch, merge, merge_slices};

/// Row counts, with eight bytes per row: in the second-level cache, in the third-level cache, in memory.
const SIZES: [usize; 3] = [1 << 16, 1 << 20, 1 << 24];

fn nanos_per_row(rows: usize, mut run: impl FnMut()) -> f64 {
    let rounds = ((1 << 24) / rows).clamp(3, 64);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2] * 1e9 / rows as f64
}

fn short_copies(left: &[i64], right: &[i64], stretches: &[Stretch], out: &mut Vec<i64>) {
    out.clear();
    for s in stretches {
        let side = if s.is_right { right } else { left };
        for row in &side[s.from as usize..][..s.count as usize] {
            out.push(*row);
        }
    }
}

fn picked(both: &[i64], picks: &[u32], out: &mut Vec<i64>) {
    out.clear();
    out.extend(picks.iter().map(|row| both[*row as usize]));
}

fn picked_avx2(both: &[i64], picks: &[u32], out: &mut [i64]) {
    assert!(picks.len() == out.len() && picks.iter().all(|p| (*p as usize) < both.len()));
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was detected and every pick is a row of `both`, both checked above.
        unsafe { x86::gather(both, picks, out) };
    }
}

/// One bit per row selects the side of the next row.
fn by_bits(left: &[i64], right: &[i64], from_right: &[u64], out: &mut [i64]) {
    let (mut l, mut r) = (0, 0);
    for (at, out) in out.iter_mut().enumerate() {
        let bit = (from_right[at / 64] >> (at % 64) & 1) as usize;
        let (a, b) = (left.get(l).copied().unwrap_or(0), right.get(r).copied().unwrap_or(0));
        *out = if bit == 1 { b } else { a };
        (l, r) = (l + 1 - bit, r + bit);
    }
}

fn copy_streaming(from: &[i64], to: &mut [i64]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was detected and the lengths are equal, both checked above.
        unsafe { x86::copy_streaming(from, to) };
    }
}

fn copy_avx2(from: &[i64], to: &mut [i64]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        unsafe { x86::copy(from, to) };
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor must have AVX2, `out` must be as long as `picks`, and every pick must be below the length of
    /// `both`.
    #[target_feature(enable = "avx2")]
    pub unsafe fn gather(both: &[i64], picks: &[u32], out: &mut [i64]) {
        let whole = picks.len() / 4 * 4;
        for at in (0..whole).step_by(4) {
            // SAFETY: four picks and four results are in their slices; the caller guarantees that the picks are in
            // `both`.
            unsafe {
                let rows = _mm_loadu_si128(picks.as_ptr().add(at).cast());
                let values = _mm256_i32gather_epi64::<8>(both.as_ptr(), rows);
                _mm256_storeu_si256(out.as_mut_ptr().add(at).cast(), values);
            }
        }
        for at in whole..picks.len() {
            out[at] = both[picks[at] as usize];
        }
    }

    /// # Safety
    /// The processor must have AVX2 and the slices must have equal lengths.
    #[target_feature(enable = "avx2")]
    pub unsafe fn copy(from: &[i64], to: &mut [i64]) {
        let whole = from.len() / 4 * 4;
        for at in (0..whole).step_by(4) {
            // SAFETY: four values from `at` on are in both slices.
            unsafe {
                let values = _mm256_loadu_si256(from.as_ptr().add(at).cast());
                _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), values);
            }
        }
        to[whole..].copy_from_slice(&from[whole..]);
    }

    /// # Safety
    /// The same as for [`copy`].
    #[target_feature(enable = "avx2")]
    pub unsafe fn copy_streaming(from: &[i64], to: &mut [i64]) {
        let head = to.as_ptr().align_offset(32).min(to.len());
        let whole = head + (to.len() - head) / 4 * 4;
        to[..head].copy_from_slice(&from[..head]);
        for at in (head..whole).step_by(4) {
            // SAFETY: four values from `at` on are in both slices; in `to` they are aligned to 32 bytes.
            unsafe {
                let values = _mm256_loadu_si256(from.as_ptr().add(at).cast());
                _mm256_stream_si256(to.as_mut_ptr().add(at).cast(), values);
            }
        }
        _mm_sfence();
        to[whole..].copy_from_slice(&from[whole..]);
    }
}

fn main() {
    println!(
        "copies, ns a row of 8 bytes\n\n| rows | memcpy | AVX2 | AVX2 streaming | memcpy to fresh memory |\n|---|---|---|---|---|"
    );
    for rows in SIZES {
        let from: Vec<i64> = (0..rows as i64).collect();
        let mut to = vec![1i64; rows];
        let plain = nanos_per_row(rows, || black_box(&mut to).copy_from_slice(black_box(&from)));
        let simd = nanos_per_row(rows, || copy_avx2(black_box(&from), black_box(&mut to)));
        let streaming = nanos_per_row(rows, || copy_streaming(black_box(&from), black_box(&mut to)));
        let fresh = nanos_per_row(rows, || drop(black_box(black_box(&from).to_vec())));
        println!("| {rows} | {plain:.2} | {simd:.2} | {streaming:.2} | {fresh:.2} |");
    }
    println!(
        "\nmerges of an i64 column, ns a row\n\n| rows | rows a stretch | stretches, memcpy each | stretches, row by row | picks | picks, AVX2 | by bits |\n|---|---|---|---|---|---|---|"
    );
    for rows in SIZES {
        for (one_in, name) in [(2, "2"), (6, "6"), (20, "20"), (200, "200"), (5000, "5000")] {
            merges(rows, one_in, name);
        }
    }
}

/// One row in `one_in` comes from the right; stretches have about this length.
fn merges(rows: usize, one_in: u64, name: &str) {
    let mut rng = fastrand::Rng::with_seed(1);
    let (left, right): (Vec<i64>, Vec<i64>) = (0..rows as i64).partition(|_| rng.u64(0..one_in) != 0);
    let stretches = merge(&left, &right);
    let both: Vec<i64> = left.iter().chain(&right).copied().collect();
    let place = |s: &Stretch| if s.is_right { left.len() as u32 + s.from } else { s.from };
    let picks: Vec<u32> = stretches.iter().flat_map(|s| place(s)..place(s) + s.count).collect();
    let mut bits = vec![0u64; rows.div_ceil(64)];
    picks
        .iter()
        .enumerate()
        .filter(|(_, p)| **p as usize >= left.len())
        .for_each(|(at, _)| bits[at / 64] |= 1 << (at % 64));
    let mut out = vec![0i64; rows];
    let copies = nanos_per_row(rows, || drop(black_box(merge_slices(&left, &right, &stretches))));
    let short = nanos_per_row(rows, || short_copies(&left, &right, &stretches, black_box(&mut out)));
    let pick = nanos_per_row(rows, || picked(&both, &picks, black_box(&mut out)));
    assert!(out.is_sorted());
    let simd = nanos_per_row(rows, || picked_avx2(&both, &picks, black_box(&mut out)));
    let bit = nanos_per_row(rows, || by_bits(&left, &right, &bits, black_box(&mut out)));
    assert!(out.is_sorted());
    println!("| {rows} | {name} | {copies:.2} | {short:.2} | {pick:.2} | {simd:.2} | {bit:.2} |");
}
