//! A plan in words: what is read, what is done to the rows, and, when it has run, how many they were and how long each
//! step took.
//!
//! Steps stand above those that they take their rows from. Operators of ours say themselves what they are.

use crate::exec::{decoded, sliced, sorted, windows};
use crate::functions::floats;
use crate::plan::ROWS_MAX;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

pub(super) fn text(plan: &dyn ExecutionPlan, is_analyze: bool) -> String {
    let mut out = String::new();
    step(plan, 0, is_analyze, &mut out);
    out
}

fn step(plan: &dyn ExecutionPlan, depth: usize, is_analyze: bool, out: &mut String) {
    // Steps that only pass rows on.
    let is_silent =
        ["CooperativeExec", "HeldExec", "PacedExec", "CoalesceBatchesExec", decoded::NAME].contains(&plan.name());
    if !is_silent {
        // As it is written.
        let words = words(plan).replace("count(Int64(1))", "count(*)");
        let _ = write!(out, "{}{words}", "  ".repeat(depth));
        if is_analyze {
            out.push_str(&measured(plan));
        }
        out.push('\n');
    }
    for child in plan.children() {
        step(child.as_ref(), depth + usize::from(!is_silent), is_analyze, out);
    }
}

/// Nobody has more.
const THREADS_MAX: usize = 1_024;

fn words(plan: &dyn ExecutionPlan) -> String {
    let line = displayable(plan).one_line().to_string();
    let line = line.trim();
    let rest = line.strip_prefix(plan.name()).map_or(line, |rest| rest.trim_start_matches([':', ' ']));
    match plan.name() {
        "ProjectionExec" | sliced::NAME => format!("columns: {}", list(rest, "expr=")),
        "FilterExec" => format!("filter: {}", plain(rest.split(", projection=[").next().unwrap_or(rest))),
        "AggregateExec" => aggregate(rest),
        "RepartitionExec" => repartition(rest),
        "CoalescePartitionsExec" => "gather what threads have".to_owned(),
        "SortPreservingMergeExec" => format!("merge what threads have in order of {}", list(rest, "")),
        "SortExec" | "SortExec(TopK)" => match rest.split_once("fetch=").and_then(|(_, fetch)| fetch.split_once(')')) {
            Some((count, _)) => format!("first {count} in order of {}", list(rest, "expr=")),
            None => format!("sort by {}", list(rest, "expr=")),
        },
        "HashJoinExec" | "SortMergeJoinExec" | "NestedLoopJoinExec" | "SymmetricHashJoinExec" => {
            join(plan.name(), rest)
        }
        "CrossJoinExec" => "every row with every row".to_owned(),
        "GlobalLimitExec" | "LocalLimitExec" => limit(rest),
        "WindowAggExec" | "BoundedWindowAggExec" => window("window", plan),
        windows::NAME => window(windows::NAME, plan),
        sorted::NAME => plain(line),
        "UnionExec" | "InterleaveExec" => "all rows of".to_owned(),
        "EmptyExec" => "no rows".to_owned(),
        "PlaceholderRowExec" => "one row".to_owned(),
        "RecursiveQueryExec" => "repeat until nothing new comes".to_owned(),
        "WorkTableExec" => "rows of the last round".to_owned(),
        "UnnestExec" => "a row for each element of lists".to_owned(),
        _ => line.to_owned(),
    }
}

/// Without the numbers of columns, and without what holds anyway of an order.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, behind) = rest.split_at(at);
        let digits = behind[1..].chars().take_while(char::is_ascii_digit).count();
        let follows_name = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '"' | '*'));
        out.push_str(before);
        if digits == 0 || !follows_name {
            out.push('@');
            rest = &behind[1..];
        } else {
            rest = &behind[1 + digits..];
        }
    }
    out.push_str(rest);
    without_float_keys(&out).replace(" ASC NULLS LAST", "").replace(" DESC NULLS FIRST", " DESC").trim().to_owned()
}

/// Floating point is compared by keys of it, which is nothing that anybody asked for.
fn without_float_keys(text: &str) -> String {
    let call = format!("{}(", floats::KEY);
    let mut out = text.to_owned();
    while let Some(from) = out.find(&call) {
        let inside = from + call.len();
        let mut depth = 1_usize;
        let end = out[inside..].find(|c| {
            depth = match c {
                '(' => depth + 1,
                ')' => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        let Some(end) = end.map(|at| inside + at) else { break };
        out = format!("{}{}{}", &out[..from], &out[inside..end], &out[end + 1..]);
    }
    out
}

/// What stands in the brackets behind `key`.
fn bracketed<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let from = text.find(&format!("{key}["))? + key.len() + 1;
    let mut depth = 0_usize;
    for (at, c) in text[from..].char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' if depth == 0 => return Some(&text[from..from + at]),
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Parts between commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    out.push(text[from..].trim());
    out.retain(|part| !part.is_empty());
    out
}

/// A list of expressions; `a as a` is `a`.
fn list(text: &str, key: &str) -> String {
    let items = bracketed(text, key).unwrap_or(text);
    let shown = parts(items).into_iter().map(|part| {
        let part = plain(part);
        match part.rsplit_once(" as ") {
            Some((expr, name)) if expr == name => name.to_owned(),
            _ => part,
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn aggregate(rest: &str) -> String {
    let by_thread = if rest.starts_with("mode=Partial") { ", each thread its rows" } else { "" };
    let (keys, values) = (list(rest, "gby="), list(rest, "aggr="));
    let values = if values.is_empty() { String::new() } else { format!(": {values}") };
    if keys.is_empty() {
        format!("aggregate{by_thread}{values}")
    } else {
        format!("group by {keys}{by_thread}{values}")
    }
}

fn repartition(rest: &str) -> String {
    let count = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    if let Some((_, hash)) = rest.split_once("Hash(") {
        let keys = bracketed(hash, "").map(|keys| list(keys, "")).unwrap_or_default();
        let threads = hash.rsplit_once("],").map(|(_, n)| count(n.split(')').next().unwrap_or(n))).unwrap_or_default();
        return format!("deal rows out to {threads} threads by {keys}");
    }
    let threads = rest.split_once("RoundRobinBatch(").and_then(|(_, n)| n.split(')').next());
    format!("deal rows out to {} threads", threads.unwrap_or("several"))
}

fn join(name: &str, rest: &str) -> String {
    let kind = rest.split_once("join_type=").and_then(|(_, kind)| kind.split([',', ' ']).next()).unwrap_or("Inner");
    let how = match name {
        "HashJoinExec" => "by hashing",
        "SortMergeJoinExec" => "by merging",
        _ => "row by row",
    };
    let on = bracketed(rest, "on=").map(|on| {
        let pairs = parts(on).into_iter().map(|pair| plain(pair.trim_matches(['(', ')'])).replace(", ", " = "));
        pairs.collect::<Vec<_>>().join(" and ")
    });
    let filter = rest.split_once("filter=").map(|(_, filter)| {
        let filter = filter.split(", projection=[").next().unwrap_or(filter);
        plain(filter)
    });
    let conditions: Vec<String> = on.into_iter().chain(filter).filter(|c| !c.is_empty()).collect();
    let on = if conditions.is_empty() { String::new() } else { format!(" on {}", conditions.join(" and ")) };
    format!("{} join {how}{on}", kind.to_lowercase())
}

fn limit(rest: &str) -> String {
    let of = |key: &str| rest.split_once(key).and_then(|(_, n)| n.split(',').next()).map(str::trim);
    let offset = of("skip=").filter(|n| *n != "0").map_or_else(String::new, |n| format!(" behind the first {n}"));
    let is_bound = |count: &&str| *count != "None" && count.parse().is_ok_and(|rows: i64| rows < ROWS_MAX);
    match of("fetch=").filter(is_bound) {
        Some(count) => format!("at most {count} rows{offset}"),
        None => format!("rows{offset}"),
    }
}

fn window(operator: &str, plan: &dyn ExecutionPlan) -> String {
    let given = plan.children().first().map_or(0, |child| child.schema().fields().len());
    let schema = plan.schema();
    let names: Vec<&str> = schema.fields().iter().skip(given).map(|field| field.name().as_str()).collect();
    format!("{operator}: {}", plain(&names.join(", ")))
}

/// ` (3 rows, 28 µs)`, with what else a step counted.
fn measured(plan: &dyn ExecutionPlan) -> String {
    let Some(metrics) = plan.metrics() else { return String::new() };
    let metrics = metrics.aggregate_by_name().sorted_for_display().timestamps_removed();
    let (mut shown, mut counts, mut time) = (Vec::new(), HashMap::new(), Duration::ZERO);
    for metric in metrics.iter() {
        match metric.value() {
            MetricValue::OutputRows(rows) => shown.push(format!("{} rows", rows.value())),
            // What did not measure has one of each thread.
            MetricValue::ElapsedCompute(spent) if spent.value() > THREADS_MAX => {
                time = Duration::from_nanos(spent.value() as u64);
                shown.push(format!("{time:.1?}"));
            }
            MetricValue::Time { name, time } if name == "time_with_input" => {
                shown.push(format!("{:.1?} with what is below", Duration::from_nanos(time.value() as u64)));
            }
            MetricValue::SpillCount(count) if count.value() > 0 => {
                shown.push(format!("spilled {} times", count.value()));
            }
            MetricValue::SpilledBytes(bytes) if bytes.value() > 0 => {
                shown.push(format!("{} spilled to disk", size(bytes.value() as u64)));
            }
            MetricValue::Count { name, count } if plan.name().starts_with("Tidalite") => {
                counts.insert(name.to_string(), count.value() as u64);
            }
            _ => {}
        }
    }
    shown.extend(counted(&counts, time));
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

/// What steps of ours counted, in words.
fn counted(counts: &HashMap<String, u64>, time: Duration) -> Vec<String> {
    let of = |name: &str| counts.get(name).copied().unwrap_or(0);
    let mut shown = Vec::new();
    if of("blocks_tested") > 0 {
        let (empty, tested) = (of("blocks_empty"), of("blocks_tested"));
        shown.push(format!("{} rows tested", of("rows_tested")));
        shown.push(format!("no hit in {empty} of {tested} blocks"));
    }
    if of("blocks_looked_at") > 0 {
        shown.push(format!("{} blocks looked at", of("blocks_looked_at")));
    }
    if of("vectors") > 0 {
        shown.push(format!("{} of {} vectors skipped", of("vectors_skipped"), of("vectors")));
        let (stored, files, values) = (of("bytes_stored"), of("bytes_from_files"), of("bytes_of_values"));
        shown.push(format!("read {}, {} of it from files", size(stored), size(files)));
        // Of all threads: so the rate is that of one.
        let rate = values as f64 / time.as_nanos().max(1) as f64;
        shown.push(format!("{} of values at {rate:.1} GB/s a thread", size(values)));
    }
    if of("left_to_generic") > 0 {
        shown.push("left to the general operators".to_owned());
    }
    shown
}

/// `1.5 MB`
fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_in_words() {
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(1_500_000), "1.5 MB");
        let counts =
            [("vectors", 64), ("vectors_skipped", 60), ("bytes_stored", 2_000), ("bytes_of_values", 8_000_000)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into_iter().collect();
        assert_eq!(
            counted(&counts, Duration::from_millis(2)),
            [
                "60 of 64 vectors skipped",
                "read 2.0 kB, 0 bytes of it from files",
                "8.0 MB of values at 4.0 GB/s a thread"
            ]
        );
    }

    #[test]
    fn operators_are_told_in_words() {
        assert_eq!(list("expr=[a@0 as a, b@1 + 1 as c]", "expr="), "a, b + 1 as c");
        assert_eq!(
            aggregate("mode=Partial, gby=[k@0 as k], aggr=[sum(t.x), count(Int64(1))]"),
            "group by k, each thread its rows: sum(t.x), count(Int64(1))"
        );
        assert_eq!(aggregate("mode=Final, gby=[], aggr=[min(x)]"), "aggregate: min(x)");
        assert_eq!(repartition("partitioning=Hash([k@0], 2), input_partitions=2"), "deal rows out to 2 threads by k");
        assert_eq!(repartition("partitioning=RoundRobinBatch(4), input_partitions=1"), "deal rows out to 4 threads");
        assert_eq!(
            join(
                "HashJoinExec",
                "mode=CollectLeft, join_type=Left, on=[(a@0, b@1), (s@1, s@2)], filter=x@0 > y@1, projection=[x@0]"
            ),
            "left join by hashing on a = b and s = s and x > y"
        );
        assert_eq!(limit("skip=1, fetch=2"), "at most 2 rows behind the first 1");
        assert_eq!(limit(&format!("skip=1, fetch={ROWS_MAX}")), "rows behind the first 1");
        assert_eq!(plain("ts@0 ASC NULLS LAST, 'a@b' = s@1"), "ts, 'a@b' = s");
        assert_eq!(plain("__float_key(abs(x@1)) DESC, k@0, __float_key(y@2)"), "abs(x) DESC, k, y");
        assert_eq!(plain("__float_key(x@1"), "__float_key(x", "torn");
    }
}
