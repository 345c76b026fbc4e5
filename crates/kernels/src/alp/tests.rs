use super::*;

fn decimals(rng: &mut fastrand::Rng, places: i8, digits: u32) -> f64 {
    let d = rng.i64(-INT_MAX..=INT_MAX) >> (51 - digits.min(51));
    value(d, places)
}

fn shapes(rng: &mut fastrand::Rng, len: usize) -> Vec<f64> {
    let (places, digits) = (rng.i8(-15..=15), rng.u32(1..52));
    let special =
        [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324];
    let rare = rng.u8(0..60);
    (0..len)
        .map(|_| match rng.u8(..) {
            n if n < rare => special[rng.usize(..special.len())],
            n if n < rare + rare / 4 => f64::from_bits(rng.u64(..)),
            _ => decimals(rng, places, digits),
        })
        .collect()
}

#[test]
fn every_decimal_that_fits_has_its_integer() {
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..200_000 {
        let (scale, digits) = (rng.i8(0..=15), rng.u32(1..50));
        let d = rng.i64(-INT_MAX..=INT_MAX) >> (51 - digits);
        // Users write decimals as text; the parser of std rounds text correctly.
        let sign = if d < 0 { "-" } else { "" };
        let v: f64 = format!("{sign}{}e-{scale}", d.unsigned_abs()).parse().unwrap();
        if d != 0 {
            assert_eq!(integer(v, scale), d, "{v} at {scale}");
        }
    }
}

#[test]
fn integers_give_their_values_back_on_every_path() {
    let mut rng = fastrand::Rng::with_seed(2);
    for round in 0..3_000 {
        let values = shapes(&mut rng, [0, 1, 7, 8, 9, 64, 1000, 1024][round % 8]);
        let scale = rng.i8(SCALES);
        let (mut plain, mut fast) = (vec![0; values.len()], vec![0; values.len()]);
        let (lo, hi, misses) = integers_plain(&values, scale, &mut plain);
        let found = integers(&values, scale, &mut fast);
        // The fast path may miss if multiplication by an inexact power is off by one; the reverse never happens.
        for ((v, plain), fast) in values.iter().zip(&plain).zip(&fast) {
            assert!(plain == fast || *fast == MISS && scale < 0, "{v} at {scale}: {plain} {fast}");
            assert!(*fast == MISS || super::value::<f64>(*fast, scale).to_bits() == v.to_bits());
        }
        if scale >= 0 {
            assert_eq!(found.2, misses);
            assert!(misses == values.len() || (found.0, found.1) == (lo, hi));
        }
        let kept: Vec<i64> = fast.iter().copied().filter(|d| *d != MISS).collect();
        assert_eq!(found.2, values.len() - kept.len());
        assert!(kept.is_empty() || (kept.iter().min(), kept.iter().max()) == (Some(&found.0), Some(&found.1)));
    }
}

fn assert_unpacked<T: Decimal + std::fmt::Debug>(distances: &[u64], width: u32, (base, scale): (i64, i8)) {
    let mut bytes = Vec::new();
    crate::pack(distances, 0, width, &mut bytes);
    let (mut unpacker, lines) = (Unpacker::new(), bytes.as_chunks().0);
    let mut fast: Vec<T> = Vec::new();
    unpack(&mut unpacker, lines, width, (base, scale), distances.len(), &mut fast);
    let mut plain: Vec<T> = Vec::with_capacity(distances.len());
    unpack_plain(unpacker.words(), lines, width, (base, scale), &mut plain.spare_capacity_mut()[..distances.len()]);
    // SAFETY: `unpack_plain` has written all of them.
    unsafe { plain.set_len(distances.len()) };
    for (row, x) in distances.iter().enumerate() {
        let defined: T = super::value(base + *x as i64, scale);
        assert!(plain[row].same_bits(defined) && fast[row].same_bits(defined), "{x} + {base} at {scale}");
    }
}

#[test]
fn the_fast_way_rounds_as_division_does() {
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..4_000 {
        let scale = SCALES.start() + (round % 31) as i8;
        let base = rng.i64(-INT_MAX..=INT_MAX) >> rng.u32(0..51);
        let width = rng.u32(0..=(INT_MAX - base).max(1).ilog2());
        let distances: Vec<u64> = (0..rng.usize(0..=VECTOR)).map(|_| rng.u64(0..1 << width)).collect();
        assert_unpacked::<f64>(&distances, width, (base, scale));
        assert_unpacked::<f32>(&distances, width, (base, scale));
    }
}

#[test]
fn narrow_floats_come_back() {
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..100_000 {
        let v: f32 = format!("{}e-{}", rng.i32(-999_999..=999_999), rng.u8(0..8)).parse().unwrap();
        if v != 0.0 {
            let (scale, d) = least_scale(v).expect("a short decimal");
            assert_eq!(value::<f32>(d, scale).to_bits(), v.to_bits());
        }
    }
}

#[test]
fn the_least_scale_leaves_zeros_out() {
    assert_eq!(least_scale(19.99), Some((2, 1999)));
    assert_eq!(least_scale(58.0), Some((0, 58)));
    assert_eq!(least_scale(1_500_000.0), Some((-5, 15)));
    assert_eq!(least_scale(0.1f32), Some((1, 1)));
    assert_eq!(least_scale(1.0 / 3.0), None);
    assert_eq!(least_scale(f64::NAN), None);
    assert_eq!(least_scale(-0.0), None);
}

#[test]
fn a_constant_becomes_the_integer_where_the_answer_turns() {
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..20_000 {
        let scale = rng.i8(SCALES);
        let d = rng.i64(-INT_MAX + 2..=INT_MAX - 2) >> rng.u32(0..50);
        let v: f64 = super::value(d, scale);
        let constant = match rng.u8(0..6) {
            0 => v.next_up(),
            1 => v.next_down(),
            2 => (v + super::value::<f64>(d + 1, scale)) / 2.0,
            3 => f64::from_bits(rng.u64(..)),
            _ => v,
        };
        for or_equal in [true, false] {
            let first = first_from::<f64>(constant, or_equal, scale);
            let is_from = |d: i64| {
                let v: f64 = super::value(d, scale);
                if or_equal { v >= constant } else { v > constant }
            };
            assert!(first > INT_MAX || is_from(first), "{constant} at {scale}: {first}");
            assert!(first <= -INT_MAX || !is_from(first - 1), "{constant} at {scale}: {first}");
        }
    }
    assert_eq!(first_from::<f64>(f64::NAN, true, 2), INT_MAX + 1);
    assert_eq!(first_from::<f64>(-0.0, true, 2), 0);
    assert_eq!(first_from::<f64>(0.0, false, 2), 1);
}
