//! The random source of Go's `math/rand`, which the Time Series Benchmark Suite draws from: the same seed gives the same
//! numbers, bit for bit.
//!
//! A lagged Fibonacci generator s(k) = s(k - 607) + s(k - 273) over 64 bits. Its seeds are mixed with the state that the
//! recurrence itself has after [`STEPS`] steps; that state is computed here, by raising x to that power modulo the
//! polynomial of the recurrence.

use std::sync::OnceLock;

const LEN: usize = 607;
const TAP: usize = 334;
const STEPS: u64 = 7_800_000_000_000;
/// The modulus of the multiplicative generator that spreads a seed.
const PRIME: u64 = (1 << 31) - 1;

pub struct Random {
    state: Box<[u64; LEN]>,
    tap: usize,
    feed: usize,
    normal: &'static Normal,
}

fn spread(seed: i64, a: u32, b: u32) -> [u64; LEN] {
    let mut x = seed.rem_euclid(PRIME as i64) as u64;
    if x == 0 {
        x = 89_482_311;
    }
    let mut step = || {
        x = x * 48_271 % PRIME;
        x
    };
    for _ in 0..20 {
        step();
    }
    std::array::from_fn(|_| {
        let (first, second, third) = (step(), step(), step());
        (first << a) ^ (second << b) ^ third
    })
}

type Polynomial = [u64; LEN];

/// `a * b` modulo x^607 = x^334 + 1.
fn product(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut wide = [0_u64; 2 * LEN - 1];
    for (i, &a) in a.iter().enumerate() {
        for (j, &b) in b.iter().enumerate() {
            wide[i + j] = wide[i + j].wrapping_add(a.wrapping_mul(b));
        }
    }
    for i in (LEN..wide.len()).rev() {
        let high = wide[i];
        wide[i - LEN + TAP] = wide[i - LEN + TAP].wrapping_add(high);
        wide[i - LEN] = wide[i - LEN].wrapping_add(high);
    }
    std::array::from_fn(|i| wide[i])
}

fn x_to(mut power: u64) -> Polynomial {
    let (mut result, mut square) = ([0; LEN], [0; LEN]);
    (result[0], square[1]) = (1, 1);
    while power > 0 {
        if power & 1 == 1 {
            result = product(&result, &square);
        }
        square = product(&square, &square);
        power >>= 1;
    }
    result
}

fn mixed_in() -> &'static [u64; LEN] {
    static TABLE: OnceLock<[u64; LEN]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let start = spread(1, 20, 10);
        // s(-606) to s(0).
        let first: Vec<u64> = (0..LEN).map(|i| start[(TAP + LEN - 1 - i) % LEN]).collect();
        let mut power = x_to(STEPS);
        let mut x = [0; LEN];
        x[1] = 1;
        let mut table = [0; LEN];
        for i in 0..LEN as u64 {
            let value = power.iter().zip(&first).fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
            let k = (STEPS - (LEN as u64 - 1) + i) % LEN as u64;
            table[(TAP + LEN - k as usize) % LEN] = value;
            power = product(&power, &x);
        }
        table
    })
}

impl Random {
    #[must_use]
    pub fn new(seed: i64) -> Random {
        let (mixed, spread) = (mixed_in(), spread(seed, 40, 20));
        let state = Box::new(std::array::from_fn(|i| spread[i] ^ mixed[i]));
        Random { state, tap: 0, feed: TAP, normal: Normal::tables() }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.tap = if self.tap == 0 { LEN - 1 } else { self.tap - 1 };
        self.feed = if self.feed == 0 { LEN - 1 } else { self.feed - 1 };
        let value = self.state[self.feed].wrapping_add(self.state[self.tap]);
        self.state[self.feed] = value;
        value
    }

    /// 63 bits.
    #[inline]
    pub fn bits(&mut self) -> i64 {
        (self.next() & i64::MAX as u64) as i64
    }

    /// Below `n`, from 31 bits.
    pub fn below(&mut self, n: i32) -> usize {
        let mut draw = || (self.bits() >> 32) as i32;
        if n & (n - 1) == 0 {
            return (draw() & (n - 1)) as usize;
        }
        let max = (i32::MAX as u32 - (1_u32 << 31) % n as u32) as i32;
        loop {
            let value = draw();
            if value <= max {
                return (value % n) as usize;
            }
        }
    }

    /// Below `n`, from 63 bits.
    pub fn below_long(&mut self, n: i64) -> i64 {
        if n & (n - 1) == 0 {
            return self.bits() & (n - 1);
        }
        let max = (i64::MAX as u64 - (1_u64 << 63) % n as u64) as i64;
        loop {
            let value = self.bits();
            if value <= max {
                return value % n;
            }
        }
    }

    #[inline]
    pub fn unit(&mut self) -> f64 {
        loop {
            let value = self.bits() as f64 / 9_223_372_036_854_775_808.0;
            if value < 1.0 {
                return value;
            }
        }
    }

    #[inline]
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        self.unit() * (high - low) + low
    }

    /// Standard normal, by the ziggurat of Marsaglia and Tsang.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        loop {
            let j = (self.bits() >> 31) as u32 as i32;
            let i = (j & 127) as usize;
            let x = f64::from(j) * f64::from(self.normal.w[i]);
            if j.unsigned_abs() < self.normal.k[i] {
                return x;
            }
            if i == 0 {
                return self.tail(j);
            }
            let (f, above) = (self.normal.f[i], self.normal.f[i - 1]);
            if f + self.unit() as f32 * (above - f) < (-0.5 * x * x).exp() as f32 {
                return x;
            }
        }
    }

    #[cold]
    fn tail(&mut self, j: i32) -> f64 {
        loop {
            let x = -self.unit().ln() * (1.0 / R);
            let y = -self.unit().ln();
            if y + y >= x * x {
                return if j > 0 { R + x } else { -R - x };
            }
        }
    }
}

const R: f64 = 3.442619855899;
const V: f64 = 9.91256303526217e-3;

struct Normal {
    k: [u32; 128],
    w: [f32; 128],
    f: [f32; 128],
}

impl Normal {
    fn tables() -> &'static Normal {
        static TABLES: OnceLock<Normal> = OnceLock::new();
        TABLES.get_or_init(|| {
            let scale = 2_147_483_648.0_f64;
            let density = |x: f64| (-0.5 * x * x).exp();
            let mut tables = Normal { k: [0; 128], w: [0.0; 128], f: [0.0; 128] };
            let (mut x, mut above) = (R, R);
            let q = V / density(x);
            tables.k[0] = (x / q * scale) as u32;
            (tables.w[0], tables.w[127]) = ((q / scale) as f32, (x / scale) as f32);
            (tables.f[0], tables.f[127]) = (1.0, density(x) as f32);
            for i in (1..127).rev() {
                x = (-2.0 * (V / x + density(x)).ln()).sqrt();
                tables.k[i + 1] = (x / above * scale) as u32;
                above = x;
                (tables.f[i], tables.w[i]) = (density(x) as f32, (x / scale) as f32);
            }
            tables
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_go() {
        // From the generator itself, as its documentation and tests have them.
        let table = mixed_in();
        let known = [
            (0, -4_181_792_142_133_755_926_i64),
            (1, -4_576_982_950_128_230_565),
            (2, 1_395_769_623_340_756_751),
            (606, 4_152_330_101_494_654_406),
        ];
        known.iter().for_each(|(i, value)| assert_eq!(table[*i] as i64, *value, "{i}"));
        let mut random = Random::new(1);
        let first = [
            5_577_006_791_947_779_410,
            8_674_665_223_082_153_551,
            6_129_484_611_666_145_821,
            4_037_200_794_235_010_051,
        ];
        assert_eq!(first.map(|_| random.bits()), first);
        let mut random = Random::new(1);
        assert_eq!([0; 10].map(|_| random.below(100)), [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]);
    }
}
