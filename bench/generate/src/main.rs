//! `tidalite-generate`: the data of benchmarks as text on standard output.
//!
//! Reading order: [`random`] the source of chance; [`walk`] how values move; [`devops`] and [`iot`] what the Time Series
//! Benchmark Suite measures; [`text`] rows as text; [`stream`] a run; [`queries`] what is asked of it; [`bars`] minute bars of a share.
#![forbid(unsafe_code)]

mod bars;
mod devops;
mod iot;
mod queries;
mod random;
mod stream;
mod text;
mod walk;

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;
use stream::{Asked, Stream, UseCase};
use text::Format;

const HELP: &str = "\
tidalite-generate tsbs [--use-case cpu-only|cpu-single|devops|iot] [--seed 123] [--scale 4000]
    [--start-s 1451606400] [--end-s 1451692800] [--log-interval-s 10] [--max-data-points 0]
    [--format influx|questdb|timescaledb|clickhouse]
    byte for byte what tsbs_generate_data writes with the same flags; seconds since 1970
tidalite-generate queries [--seed 123] [--scale 4000] [--start-s 1451606400] [--end-s 1451692801] [--window-s 3600] [--hosts 1] [--count 10]
    windows and hosts of TSBS's queries, a line of JSON each
tidalite-generate bars [--bytes 115343360] [--seed 1]
    minute bars of a share as CSV, about so many bytes
";

/// Written at a time.
const PIECE_BYTES: usize = 1 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(rows) => {
            eprintln!("{rows} rows");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprint!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<u64, String> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().ok_or(HELP)?;
    let mut flags = HashMap::new();
    while let Some(flag) = arguments.next() {
        let name = flag.strip_prefix("--").ok_or_else(|| format!("{flag:?} is no flag\n{HELP}"))?;
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (name.to_owned(), arguments.next().ok_or_else(|| format!("--{name} has no value\n"))?),
        };
        flags.insert(name, value);
    }
    let mut number = |name: &str, default: i64| match flags.remove(name) {
        None => Ok(default),
        Some(text) => text.parse::<i64>().map_err(|_| format!("--{name} is {text:?}, no number\n")),
    };
    let mut out = std::io::stdout().lock();
    let seed = number("seed", 123)?;
    let rows = match what.as_str() {
        "bars" => {
            let bytes = number("bytes", 110 << 20)?;
            no_more(&flags)?;
            pump(&mut out, bars::Bars::new(seed, bytes.max(0) as u64), bars::Bars::next, bars::Bars::rows)
        }
        "queries" => {
            let second = 1_000_000_000;
            let start = number("start-s", 1_451_606_400)?;
            let asked = queries::Asked {
                seed,
                scale: number("scale", 4000)?.max(1) as usize,
                start_ns: start * second,
                end_ns: number("end-s", start + 86_401)? * second,
                window_ns: number("window-s", 3600)? * second,
                hosts: number("hosts", 1)?.max(0) as usize,
                count: number("count", 10)?.max(0) as usize,
            };
            no_more(&flags)?;
            let text: String = queries::queries(asked).iter().map(queries::line).collect();
            out.write_all(text.as_bytes()).map(|()| asked.count as u64)
        }
        "tsbs" => {
            let second = 1_000_000_000;
            let start = number("start-s", 1_451_606_400)?;
            let asked = Asked {
                seed,
                scale: number("scale", 4000)?.max(0) as usize,
                start_ns: start * second,
                end_ns: number("end-s", start + 86_400)? * second,
                interval_ns: number("log-interval-s", 10)?.max(1) * second,
                points_max: number("max-data-points", 0)?.max(0) as u64,
                use_case: use_case(flags.remove("use-case").as_deref().unwrap_or("cpu-only"))?,
                format: format(flags.remove("format").as_deref().unwrap_or("influx"))?,
            };
            no_more(&flags)?;
            pump(&mut out, Stream::new(asked), Stream::next, Stream::points)
        }
        other => return Err(format!("{other:?} is not known\n{HELP}")),
    };
    rows.map_err(|e| format!("could not write: {e}\n"))
}

fn no_more(flags: &HashMap<String, String>) -> Result<(), String> {
    flags.keys().next().map_or(Ok(()), |name| Err(format!("--{name} is not known\n{HELP}")))
}

fn use_case(text: &str) -> Result<UseCase, String> {
    Ok(match text {
        "cpu-only" => UseCase::CpuOnly,
        "cpu-single" => UseCase::CpuSingle,
        "devops" => UseCase::Devops,
        "iot" => UseCase::Iot,
        other => return Err(format!("use case {other:?} is not known\n{HELP}")),
    })
}

fn format(text: &str) -> Result<Format, String> {
    Ok(match text {
        "influx" | "questdb" => Format::Lines,
        "timescaledb" | "clickhouse" => Format::Pairs,
        other => return Err(format!("format {other:?} is not known\n{HELP}")),
    })
}

fn pump<S>(
    out: &mut impl Write,
    mut stream: S,
    next: fn(&mut S, &mut Vec<u8>) -> bool,
    rows: fn(&S) -> u64,
) -> std::io::Result<u64> {
    let mut text = Vec::with_capacity(2 * PIECE_BYTES);
    while next(&mut stream, &mut text) {
        if text.len() >= PIECE_BYTES {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)?;
    out.flush()?;
    Ok(rows(&stream))
}
