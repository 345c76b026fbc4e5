//! Trucks, their readings and diagnostics, and a network that loses, delays and damages them: the use case iot.

use crate::random::Random;
use crate::walk::{Law, Step, Walk, cut};
use std::collections::VecDeque;

pub const TAGS: [&str; 8] = [
    "name",
    "fleet",
    "driver",
    "model",
    "device_version",
    "load_capacity",
    "fuel_capacity",
    "nominal_fuel_consumption",
];
/// The tags from here on are numbers.
pub const TEXT_TAGS: usize = 5;
pub const MEASUREMENTS: [(&str, &[&str]); 2] = [
    ("readings", &["latitude", "longitude", "elevation", "velocity", "heading", "grade", "fuel_consumption"]),
    ("diagnostics", &["fuel_state", "current_load", "status"]),
];
/// Digits behind the point, field by field; the last of diagnostics is an integer.
const DIGITS: [[i32; 7]; 2] = [[5, 5, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0]];
const BATCH: usize = 10;

#[derive(Debug)]
pub struct Truck {
    pub tags: [String; 8],
    readings: [Walk; 7],
    fuel: Walk,
    status: Walk,
}

impl Truck {
    fn new(number: usize, random: &mut Random) -> Truck {
        let walk = |low: f64, high: f64, min: f64, max: f64, start: f64| {
            Walk::new(Step::Uniform(low, high), Law::Clamped(min, max), start)
        };
        let [latitude, longitude, elevation, heading] = [90.0, 180.0, 500.0, 360.0].map(|max| random.unit() * max);
        let (model, load, fuel, nominal) =
            [("F-150", 2000, 200, 15), ("G-2000", 5000, 300, 19), ("H-2", 1500, 150, 12)][random.below(3)];
        let fleet = ["East", "West", "North", "South"][random.below(4)];
        let driver = ["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"][random.below(6)];
        let version = ["v1.0", "v1.5", "v2.0", "v2.3"][random.below(4)];
        let text = |t: &str| t.to_owned();
        let tags = [format!("truck_{number}"), text(fleet), text(driver), text(model), text(version)];
        let numbers = [load, fuel, nominal].map(|n: u32| n.to_string());
        let [a, b, c, d, e] = tags;
        let [f, g, h] = numbers;
        Truck {
            tags: [a, b, c, d, e, f, g, h],
            readings: [
                walk(-0.005, 0.005, -90.0, 90.0, latitude),
                walk(-0.005, 0.005, -180.0, 180.0, longitude),
                walk(-10.0, 10.0, 0.0, 5000.0, elevation),
                walk(-10.0, 10.0, 0.0, 100.0, 0.0),
                walk(-5.0, 5.0, 0.0, 360.0, heading),
                walk(-5.0, 5.0, 0.0, 100.0, 0.0),
                walk(-5.0, 5.0, 0.0, 50.0, 25.0),
            ],
            fuel: walk(-0.001, 0.0, 0.0, 1.0, 1.0),
            status: Walk::new(Step::Normal(0.0, 1.0), Law::Clamped(0.0, 5.0), 0.0),
        }
    }
}

/// A row on its way.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub truck: u32,
    /// Of [`MEASUREMENTS`].
    pub measurement: u8,
    pub ts_ns: i64,
    pub fields: [f64; 7],
    /// Bits of fields and tags that are missing.
    pub no_fields: u8,
    pub no_tags: u8,
}

/// The points as they were measured, epoch by epoch: readings of all trucks, then diagnostics.
struct Base {
    trucks: Vec<Truck>,
    /// One for all trucks, as the original has it.
    load: f64,
    epoch: u64,
    epochs: u64,
    next: usize,
    start_ns: i64,
    interval_ns: i64,
}

impl Base {
    fn next(&mut self, random: &mut Random) -> Option<Point> {
        let count = self.trucks.len();
        if self.next == 2 * count {
            self.epoch += 1;
            self.next = 0;
            if self.epoch < self.epochs {
                for truck in &mut self.trucks {
                    truck.readings.iter_mut().for_each(|walk| walk.tick(random));
                    truck.fuel.tick(random);
                    if truck.fuel.value == 0.0 {
                        truck.fuel.value = 1.0;
                    }
                    if random.unit() >= 0.95 {
                        self.load = random.uniform(0.0, 5000.0);
                    }
                    truck.status.tick(random);
                }
            }
        }
        if self.epoch >= self.epochs || count == 0 {
            return None;
        }
        let (measurement, truck) = (self.next / count, self.next % count);
        self.next += 1;
        let state = &self.trucks[truck];
        let mut fields = [0.0; 7];
        if measurement == 0 {
            fields = state.readings.map(|walk| walk.value);
        } else {
            fields[..3].copy_from_slice(&[state.fuel.value, self.load, state.status.value]);
        }
        for (field, digits) in fields.iter_mut().zip(DIGITS[measurement]) {
            *field = cut(*field, digits);
        }
        let ts_ns = self.start_ns + self.epoch as i64 * self.interval_ns;
        Some(Point { truck: truck as u32, measurement: measurement as u8, ts_ns, fields, no_fields: 0, no_tags: 0 })
    }
}

/// What happens to the points of a batch, slot by slot.
#[derive(Default)]
struct Slots {
    inserts: [bool; BATCH],
    misses: [bool; BATCH],
    lates: [bool; BATCH],
    no_field: [Option<usize>; BATCH],
    no_tag: [Option<usize>; BATCH],
}

pub struct Trucks {
    base: Base,
    random: Random,
    late_batches: VecDeque<Vec<Point>>,
    late_points: VecDeque<Point>,
    /// The base is exhausted.
    is_over: bool,
}

impl Trucks {
    #[must_use]
    pub fn new(seed: i64, scale: usize, start_ns: i64, interval_ns: i64, epochs: u64) -> Trucks {
        let mut random = Random::new(seed);
        let trucks = (0..scale).map(|i| Truck::new(i, &mut random)).collect();
        let base = Base { trucks, load: 0.0, epoch: 0, epochs, next: 0, start_ns, interval_ns };
        let mut stream =
            Trucks { base, random, late_batches: VecDeque::new(), late_points: VecDeque::new(), is_over: false };
        stream.look_ahead();
        stream
    }

    #[must_use]
    pub fn truck(&self, number: u32) -> &Truck {
        &self.base.trucks[number as usize]
    }

    /// Advancing draws, so that whether there is another point must be known without.
    fn look_ahead(&mut self) {
        let count = self.base.trucks.len();
        let at_end = self.base.epoch + 1 >= self.base.epochs && self.base.next == 2 * count;
        self.is_over = at_end || self.base.epochs == 0 || count == 0;
    }

    fn take_base(&mut self) -> Option<Point> {
        let point = self.base.next(&mut self.random);
        self.look_ahead();
        point
    }

    /// The next points, a batch at a time; false when there are no more.
    pub fn next_batch(&mut self, out: &mut Vec<Point>) -> bool {
        loop {
            if self.is_over {
                if let Some(batch) = self.late_batches.pop_front() {
                    out.extend(batch);
                    return true;
                }
                let count = self.late_points.len().min(BATCH);
                out.extend(self.late_points.drain(..count));
                return count > 0;
            }
            if self.random.unit() < 0.01 {
                for _ in 0..BATCH {
                    if self.is_over {
                        break;
                    }
                    self.take_base();
                }
                continue;
            }
            let is_late = self.random.unit() < 0.05;
            let inserts_previous = !self.late_batches.is_empty() && self.random.unit() < 0.5;
            let slots = self.slots();
            if inserts_previous && let Some(batch) = self.late_batches.pop_front() {
                out.extend(batch);
                return true;
            }
            let batch = self.batch(&slots);
            if is_late {
                self.late_batches.push_back(batch);
                continue;
            }
            out.extend(batch);
            return true;
        }
    }

    fn slots(&mut self) -> Slots {
        let mut slots = Slots::default();
        let mut waiting = self.late_points.len();
        let random = &mut self.random;
        for i in 0..BATCH {
            if waiting > 0 && random.unit() < 0.5 {
                slots.inserts[i] = true;
                waiting -= 1;
            }
            if random.unit() < 0.1 {
                slots.misses[i] = true;
                continue;
            }
            slots.no_field[i] = (random.unit() < 0.1).then(|| random.below(7));
            slots.no_tag[i] = (random.unit() < 0.01).then(|| random.below(8));
            slots.lates[i] = random.unit() < 0.3;
        }
        slots
    }

    fn batch(&mut self, slots: &Slots) -> Vec<Point> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut off = 0;
        let marked = |marks: &[bool; BATCH], slot: usize| marks.get(slot).copied().unwrap_or(false);
        for i in 0..BATCH {
            let found = loop {
                if self.is_over {
                    break None;
                }
                let inserted = marked(&slots.inserts, i + off).then(|| self.late_points.pop_front()).flatten();
                let Some(point) = inserted.or_else(|| self.take_base()) else { break None };
                if marked(&slots.misses, i + off) {
                    off += 1;
                } else if marked(&slots.lates, i + off) {
                    self.late_points.push_back(point);
                    off += 1;
                } else {
                    break Some(point);
                }
            };
            let Some(mut point) = found else { break };
            if let Some(field) = slots.no_field[i] {
                let fields = MEASUREMENTS[usize::from(point.measurement)].1.len();
                point.no_fields |= 1 << (field % fields);
            }
            if let Some(tag) = slots.no_tag[i] {
                point.no_tags |= 1 << tag;
            }
            batch.push(point);
        }
        batch
    }
}
