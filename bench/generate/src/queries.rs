//! Parameters of the queries of the Time Series Benchmark Suite: a random window, random hosts.
//!
//! One source of chance for all queries of a run; a query draws its window first, then its hosts, each anew while it is
//! taken already.

use crate::random::Random;
use std::fmt::Write;

#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub seed: i64,
    pub scale: usize,
    pub start_ns: i64,
    /// By convention a second after the data's.
    pub end_ns: i64,
    /// 0 for no window.
    pub window_ns: i64,
    pub hosts: usize,
    pub count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub from_ns: i64,
    pub to_ns: i64,
    pub hosts: Vec<usize>,
}

#[must_use]
pub fn queries(asked: Asked) -> Vec<Query> {
    let mut random = Random::new(asked.seed);
    let room = asked.end_ns - asked.window_ns - asked.start_ns;
    (0..asked.count)
        .map(|_| {
            let mut query = Query { from_ns: asked.start_ns, to_ns: asked.end_ns, hosts: Vec::new() };
            if asked.window_ns > 0 && room > 0 {
                query.from_ns = asked.start_ns + random.below_long(room);
                query.to_ns = query.from_ns + asked.window_ns;
            }
            while query.hosts.len() < asked.hosts.min(asked.scale) {
                let host = random.below(asked.scale as i32);
                if !query.hosts.contains(&host) {
                    query.hosts.push(host);
                }
            }
            query
        })
        .collect()
}

/// As a line of JSON.
#[must_use]
pub fn line(query: &Query) -> String {
    let mut text = format!("{{\"from_ns\":{},\"to_ns\":{},\"hosts\":[", query.from_ns, query.to_ns);
    for (i, host) in query.hosts.iter().enumerate() {
        let _ = write!(text, "{}{host}", if i > 0 { "," } else { "" });
    }
    text + "]}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600 * 1_000_000_000;
    const START: i64 = 1_451_606_400_000_000_000;

    fn found(window_h: i64, hosts: usize) -> Vec<(String, Vec<usize>)> {
        let end_ns = START + 24 * HOUR + 1_000_000_000;
        let asked =
            Asked { seed: 123, scale: 4000, start_ns: START, end_ns, window_ns: window_h * HOUR, hosts, count: 2 };
        let time = |ns: i64| {
            let s = (ns - START) / 1_000_000_000;
            format!("{:02}:{:02}:{:02}", s / 3_600, s / 60 % 60, s % 60)
        };
        queries(asked).into_iter().map(|q| (time(q.from_ns), q.hosts)).collect()
    }

    /// What the original drew with seed 123 for 4000 hosts and a day.
    #[test]
    fn windows_and_hosts_are_those_of_the_original() {
        let one = |time: &str, host| (time.to_owned(), vec![host]);
        assert_eq!(found(1, 1), [one("02:17:08", 249), one("14:03:26", 1435)]);
        assert_eq!(found(12, 1), [one("07:47:52", 249), one("02:58:02", 1435)]);
        assert_eq!(found(8, 1), [one("08:24:59", 249), one("06:40:24", 1435)]);
        let eight = found(1, 8);
        assert_eq!(eight[0], ("02:17:08".to_owned(), vec![249, 1403, 1435, 3539, 3639, 3075, 815, 2121]));
        assert_eq!(eight[1], ("18:07:59".to_owned(), vec![2987, 2302, 3182, 3215, 248, 3701, 1103, 3837]));
        assert_eq!(found(12, 0).into_iter().map(|q| q.0).collect::<Vec<_>>(), ["07:47:52", "10:20:52"]);
        assert_eq!(found(24, 32)[1].1[..3], [2269, 3058, 2574]);
    }
}
