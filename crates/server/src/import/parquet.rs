//! Parquet, by the query engine's own reader.

use super::args::ImportArgs;
use super::place::Place;
use super::report::Done;
use super::source::Source;
use crate::shell::target::Answer;
use tidalite::types::PartitionBy;

pub fn import(source: &Source, asked: &ImportArgs, place: &Place) -> Result<Done, String> {
    let table = source.table(asked)?;
    let quoted = format!("\"{}\"", table.replace('"', "\"\""));
    let rows = format!("SELECT * FROM read_parquet('{}')", source.path()?.replace('\'', "''"));
    let is_there = place.target().is_some() && place.has(&table)?;
    let columns = &asked.options.known.columns;
    if is_there && !columns.is_empty() {
        return Err(format!("table \"{table}\" exists and has its types: --columns is for a new table"));
    }
    let sql = if is_there {
        format!("INSERT BATCH 1000000 INTO {quoted} {rows}")
    } else {
        let timestamp = match &asked.options.known.timestamp {
            Some(name) => Some(name.clone()),
            None => first_time(place, &rows)?,
        };
        let by = asked.options.partition_by.unwrap_or(PartitionBy::Day);
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let timestamp = timestamp.map(|name| format!(" TIMESTAMP({}) PARTITION BY {by}", quote(&name)));
        let casts: String = columns.iter().map(|(name, t)| format!(", CAST({} AS {t})", quote(name))).collect();
        format!("CREATE TABLE {quoted} AS ({rows}){casts}{}", timestamp.unwrap_or_default())
    };
    if asked.is_dry_run {
        return Ok(Done { plan: Some(sql + ";"), ..Done::default() });
    }
    let before = if is_there { count(place, &quoted)? } else { 0 };
    place.ask(&sql)?;
    let rows = count(place, &quoted)?.saturating_sub(before);
    Ok(Done { tables: vec![table], rows, bytes: source.bytes.unwrap_or(0), ..Done::default() })
}

fn first_time(place: &Place, rows: &str) -> Result<Option<String>, String> {
    let Answer::Rows { columns, .. } = place.ask(&format!("{rows} LIMIT 0"))? else { return Ok(None) };
    Ok(columns.into_iter().find(|c| c.type_name.starts_with("TIMESTAMP")).map(|c| c.name))
}

fn count(place: &Place, quoted: &str) -> Result<u64, String> {
    match place.ask(&format!("SELECT count(*) FROM {quoted}"))? {
        Answer::Rows { rows, .. } => {
            let first = rows.first().and_then(|row| row.first());
            first.and_then(|n| n.get().parse().ok()).ok_or_else(|| "could not count the rows".to_owned())
        }
        Answer::Done { .. } => Err("could not count the rows".to_owned()),
    }
}
