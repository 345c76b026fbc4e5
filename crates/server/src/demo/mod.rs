//! `tidalite demo`: a server with some data in it, and how to ask it.
//!
//! The data are those of the Time Series Benchmark Suite, generated here: `cpu` (its "cpu-only" set) and `readings`
//! (of its "iot" set). They come in by line protocol over TCP, as anyone's would.

mod generate;

use crate::config::{Config, Given, Source};
use crate::logging;
use crate::process::{fail, given, socket_runtime, with_settings};
use crate::serve::Server;
use crate::signals::Signals;
use clap::{Arg, ArgAction, ArgMatches, Command};
use futures::StreamExt;
use generate::Generator;
use indicatif::{ProgressBar, ProgressStyle};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidalite::{Database, QueryOptions, Response};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const DATA: &str = "./tidalite-demo-data";

#[must_use]
pub fn command() -> Command {
    with_settings(Command::new("demo").about("Runs the database with some data in it, and says how to query it"))
        .arg(
            Arg::new("check").long("check").action(ArgAction::SetTrue).help("Loads, queries once and exits: for tests"),
        )
        .arg(
            Arg::new("hosts")
                .long("hosts")
                .value_name("N")
                .default_value("100")
                .value_parser(clap::value_parser!(u32))
                .help("Hosts and trucks that report, once a minute for a day"),
        )
        .after_help(format!("The data folder is {DATA} unless --data says otherwise; data loaded before are kept."))
}

#[must_use]
pub fn run(matches: &ArgMatches) -> ExitCode {
    let given = match given(matches) {
        Ok(given) => in_demo_folder(given),
        Err(message) => return fail(2, &message),
    };
    let config = match Config::new(&given) {
        Ok(config) => config,
        Err(error) => return fail(2, &error.to_string()),
    };
    // The demo talks to a person: what is normal needs no log line.
    let level = if given.get("log.level").1 == Source::Default { "warn" } else { &config.log_level };
    logging::start(level, config.log_format);
    let hosts = matches.get_one::<u32>("hosts").copied().unwrap_or(100);
    let runtime = match socket_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("could not start threads: {error}")),
    };
    let ended = runtime.block_on(show(config, hosts, matches.get_flag("check")));
    logging::flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(1, &message),
    }
}

fn in_demo_folder(mut given: Given) -> Given {
    if given.get("data").1 == Source::Default {
        given.set_default("data", DATA);
    }
    given
}

async fn show(config: Config, hosts: u32, check: bool) -> Result<(), String> {
    let mut signals = Signals::listen()?;
    let data = config.database.data.clone();
    let server = Server::start(config).await.map_err(|e| e.to_string())?;
    let (Some(http), Some(ilp)) = (server.addresses.http, server.addresses.ilp) else {
        return Err("the demo needs http.listen and ilp.listen".to_owned());
    };
    let result = load_and_explain(server.database(), http, ilp, hosts).await;
    if result.is_ok() && !check {
        print_out!("\nData folder: {}. Ctrl-C stops the server.", data.display());
        signals.next().await;
    }
    signals.stop(server).await?;
    result
}

async fn load_and_explain(database: &Database, http: SocketAddr, ilp: SocketAddr, hosts: u32) -> Result<(), String> {
    if count(database, "cpu").await? == 0 || count(database, "readings").await? == 0 {
        load(database, ilp, hosts).await?;
    }
    let (cpu, readings) = (count(database, "cpu").await?, count(database, "readings").await?);
    print_out!("{cpu} rows in cpu, {readings} rows in readings.\n");
    let sql = "select hostname, max(usage_user) from cpu group by hostname order by 2 desc, 1 limit 3";
    print_out!("  curl -G http://{http}/exec --data-urlencode \"query={sql}\"");
    print_out!("  tidalite sql --url http://{http} \"{sql}\"");
    print_out!("  tidalite sql --url http://{http}      # a shell");
    print_out!("  http://{http}/ in a browser\n");
    for row in first_column(database, sql).await? {
        print_out!("  {row}");
    }
    print_out!("\nSend your own: curl http://{http}/write --data-binary 'trades,symbol=ETH price=2615.54'");
    print_out!("or point a QuestDB client, Telegraf or tsbs_load_questdb at {ilp}.");
    Ok(())
}

async fn load(database: &Database, ilp: SocketAddr, hosts: u32) -> Result<(), String> {
    let mut generator = Generator::new(hosts);
    let rows = generator.row_count();
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} rows ({per_sec})");
    let bar = ProgressBar::new(rows).with_message("loading").with_style(style.unwrap_or(ProgressStyle::default_bar()));
    let broken = |e: std::io::Error| format!("could not send the data to {ilp}: {e}");
    let started = Instant::now();
    let mut socket = TcpStream::connect(ilp).await.map_err(broken)?;
    let mut text = Vec::new();
    while generator.next_lines(&mut text) {
        socket.write_all(&text).await.map_err(broken)?;
        bar.set_position(generator.rows_done());
        text.clear();
    }
    socket.shutdown().await.map_err(broken)?;
    // There is no acknowledgement over TCP: the data are there when a query sees them.
    while count(database, "cpu").await? + count(database, "readings").await? < rows as i64 {
        if started.elapsed() > PATIENCE {
            return Err("the data did not arrive; the log above says why".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bar.finish_and_clear();
    let seconds = started.elapsed().as_secs_f64();
    print_out!("Loaded {rows} rows by line protocol in {seconds:.2} s ({:.0} rows/s).", rows as f64 / seconds);
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(120);

/// Rows of a table, 0 when there is none.
async fn count(database: &Database, table: &str) -> Result<i64, String> {
    if database.table(table).is_none() {
        return Ok(0);
    }
    let rows = first_column(database, &format!("select count(*) from {table}")).await?;
    rows.first().and_then(|r| r.trim().parse().ok()).ok_or_else(|| format!("could not count the rows of {table}"))
}

/// The rows of an answer, each as text.
async fn first_column(database: &Database, sql: &str) -> Result<Vec<String>, String> {
    let failed = |e: tidalite::Error| format!("{sql}: {e}");
    let options = QueryOptions { client: "demo".to_owned(), ..QueryOptions::default() };
    let Response::Rows(mut rows) = database.execute(sql, options).await.map_err(failed)? else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    while let Some(batch) = rows.stream.next().await {
        let batch = batch.map_err(failed)?;
        for row in 0..batch.num_rows() {
            let mut text = Vec::new();
            for (column, output) in batch.columns().iter().zip(&rows.columns) {
                let column = crate::cells::prepared(column);
                crate::cells::Cells::new(column.as_ref(), &output.type_name).write(
                    row,
                    crate::cells::Style::Text,
                    &mut text,
                );
                text.extend_from_slice(b"  ");
            }
            out.push(String::from_utf8_lossy(&text).trim_end().to_owned());
        }
    }
    Ok(out)
}
