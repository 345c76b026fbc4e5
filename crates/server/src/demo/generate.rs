//! The data of the demo: line protocol, the same for the same number of hosts.
//!
//! Shaped as TSBS makes them: `cpu` with ten tags and ten whole numbers that walk between 0 and 100, `readings` with
//! eight tags and seven fields of a moving truck.

use std::io::Write;

const START_NS: u64 = 1_451_606_400_000_000_000; // 2016-01-01T00:00:00Z
const STEP_NS: u64 = 60_000_000_000;
const STEPS: u64 = 24 * 60;

const REGIONS: [&str; 9] = [
    "us-east-1",
    "us-west-1",
    "us-west-2",
    "eu-west-1",
    "eu-central-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-1",
    "sa-east-1",
];
const USAGES: [&str; 10] =
    ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
const FLEETS: [&str; 4] = ["East", "West", "North", "South"];
const DRIVERS: [&str; 7] = ["Derek", "Rodney", "Albert", "Andy", "Seth", "Rupert", "Trish"];
const MODELS: [(&str, u32, u32, u32); 3] =
    [("F-150", 2000, 200, 15), ("G-2000", 5000, 300, 19), ("H-2", 1500, 150, 12)];

struct Host {
    tags: String,
    usages: [f64; 10],
}

struct Truck {
    tags: String,
    latitude: f64,
    longitude: f64,
    velocity: f64,
    heading: f64,
}

pub struct Generator {
    random: SplitMix,
    hosts: Vec<Host>,
    trucks: Vec<Truck>,
    step: u64,
}

impl Generator {
    #[must_use]
    pub fn new(count: u32) -> Generator {
        let mut random = SplitMix(123);
        let hosts = (0..count).map(|i| host(i, &mut random)).collect();
        let trucks = (0..count).map(|i| truck(i, &mut random)).collect();
        Generator { random, hosts, trucks, step: 0 }
    }

    #[must_use]
    pub fn row_count(&self) -> u64 {
        STEPS * (self.hosts.len() + self.trucks.len()) as u64
    }

    #[must_use]
    pub fn rows_done(&self) -> u64 {
        self.step * (self.hosts.len() + self.trucks.len()) as u64
    }

    /// Appends the lines of the next minute; false at the end of the day.
    pub fn next_lines(&mut self, out: &mut Vec<u8>) -> bool {
        if self.step == STEPS {
            return false;
        }
        let ts = START_NS + self.step * STEP_NS;
        for host in &mut self.hosts {
            host.write(&mut self.random, ts, out);
        }
        for truck in &mut self.trucks {
            truck.write(&mut self.random, ts, out);
        }
        self.step += 1;
        true
    }
}

fn host(i: u32, random: &mut SplitMix) -> Host {
    let region = random.pick(&REGIONS);
    let zone = random.pick(&["a", "b", "c"]);
    let os = random.pick(&["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]);
    let (arch, team) = (random.pick(&["x64", "x86"]), random.pick(&["SF", "NYC", "LON", "CHI"]));
    let (rack, service, version) = (random.below(100), random.below(20), random.below(2));
    let stage = random.pick(&["production", "staging", "test"]);
    let tags = format!(
        "cpu,hostname=host_{i},region={region},datacenter={region}{zone},rack={rack},os={os},arch={arch},team={team},\
         service={service},service_version={version},service_environment={stage} "
    );
    Host { tags, usages: std::array::from_fn(|_| random.unit() * 100.0) }
}

fn truck(i: u32, random: &mut SplitMix) -> Truck {
    let (fleet, driver) = (random.pick(&FLEETS), random.pick(&DRIVERS));
    let (model, load, fuel, consumption) = MODELS[random.below(MODELS.len() as u64) as usize];
    let version = random.pick(&["v1.0", "v1.5", "v2.0", "v2.3"]);
    let tags = format!(
        "readings,name=truck_{i},fleet={fleet},driver={driver},model={model},device_version={version},\
         load_capacity={load},fuel_capacity={fuel},nominal_fuel_consumption={consumption} "
    );
    Truck {
        tags,
        latitude: random.unit() * 180.0 - 90.0,
        longitude: random.unit() * 360.0 - 180.0,
        velocity: random.unit() * 100.0,
        heading: random.unit() * 360.0,
    }
}

impl Host {
    fn write(&mut self, random: &mut SplitMix, ts: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.tags.as_bytes());
        for (i, (name, usage)) in USAGES.iter().zip(&mut self.usages).enumerate() {
            *usage = (*usage + random.normal()).clamp(0.0, 100.0);
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(out, "{comma}usage_{name}={}i", *usage as u32);
        }
        let _ = writeln!(out, " {ts}");
    }
}

impl Truck {
    fn write(&mut self, random: &mut SplitMix, ts: u64, out: &mut Vec<u8>) {
        self.velocity = (self.velocity + random.normal() * 5.0).clamp(0.0, 100.0);
        self.heading = (self.heading + random.normal() * 10.0).rem_euclid(360.0);
        let meters = self.velocity * 16.7;
        self.latitude = (self.latitude + meters * self.heading.to_radians().cos() / 111_000.0).clamp(-90.0, 90.0);
        self.longitude = (self.longitude + meters * self.heading.to_radians().sin() / 111_000.0).clamp(-180.0, 180.0);
        let elevation = 100.0 + 50.0 * (self.latitude * 7.0).sin();
        let consumption = 5.0 + self.velocity * 0.3;
        let grade = 4.0 * (self.longitude * 11.0).sin();
        out.extend_from_slice(self.tags.as_bytes());
        let _ = writeln!(
            out,
            "latitude={:.5},longitude={:.5},elevation={elevation:.0},velocity={:.0},heading={:.0},grade={grade:.0},\
             fuel_consumption={consumption:.1} {ts}",
            self.latitude, self.longitude, self.velocity, self.heading
        );
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len() as u64) as usize]
    }

    /// About normal, by the sum of four.
    fn normal(&mut self) -> f64 {
        ((0..4).map(|_| self.unit()).sum::<f64>() - 2.0) * 1.73
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::line::{LineOptions, LineParser};

    #[test]
    fn the_lines_are_good_and_always_the_same() {
        let text = || {
            let (mut generator, mut out) = (Generator::new(3), Vec::new());
            while generator.next_lines(&mut out) {}
            assert_eq!(generator.rows_done(), generator.row_count());
            out
        };
        let once = text();
        assert_eq!(once, text());
        let mut parser = LineParser::new(LineOptions::default());
        assert_eq!(parser.parse(&once, 0).unwrap(), once.len());
        let batches = parser.take();
        let rows: Vec<_> = batches.iter().map(|b| (b.table.as_str(), b.rows, b.columns.len())).collect();
        assert_eq!(rows, [("cpu", 4320, 20), ("readings", 4320, 15)]);
    }
}
