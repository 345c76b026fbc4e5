//! Measures the cost of upsert keys on one core in memory: parsing, deduplication, log encoding and publishing, without
//! sync.
//!
//! `cargo run --release -p tidalite-ingest --example dedup_speed FILE [ROWS]` reads lines of the TSBS shape (table cpu,
//! tag hostname). Each line of the output describes the commits and shows the median of five runs without and with
//! keys.

use std::io::Read;
use std::time::Instant;
use tidalite_ingest::apply::publish;
use tidalite_ingest::catalog::Catalog;
use tidalite_ingest::commit::command::commit_command;
use tidalite_ingest::commit::commit_batches;
use tidalite_ingest::dedup::{self, Wins};
use tidalite_ingest::line::{LineOptions, LineParser};
use tidalite_ingest::wal::log::Group;
use tidalite_storage::tables::Versions;
use tidalite_types::{Batch, Command, Txn};

const RUNS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file of lines");
    let rows: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(500_000);
    let mut data = Vec::new();
    let file = std::fs::File::open(&path).expect("a file that opens");
    file.take(rows as u64 * 500).read_to_end(&mut data).expect("a readable file");
    let lines: Vec<&[u8]> = data.split_inclusive(|&b| b == b'\n').take(rows).collect();
    for commit_rows in [1_000, 10_000] {
        let commits: Vec<Vec<u8>> = lines.chunks(commit_rows).map(<[_]>::concat).collect();
        let mut twice: Vec<Vec<u8>> = Vec::new();
        commits.iter().for_each(|commit| twice.extend([commit.clone(), commit.clone()]));
        let mut late = commits.clone();
        fastrand::Rng::with_seed(1).shuffle(&mut late);
        measure(&format!("in order, {commit_rows} rows a commit"), &commits);
        measure(&format!("every commit twice, {commit_rows} rows"), &twice);
        measure(&format!("commits shuffled, {commit_rows} rows"), &late);
    }
}

fn measure(name: &str, commits: &[Vec<u8>]) {
    let median = |has_keys: bool| {
        let mut seconds: Vec<f64> = (0..RUNS).map(|_| run(commits, has_keys)).collect();
        seconds.sort_by(f64::total_cmp);
        seconds[RUNS / 2]
    };
    let (without, with) = (median(false), median(true));
    println!("{name:44} {:7.1} ms without, {:7.1} ms with keys: {:.3}", without * 1e3, with * 1e3, without / with);
}

fn run(commits: &[Vec<u8>], has_keys: bool) -> f64 {
    let (mut catalog, mut versions, mut txn) = (Catalog::default(), Versions::default(), Txn(0));
    let mut parser = LineParser::new(LineOptions::default());
    let mut group = Group::default();
    let start = Instant::now();
    for (at, commit) in commits.iter().enumerate() {
        parser.parse(commit, 0).expect("good lines");
        let batches: Vec<Batch> = parser.take();
        txn = txn.next();
        let mut ops = commit_batches(&mut catalog, batches, true, txn).expect("it is accepted");
        if has_keys && dedup::concerns(&catalog, &ops) {
            ops = dedup::resolve(&catalog, &ops, txn, Wins::Last, |id| versions.get(id).cloned())
                .expect("nothing is read");
        }
        group.push(txn, &ops);
        group.clear();
        publish(&mut versions, &catalog, txn, ops);
        if at == 0 && has_keys {
            let keys = ["timestamp", "hostname"].map(str::to_owned).to_vec();
            let command = Command::SetDedup { table: "cpu".to_owned(), keys };
            txn = txn.next();
            let ops = commit_command(&mut catalog, command).expect("the keys are there");
            publish(&mut versions, &catalog, txn, ops);
        }
    }
    start.elapsed().as_secs_f64()
}
