//! A run of the generator: what was asked for, and its text piece by piece.

use crate::devops::{self, DEVOPS, Host, Kind};
use crate::iot::{self, Trucks};
use crate::random::Random;
use crate::text::{Format, field_names, host_head, host_row, pairs_header, truck_row};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseCase {
    CpuOnly,
    CpuSingle,
    Devops,
    Iot,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub use_case: UseCase,
    pub seed: i64,
    pub scale: usize,
    pub start_ns: i64,
    pub end_ns: i64,
    pub interval_ns: i64,
    /// 0 for all.
    pub points_max: u64,
    pub format: Format,
}

pub struct Stream {
    asked: Asked,
    source: Source,
    points: u64,
    has_begun: bool,
}

enum Source {
    Hosts(Box<Hosts>),
    Trucks(Box<Trucks>, Vec<iot::Point>),
}

struct Hosts {
    random: Random,
    hosts: Vec<Host>,
    /// For each host and measurement the beginning of its rows.
    heads: Vec<Vec<Vec<u8>>>,
    names: Vec<Vec<Vec<u8>>>,
    epoch: u64,
    epochs: u64,
    measurement: usize,
    values: Vec<devops::Value>,
}

impl Stream {
    #[must_use]
    pub fn new(asked: Asked) -> Stream {
        let epochs = (asked.end_ns.saturating_sub(asked.start_ns) / asked.interval_ns.max(1)).max(0) as u64;
        let kinds: &[Kind] = match asked.use_case {
            UseCase::CpuOnly => &[Kind::Cpu],
            UseCase::CpuSingle => &[Kind::CpuSingle],
            UseCase::Devops => &DEVOPS,
            UseCase::Iot => &[],
        };
        let source = if asked.use_case == UseCase::Iot {
            let trucks = Trucks::new(asked.seed, asked.scale, asked.start_ns, asked.interval_ns, epochs);
            Source::Trucks(Box::new(trucks), Vec::new())
        } else {
            let mut random = Random::new(asked.seed);
            let hosts: Vec<Host> = (0..asked.scale).map(|i| Host::new(i, kinds, &mut random)).collect();
            let head = |host: &Host| host.measurements.iter().map(|m| host_head(host, m, asked.format)).collect();
            let heads = hosts.iter().map(head).collect();
            let names = kinds.iter().map(|kind| field_names(kind.fields())).collect();
            let (epoch, measurement, values) = (0, 0, Vec::new());
            Source::Hosts(Box::new(Hosts { random, hosts, heads, names, epoch, epochs, measurement, values }))
        };
        Stream { asked, source, points: 0, has_begun: false }
    }

    #[must_use]
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Appends some rows; false when there are none left.
    pub fn next(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.has_begun {
            self.has_begun = true;
            if self.asked.format == Format::Pairs {
                out.extend_from_slice(&self.header());
            }
        }
        let Asked { points_max, format, start_ns, interval_ns, .. } = self.asked;
        let left = if points_max == 0 { u64::MAX } else { points_max - self.points };
        if left == 0 {
            return false;
        }
        match &mut self.source {
            Source::Hosts(hosts) => {
                let count = hosts.round(format, start_ns, interval_ns, left, out);
                self.points += count;
                count > 0
            }
            Source::Trucks(trucks, batch) => {
                batch.clear();
                let has_more = trucks.next_batch(batch);
                for point in batch.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                    truck_row(out, format, trucks.truck(point.truck), point);
                    self.points += 1;
                }
                has_more
            }
        }
    }

    fn header(&self) -> Vec<u8> {
        match &self.source {
            Source::Trucks(..) => {
                let kind = |i: usize| if i < iot::TEXT_TAGS { "string" } else { "float32" };
                let tags: Vec<_> = iot::TAGS.iter().enumerate().map(|(i, name)| (*name, kind(i))).collect();
                pairs_header(&tags, &iot::MEASUREMENTS)
            }
            Source::Hosts(hosts) => {
                let tags: Vec<_> = devops::TAGS.iter().map(|name| (*name, "string")).collect();
                let measurements = hosts.hosts.first().map_or(&[][..], |h| &h.measurements);
                let kinds: Vec<_> = measurements.iter().map(|m| (m.kind.name(), m.kind.fields())).collect();
                pairs_header(&tags, &kinds)
            }
        }
    }
}

impl Hosts {
    /// One measurement of all hosts.
    fn round(&mut self, format: Format, start_ns: i64, interval_ns: i64, left: u64, out: &mut Vec<u8>) -> u64 {
        if self.measurement == self.names.len() {
            self.measurement = 0;
            self.epoch += 1;
            if self.epoch < self.epochs {
                for host in &mut self.hosts {
                    host.measurements.iter_mut().for_each(|m| m.tick(&mut self.random));
                }
            }
        }
        if self.epoch >= self.epochs {
            return 0;
        }
        let elapsed_ns = self.epoch as i64 * interval_ns;
        let count = self.hosts.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        for (host, heads) in self.hosts.iter().zip(&self.heads).take(count) {
            self.values.clear();
            host.measurements[self.measurement].values(elapsed_ns / 1_000_000_000, &mut self.values);
            host_row(
                out,
                format,
                &heads[self.measurement],
                &self.names[self.measurement],
                &self.values,
                start_ns + elapsed_ns,
            );
        }
        self.measurement += 1;
        count as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest, Md5};

    const SECOND: i64 = 1_000_000_000;
    const YEAR_2016: i64 = 1_451_606_400 * SECOND;
    const YEAR_2020: i64 = 1_577_836_800 * SECOND;

    fn digest(asked: Asked) -> (usize, usize, String) {
        let (mut stream, mut text) = (Stream::new(asked), Vec::new());
        while stream.next(&mut text) {}
        let hex: String = Md5::digest(&text).iter().map(|b| format!("{b:02x}")).collect();
        (text.iter().filter(|b| **b == b'\n').count(), text.len(), hex)
    }

    /// What the original generators wrote with seed 123.
    #[test]
    fn the_text_is_that_of_the_original_byte_for_byte() {
        let cpu = Asked {
            use_case: UseCase::CpuOnly,
            seed: 123,
            scale: 10,
            start_ns: YEAR_2016,
            end_ns: YEAR_2016 + 3_600 * SECOND,
            interval_ns: 10 * SECOND,
            points_max: 0,
            format: Format::Lines,
        };
        let many = Asked { scale: 4000, end_ns: YEAR_2016 + 86_400 * SECOND, points_max: 8002, ..cpu.clone() };
        let devops = Asked { use_case: UseCase::Devops, scale: 2, end_ns: YEAR_2016 + 600 * SECOND, ..cpu.clone() };
        let iot = Asked {
            use_case: UseCase::Iot,
            start_ns: YEAR_2020,
            end_ns: YEAR_2020 + 3_600 * SECOND,
            interval_ns: 60 * SECOND,
            ..cpu.clone()
        };
        let pairs = |asked: &Asked| Asked { format: Format::Pairs, ..asked.clone() };
        for (name, asked, lines, bytes, md5) in [
            ("cpu-only", cpu.clone(), 3_600, 1_231_111, "9c866314c77b170ccdc48a10dda27d74"),
            ("cpu-only, 4000 hosts", many, 8_002, 2_775_646, "10da8e0ac640f6ae4c71df19d7584136"),
            ("devops", devops, 1_080, 452_976, "65b965d5a0d68f844cf19f947b85185e"),
            ("iot", iot.clone(), 1_078, 254_625, "10a4b2c4797f0b4d0c6c5d23c03fd28e"),
            ("cpu-only as pairs", pairs(&cpu), 7_203, 767_004, "5ed3f2c18ff833c812f3544e2f8981c3"),
            ("iot as pairs", pairs(&iot), 2_160, 206_919, "5157b73bd3f2c5d381ea654bb5192352"),
        ] {
            assert_eq!(digest(asked), (lines, bytes, md5.to_owned()), "{name}");
        }
    }
}
