//! Names of columns: for messages, and those that are likely names of times.

use super::super::CsvColumn;

/// Largest number of columns that a message names.
const LISTED_MAX: usize = 100;

/// Returns names of columns for a message.
pub(super) fn list(columns: &[CsvColumn]) -> String {
    let shown: Vec<&str> = columns.iter().take(LISTED_MAX).map(|c| c.name.as_str()).collect();
    shown.join(", ") + if columns.len() > LISTED_MAX { ", …" } else { "" }
}

/// Likely names of a designated timestamp, the likeliest first.
pub(super) const TIME_NAMES: [&str; 5] = ["timestamp", "ts", "time", "datetime", "date"];

/// Returns true if the name of a column begins or ends with a word for times.
pub(super) fn is_time_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let is_word = |word: &str| TIME_NAMES.contains(&word) || matches!(word, "epoch" | "unixtime" | "day");
    words.iter().any(|word| is_word(word)) || ["timestamp", "date", "time"].iter().any(|end| lower.ends_with(end))
}
