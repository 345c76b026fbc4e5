//! Speed of the line parser alone, on one core, in memory.
//!
//! `cargo run --release -p tidalite-ingest --example line_speed [RUNS] [FILE]`: without a file, parses generated lines
//! of the TSBS shapes (cpu-only: ten tags and ten integers; iot: five tags and ten floats). Lines are copied in chunks
//! to a buffer as a socket read would do, and taken in batches. Prints minimum and median time of the runs, excluding
//! the copies.

use std::time::{Duration, Instant};
use tidalite_ingest::line::{LineOptions, LineParser};

/// Size in bytes of the server's reads from a busy connection.
const CHUNK_BYTES: usize = 256 << 10;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(11);
    if let Some(path) = arguments.next() {
        let mut data = std::fs::read(&path).expect("a readable file");
        data.truncate(data.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1));
        let batch: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(50_000);
        return measure(&path, &data, runs, batch);
    }
    let mut dice = fastrand::Rng::with_seed(123);
    let cpu = cpu_lines(&mut dice, 4_000, 200_000, false);
    measure("cpu, 4000 hosts, batches of 50000", &cpu, runs, 50_000);
    measure("cpu, 4000 hosts, batches of 10000", &cpu, runs, 10_000);
    measure("cpu, 4000 hosts, batches of 1000", &cpu, runs, 1_000);
    let request: Vec<&[u8]> = cpu[..].split_inclusive(|&b| b == b'\n').take(1_000).collect();
    measure_fresh("cpu, a new parser for every 1000 rows", &request.concat(), runs * 10);
    let shuffled = cpu_lines(&mut dice, 4_000, 200_000, true);
    measure("cpu, hosts in random order, batches of 50000", &shuffled, runs, 50_000);
    let many = cpu_lines(&mut dice, 200_000, 200_000, false);
    measure("cpu, every host once, batches of 50000", &many, runs, 50_000);
    let iot = iot_lines(&mut dice, 200_000);
    measure("iot, batches of 50000", &iot, runs, 50_000);
    let floats = float_lines(&mut dice, 200_000);
    measure("floats of full precision, batches of 50000", &floats, runs, 50_000);
}

fn measure(name: &str, data: &[u8], runs: usize, batch_rows: usize) {
    let mut parser = LineParser::new(LineOptions::default());
    let mut rows = 0;
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let (parsed, time) = parse(&mut parser, data, batch_rows);
            rows = parsed;
            time.as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let report = |what: &str, s: f64| {
        format!(
            "{what} {:7.1} ms {:6.0} MB/s {:5.2} M rows/s",
            s * 1e3,
            data.len() as f64 / s / 1e6,
            rows as f64 / s / 1e6
        )
    };
    println!("{name:46} {rows} rows: {} | {}", report("min", seconds[0]), report("median", seconds[seconds.len() / 2]));
}

/// Like a request over HTTP: a new parser without knowledge of its lines.
fn measure_fresh(name: &str, data: &[u8], runs: usize) {
    let mut seconds: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            let mut parser = LineParser::new(LineOptions::default());
            let made = start.elapsed();
            let (_, time) = parse(&mut parser, data, usize::MAX / 1_000);
            (made + time).as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let rate = |s: f64| data.len() as f64 / s / 1e6;
    println!("{name:46} min {:.0} MB/s | median {:.0} MB/s", rate(seconds[0]), rate(seconds[seconds.len() / 2]));
}

fn parse(parser: &mut LineParser, data: &[u8], batch_rows: usize) -> (usize, Duration) {
    let (mut rows, mut time) = (0, Duration::ZERO);
    // Chunks small enough that a batch ends near the requested number of rows.
    let chunk_bytes = CHUNK_BYTES.min(batch_rows * 330);
    let mut buffer = Vec::with_capacity(chunk_bytes);
    let mut at = 0;
    while at < data.len() {
        let end = (at + chunk_bytes).min(data.len());
        buffer.clear();
        buffer.extend_from_slice(&data[at..end]);
        let start = Instant::now();
        at += parser.parse(&buffer, 0).expect("good lines");
        if parser.rows() >= batch_rows || at == data.len() {
            let batches = parser.take();
            rows += batches.iter().map(|b| b.rows).sum::<usize>();
            std::hint::black_box(batches);
        }
        time += start.elapsed();
    }
    (rows, time)
}

fn cpu_lines(dice: &mut fastrand::Rng, hosts: usize, rows: usize, shuffled: bool) -> Vec<u8> {
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
    const FIELDS: [&str; 10] =
        ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
    let tags: Vec<String> = (0..hosts)
        .map(|host| {
            let region = REGIONS[dice.usize(..9)];
            format!(
                "cpu,hostname=host_{host},region={region},datacenter={region}{},rack={},os={},arch={},team={},service={},service_version={},service_environment={} ",
                ["a", "b", "c"][dice.usize(..3)],
                dice.usize(..100),
                ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"][dice.usize(..3)],
                ["x64", "x86"][dice.usize(..2)],
                ["SF", "NYC", "LON", "CHI"][dice.usize(..4)],
                dice.usize(..20),
                dice.usize(..2),
                ["production", "staging", "test"][dice.usize(..3)],
            )
        })
        .collect();
    let mut out = String::new();
    for row in 0..rows {
        out += &tags[if shuffled { dice.usize(..hosts) } else { row % hosts }];
        for (i, field) in FIELDS.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            out += &format!("{comma}usage_{field}={}i", dice.usize(..101));
        }
        out += &format!(" {}\n", 1_451_606_400_000_000_000 + (row / hosts) as i64 * 10_000_000_000);
    }
    out.into_bytes()
}

fn iot_lines(dice: &mut fastrand::Rng, rows: usize) -> Vec<u8> {
    const TRUCKS: usize = 1_000;
    let tags: Vec<String> = (0..TRUCKS)
        .map(|truck| {
            format!(
                "name=truck_{truck},fleet={},driver={},model={},device_version=v{}.{} ",
                ["South", "North", "East", "West"][dice.usize(..4)],
                ["Trish", "Andy", "Derek", "Rodney", "Albert", "Seth"][dice.usize(..6)],
                ["H-2", "F-150", "G-2000"][dice.usize(..3)],
                dice.usize(1..3),
                dice.usize(..6),
            )
        })
        .collect();
    let mut out = String::new();
    for row in 0..rows {
        let tag = &tags[row / 2 % TRUCKS];
        let time = 1_577_836_800_000_000_000 + (row / 2 / TRUCKS) as i64 * 10_000_000_000;
        let mut whole = |n: u32| dice.u32(..n);
        if row % 2 == 0 {
            let (lat, long) = (whole(9_000_000), whole(18_000_000));
            out += &format!(
                "readings,{tag}load_capacity=1500,fuel_capacity=150,nominal_fuel_consumption=12,latitude={}.{:05},longitude={}.{:05},elevation={},velocity={},heading={},grade={},fuel_consumption={}.{} {time}\n",
                lat / 100_000,
                lat % 100_000,
                long / 100_000,
                long % 100_000,
                whole(500),
                whole(100),
                whole(361),
                whole(100),
                whole(50),
                whole(10)
            );
        } else {
            out += &format!(
                "diagnostics,{tag}load_capacity=1500,fuel_capacity=150,nominal_fuel_consumption=12,fuel_state=0.{},current_load={},status={}i {time}\n",
                whole(10),
                whole(1500),
                whole(6)
            );
        }
    }
    out.into_bytes()
}

fn float_lines(dice: &mut fastrand::Rng, rows: usize) -> Vec<u8> {
    let mut out = String::new();
    for row in 0..rows {
        let mut number = || dice.f64() * 100.0;
        out += &format!(
            "weather,station=station_{} a={},b={},c={},d={} {}\n",
            row % 100,
            number(),
            number(),
            number(),
            number(),
            1_577_836_800_000_000_000_i64 + row as i64 * 1_000_000
        );
    }
    out.into_bytes()
}
