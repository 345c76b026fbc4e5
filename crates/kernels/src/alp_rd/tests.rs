use super::*;

fn round_trip(values: &[u64], width: u8) -> Option<f64> {
    let sample: Vec<u64> = values.iter().copied().step_by((values.len() / 256) | 1).collect();
    let (split, cost) = Split::choose(sample, width)?;
    assert!(split.right_bits < width && split.lefts.len().is_power_of_two() && split.lefts.len() <= LEFTS_MAX);
    let (mut words, mut misses) = (Vec::new(), Vec::new());
    split.split(values.iter().copied(), &mut words, &mut misses);
    assert!(words.iter().all(|w| w >> (split.word_bits() - 1) <= 1));
    split.join(&mut words);
    assert!(misses.is_sorted_by(|a, b| a < b));
    misses.iter().for_each(|row| words[usize::from(*row)] = values[usize::from(*row)]);
    assert_eq!(words, values);
    Some(cost)
}

#[test]
fn every_bit_pattern_comes_back() {
    let mut rng = fastrand::Rng::with_seed(1);
    assert_eq!(round_trip(&[], 64), None);
    for round in 0..500 {
        let len = [1, 2, 63, 1000][round % 4];
        let (shift, base) = (rng.u32(0..64), rng.u64(..));
        let values: Vec<u64> = (0..len).map(|_| base ^ rng.u64(..) >> shift).collect();
        round_trip(&values, 64);
        let narrow: Vec<u64> = values.iter().map(|v| v >> 32).collect();
        round_trip(&narrow, 32);
    }
}

#[test]
fn a_walk_of_full_precision_loses_its_left_bits() {
    let mut rng = fastrand::Rng::with_seed(2);
    let mut at = 100.0;
    let walk = |_| {
        at += rng.f64() - 0.5;
        f64::to_bits(at)
    };
    let values: Vec<u64> = (0..1_024).map(walk).collect();
    assert!(round_trip(&values, 64).unwrap() < 58.0);
}
