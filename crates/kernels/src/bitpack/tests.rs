use super::*;

#[test]
fn what_is_packed_comes_back_in_row_order() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut unpacker = Unpacker::new();
    for width in 0..=64 {
        for rows in [1, 15, 16, 17, 63, 64, 65, 500, 1023, 1024] {
            let reference = rng.i64(..);
            let distances: Vec<u64> = (0..rows).map(|_| rng.u64(..) & width_mask(width)).collect();
            let values: Vec<i64> = distances.iter().map(|d| reference.wrapping_add(*d as i64)).collect();
            let mut bytes = vec![7; 3];
            pack(&values, reference, width, &mut bytes);
            assert_eq!(bytes.len() - 3, line_count(width, rows) * LINE_BYTES);
            let lines = bytes[3..].as_chunks().0;
            assert!((0..rows).all(|row| unpack_plain(lines, width, row) == distances[row]), "{width} bits");
            assert!((0..rows).all(|row| unpack_one(lines, width, row) == distances[row]), "{width} bits");
            let mut out = vec![9];
            unpacker.unpack(lines, width, reference, rows, &mut out);
            assert_eq!((out[0], &out[1..]), (9, &values[..]), "{rows} rows of {width} bits");
            if width <= 32 {
                let mut out = [9; VECTOR];
                unpack_distances(lines, width, rows, &mut out);
                assert!(distances.iter().zip(out).all(|(a, b)| *a == u64::from(b)), "{rows} rows of {width} bits");
            }
        }
    }
}

fn round_trip<T: Int + std::fmt::Debug>(values: &[T]) {
    let lo = *values.iter().min().unwrap();
    let width = crate::width_of(values, lo);
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    pack(values, lo, width, &mut bytes);
    Unpacker::new().unpack(bytes.as_chunks().0, width, lo, values.len(), &mut out);
    assert_eq!(out, values);
}

#[test]
fn every_integer_type_keeps_its_extremes() {
    round_trip(&[i8::MIN, 0, i8::MAX]);
    round_trip(&[i16::MIN, -1, i16::MAX]);
    round_trip(&[i32::MIN, 5, i32::MAX]);
    round_trip(&[i64::MIN, i64::MAX, 0]);
    round_trip(&[u32::MAX, 0, 7]);
    round_trip(&[u64::MAX, 1 << 40, 0]);
}

#[test]
fn a_full_vector_is_as_many_lines_as_bits() {
    (0..=64).for_each(|width| assert_eq!(line_count(width, VECTOR), width as usize));
    assert_eq!(line_count(13, 100), 2);
}
