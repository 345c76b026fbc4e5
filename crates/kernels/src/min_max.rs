//! Returns the smallest and the greatest value of a slice.
//!
//! Floating point is compared as in PostgreSQL: a NaN is greater than every number, −0 equals 0.

/// Independent lanes: a single running minimum would be limited by the latency of each step.
const LANES: usize = 8;

/// A type with a smallest and a greatest value.
pub trait Ordered: Ord + Copy {}
impl<T: Ord + Copy> Ordered for T {}

crate::dispatch! {
wide
/// Returns the smallest and the greatest integer, or `None` for an empty slice.
#[must_use]
pub fn min_max<T: Ordered>(values: &[T]) -> Option<(T, T)> {
    let first = *values.first()?;
    let (mut lo, mut hi) = ([first; LANES], [first; LANES]);
    let (lines, rest) = values.as_chunks::<LANES>();
    for line in lines {
        for lane in 0..LANES {
            lo[lane] = lo[lane].min(line[lane]);
            hi[lane] = hi[lane].max(line[lane]);
        }
    }
    let smallest = lo.iter().chain(rest).copied().min()?;
    let greatest = hi.iter().chain(rest).copied().max()?;
    Some((smallest, greatest))
}
}

macro_rules! float_min_max {
    ($(#[$doc:meta])* $name:ident, $float:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(values: &[$float]) -> Option<($float, $float)> {
            if values.is_empty() {
                return None;
            }
            let (mut lo, mut hi, mut nans) = ([<$float>::INFINITY; LANES], [<$float>::NEG_INFINITY; LANES], 0usize);
            let (lines, rest) = values.as_chunks::<LANES>();
            for line in lines {
                let mut line_nans = [0u8; LANES];
                for lane in 0..LANES {
                    // Comparisons with NaN are false, so a NaN changes neither value.
                    lo[lane] = if line[lane] < lo[lane] { line[lane] } else { lo[lane] };
                    hi[lane] = if line[lane] > hi[lane] { line[lane] } else { hi[lane] };
                    line_nans[lane] = u8::from(line[lane].is_nan());
                }
                nans += line_nans.iter().map(|n| usize::from(*n)).sum::<usize>();
            }
            nans += rest.iter().filter(|v| v.is_nan()).count();
            if nans == values.len() {
                return Some((<$float>::NAN, <$float>::NAN));
            }
            let smallest = lo.iter().chain(rest).copied().fold(<$float>::INFINITY, <$float>::min);
            let greatest = hi.iter().chain(rest).copied().fold(<$float>::NEG_INFINITY, <$float>::max);
            // Adding 0 converts −0 to 0.
            Some((smallest + 0.0, if nans > 0 { <$float>::NAN } else { greatest + 0.0 }))
        }
    };
}

float_min_max!(/// Smallest and greatest double: a NaN among them makes the greater NaN, only NaNs both; `None` of nothing.
    min_max_f64, f64);
float_min_max!(/// As [`min_max_f64`].
    min_max_f32, f32);

/// Reference implementation of [`min_max_f64`].
#[must_use]
pub fn min_max_f64_plain(values: &[f64]) -> Option<(f64, f64)> {
    let key = |v: &f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
    let compare = |a: &f64, b: &f64| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    Some((values.iter().map(key).min_by(compare)?, values.iter().map(key).max_by(compare)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_agree_with_the_iterator() {
        let mut rng = fastrand::Rng::with_seed(1);
        for len in 0..200 {
            let values: Vec<i64> = (0..len).map(|_| rng.i64(..) >> rng.u32(0..64)).collect();
            let expected = values.iter().copied().min().zip(values.iter().copied().max());
            assert_eq!(min_max(&values), expected);
        }
    }

    #[test]
    fn doubles_agree_with_the_plain_twin() {
        let mut rng = fastrand::Rng::with_seed(2);
        let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0];
        for round in 0..2000 {
            let choices = rng.usize(1..=special.len());
            let values: Vec<f64> = (0..round % 70)
                .map(|_| if rng.u8(..) < 100 { special[rng.usize(..choices)] } else { rng.f64() - 0.5 })
                .collect();
            let bits = |b: Option<(f64, f64)>| b.map(|(lo, hi)| (lo.to_bits(), hi.to_bits()));
            assert_eq!(bits(min_max_f64(&values)), bits(min_max_f64_plain(&values)), "{values:?}");
            let narrow: Vec<f32> = values.iter().map(|v| *v as f32).collect();
            let wide: Vec<f64> = narrow.iter().map(|v| f64::from(*v)).collect();
            let widened = min_max_f32(&narrow).map(|(lo, hi)| (f64::from(lo), f64::from(hi)));
            assert_eq!(bits(widened), bits(min_max_f64(&wide)));
        }
    }
}
