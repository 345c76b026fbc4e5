//! The options of an import: one table for `tidalite import`, `/imp` and COPY.
//!
//! An option has one name, written `date_order` in COPY, `dateOrder` in a URL and `--date-order` on a command line.

use super::text::{Compression, Encoding, TextForm, TextOptions};
use super::{CsvPlan, DateOrder, Known, NumberFormat, OnBad, Text, Thousands, TimeFormat, has_rows};
use crate::{Error, ErrorKind, Result};
use tidalite_types::{ColumnType, PartitionBy, TableSchema};

/// Maximum size of a sample, in bytes; a sample without a row grows up to this size.
const SAMPLE_BYTES_MAX: usize = super::RECORD_BYTES_MAX;

/// The options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    pub known: Known,
    pub text: TextOptions,
    pub partition_by: Option<PartitionBy>,
    pub on_bad: OnBad,
    /// The import fails if more records are skipped, or more values are replaced by NULL.
    pub rejects_max: Option<u64>,
    pub ignores_extra: bool,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct ImportOption {
    pub name: &'static str,
    /// The name on a command line, without its dashes.
    pub flag: &'static str,
    /// Placeholder of the value in the help text, in capitals.
    pub value: &'static str,
    pub help: &'static str,
    set: fn(&mut ImportOptions, &str) -> Result<(), String>,
}

/// All options.
pub const OPTIONS: &[ImportOption] = &[
    ImportOption {
        name: "columns",
        flag: "columns",
        value: "LIST",
        help: "Types of columns and how they are written, as \"ts TIMESTAMP 'dd/MM/yyyy', price DOUBLE '1.234,5'\"; without a header their names",
        set: |options, text| {
            let given = columns(text)?;
            options.known.columns.extend(given.columns);
            options.known.formats.extend(given.formats);
            options.known.numbers.extend(given.numbers);
            Ok(())
        },
    },
    ImportOption {
        name: "timestamp",
        flag: "timestamp",
        value: "COLUMN",
        help: "The designated timestamp of a new table [default: the likeliest column]",
        set: |options, text| set_some(&mut options.known.timestamp, text.to_owned()),
    },
    ImportOption {
        name: "timestamp_format",
        flag: "timestamp-format",
        value: "FORMAT",
        help: "How the designated timestamp is written: a pattern such as 'dd/MM/yyyy HH:mm' or '%d/%m/%Y', dmy, mdy, epoch_s, epoch_ms, epoch_us, epoch_ns, auto",
        set: |options, text| set_some(&mut options.known.timestamp_format, TimeFormat::from_text(text)?),
    },
    ImportOption {
        name: "date_time",
        flag: "date-time",
        value: "DATE,TIME",
        help: "Columns of a date and of a time of day that are the designated timestamp together",
        set: |options, text| {
            let parts =
                text.split_once(',').ok_or_else(|| format!("{text:?} is not two columns with a comma between"))?;
            set_some(&mut options.known.date_and_time, (parts.0.trim().to_owned(), parts.1.trim().to_owned()))
        },
    },
    ImportOption {
        name: "partition_by",
        flag: "partition-by",
        value: "UNIT",
        help: "NONE, HOUR, DAY, WEEK, MONTH or YEAR, of a new table [default: by the rows]",
        set: |options, text| {
            let unit = PartitionBy::from_sql_name(text);
            let unknown = || format!("{text:?} is no unit; it can be NONE, HOUR, DAY, WEEK, MONTH or YEAR");
            set_some(&mut options.partition_by, unit.ok_or_else(unknown)?)
        },
    },
    ImportOption {
        name: "delimiter",
        flag: "delimiter",
        value: "CHAR",
        help: "Between fields [default: found out of , tab ; |]",
        set: |options, text| set_some(&mut options.known.delimiter, delimiter(text)?),
    },
    ImportOption {
        name: "quote",
        flag: "quote",
        value: "CHAR",
        help: "Around fields [default: \" or ' as the file has it]",
        set: |options, text| set_some(&mut options.known.quote, character("quote", text)?),
    },
    ImportOption {
        name: "comment",
        flag: "comment",
        value: "CHAR",
        help: "The first character of lines that are comments [default: # before the names and where lines differ]",
        set: |options, text| set_some(&mut options.known.comment, character("begin of comments", text)?),
    },
    ImportOption {
        name: "skip",
        flag: "skip",
        value: "LINES",
        help: "Lines to leave out before the names or the first row",
        set: |options, text| {
            options.known.skipped_lines = text.parse().map_err(|_| format!("{text:?} is no number of lines"))?;
            Ok(())
        },
    },
    ImportOption {
        name: "header",
        flag: "header",
        value: "WHETHER",
        help: "Whether the first record has the names: yes, no or auto",
        set: |options, text| {
            options.known.has_header = if text.eq_ignore_ascii_case("auto") { None } else { Some(flag(text)?) };
            Ok(())
        },
    },
    ImportOption {
        name: "null",
        flag: "null",
        value: "TEXT",
        help: "The text without quotes that stands for NULL, beside the empty one",
        set: |options, text| set_some(&mut options.known.nulls, vec![text.to_owned()]),
    },
    ImportOption {
        name: "nulls",
        flag: "nulls",
        value: "LIST",
        help: "Texts without quotes that stand for NULL, with commas between [default: NULL and \\N; NA, N/A, NaN, None, - where there is no text]",
        set: |options, text| set_some(&mut options.known.nulls, text.split(',').map(str::to_owned).collect()),
    },
    ImportOption {
        name: "decimal",
        flag: "decimal",
        value: "CHAR",
        help: "The decimal point: . or , [default: as the numbers show]",
        set: |options, text| match text {
            "." | "point" => set_some(&mut options.known.has_decimal_comma, false),
            "," | "comma" => set_some(&mut options.known.has_decimal_comma, true),
            other => Err(format!("{other:?} is no decimal point: a point or a comma is")),
        },
    },
    ImportOption {
        name: "thousands",
        flag: "thousands",
        value: "CHAR",
        help: "Between groups of three digits: comma, point, space, apostrophe or none [default: as the numbers show]",
        set: |options, text| set_some(&mut options.known.thousands, Thousands::from_text(text)?),
    },
    ImportOption {
        name: "date_order",
        flag: "date-order",
        value: "ORDER",
        help: "What 01/02/2024 means: dmy or mdy [default: as the dates of the file show]",
        set: |options, text| match text.to_ascii_lowercase().as_str() {
            "dmy" => set_some(&mut options.known.date_order, DateOrder::DayFirst),
            "mdy" => set_some(&mut options.known.date_order, DateOrder::MonthFirst),
            other => Err(format!("{other:?} is no order of day and month: dmy and mdy are")),
        },
    },
    ImportOption {
        name: "encoding",
        flag: "encoding",
        value: "NAME",
        help: "UTF-8, UTF-16, UTF-16LE, UTF-16BE, Latin-1 or Windows-1252 [default: UTF-8, or UTF-16 as the file begins]",
        set: |options, text| {
            options.text.encoding = Encoding::from_text(text)?;
            Ok(())
        },
    },
    ImportOption {
        name: "compression",
        flag: "compression",
        value: "NAME",
        help: "gzip, zstd or none [default: as the file begins]",
        set: |options, text| {
            options.text.compression = Compression::from_text(text)?;
            Ok(())
        },
    },
    ImportOption {
        name: "on_error",
        flag: "on-error",
        value: "WHAT",
        help: "At a record that is no row: abort, skip it, or null its bad values",
        set: |options, text| {
            options.on_bad = match text.to_ascii_lowercase().replace('_', "").as_str() {
                "abort" | "stop" => OnBad::Abort,
                "skip" | "skiprow" | "ignore" => OnBad::Skip,
                "null" | "skipcol" | "setnull" => OnBad::Null,
                _ => return Err(format!("{text:?} is none of abort, skip and null")),
            };
            Ok(())
        },
    },
    ImportOption {
        name: "max_rejects",
        flag: "max-rejects",
        value: "N",
        help: "More records left out, or values made NULL, than this end the import",
        set: |options, text| {
            set_some(&mut options.rejects_max, text.parse().map_err(|_| format!("{text:?} is no number"))?)
        },
    },
    ImportOption {
        name: "ignore_extra",
        flag: "ignore-extra",
        value: "WHETHER",
        help: "Whether fields behind those of the columns are left out instead of their record",
        set: |options, text| {
            options.ignores_extra = flag(text)?;
            Ok(())
        },
    },
    ImportOption {
        name: "detect",
        flag: "detect",
        value: "WHETHER",
        help: "Whether what is not said is told from the first records: yes; no; or types only, so that every line is the names or a row [default: yes]",
        set: |options, text| {
            let is_types = text.eq_ignore_ascii_case("types");
            options.known.is_complete = !is_types && !flag(text)?;
            options.known.is_exact = is_types || options.known.is_complete;
            Ok(())
        },
    },
];

fn set_some<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
    *place = Some(value);
    Ok(())
}

fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "t" | "1" => Ok(true),
        "no" | "false" | "off" | "f" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither yes nor no")),
    }
}

impl ImportOption {
    /// The name in a URL: `dateOrder`.
    #[must_use]
    pub fn url_name(&self) -> String {
        let mut out = String::new();
        for (n, part) in self.name.split('_').enumerate() {
            let (first, rest) = part.split_at(usize::from(!part.is_empty()));
            out += &if n == 0 { part.to_owned() } else { first.to_ascii_uppercase() + rest };
        }
        out
    }

    /// Sets the option.
    ///
    /// # Errors
    /// Fails if the value is invalid.
    pub fn set(&self, options: &mut ImportOptions, value: &str) -> Result<(), String> {
        (self.set)(options, value)
    }
}

impl ImportOptions {
    /// Plans the import of a text into a table; reads more of the text until there is a row.
    ///
    /// # Errors
    /// Fails like [`CsvPlan::new`], or if the text is not UTF-8 and its invalid values would become NULL.
    pub fn plan(&self, text: &mut Text, table: &str, schema: Option<&TableSchema>) -> Result<CsvPlan> {
        text.grow(SAMPLE_BYTES_MAX, |head| has_rows(head, &self.known))?;
        let mut plan = self.plan_sample(&text.head, text.is_whole, table, schema)?;
        plan.form = text.form;
        Ok(plan)
    }

    /// Plans the import from the beginning of a text.
    ///
    /// # Errors
    /// Fails like [`ImportOptions::plan`].
    pub fn plan_sample(
        &self,
        sample: &[u8],
        is_whole: bool,
        table: &str,
        schema: Option<&TableSchema>,
    ) -> Result<CsvPlan> {
        if self.on_bad == OnBad::Null {
            refuse_other_encodings(sample)?;
        }
        let known = Known { skips_bad: self.on_bad == OnBad::Skip, ..self.known.clone() };
        let mut plan = CsvPlan::new(sample, is_whole, table, schema, known, self.partition_by)?;
        plan.detected.format.ignores_extra = self.ignores_extra;
        (plan.on_bad, plan.rejects_max) = (self.on_bad, self.rejects_max);
        Ok(plan)
    }
}

/// Invalid UTF-8, for example Latin-1, is an error of the file, not a bad value that becomes NULL.
fn refuse_other_encodings(sample: &[u8]) -> Result<()> {
    let Err(error) = std::str::from_utf8(sample) else { return Ok(()) };
    // The end of the sample may split a character.
    if error.error_len().is_none() {
        return Ok(());
    }
    let before = &sample[..error.valid_up_to()];
    let line = super::lines_of(before) + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let message = format!("line {line}, position {}: the text is not UTF-8", before.len() - start + 1);
    let mut refused = Error::new(ErrorKind::Invalid, message);
    refused.line = Some(line);
    refused.hint = Some("option encoding says what it is: Latin-1, Windows-1252, UTF-16".to_owned());
    Err(refused)
}

/// Parses one ASCII character, or its notation in a shell.
///
/// # Errors
/// Fails if the text is none.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        text => character("delimiter", text),
    }
}

fn character(what: &str, text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(format!("{text:?} is no {what}: one ASCII character is")),
    }
}

/// Columns given by a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenColumns {
    pub columns: Vec<(String, ColumnType)>,
    pub formats: Vec<(String, TimeFormat)>,
    pub numbers: Vec<(String, NumberFormat)>,
}

impl GivenColumns {
    /// Adds a column; `format` is the format of its values.
    ///
    /// # Errors
    /// Fails if the type has no such format.
    pub fn push(&mut self, name: &str, column_type: ColumnType, format: Option<&str>) -> Result<(), String> {
        use ColumnType::{Byte, Date, Decimal, Double, Float, Int, Long, Short, Timestamp};
        match (column_type, format.filter(|f| !f.is_empty())) {
            (_, None) => {}
            (Timestamp(_) | Date, Some(format)) => {
                self.formats.push((name.to_owned(), TimeFormat::from_text(format)?));
            }
            (Byte | Short | Int | Long | Float | Double | Decimal { .. }, Some(format)) => {
                self.numbers.push((name.to_owned(), NumberFormat::from_text(format)?));
            }
            (other, Some(_)) => return Err(format!("column \"{name}\" of type {other} takes no format")),
        }
        self.columns.push((name.to_owned(), column_type));
        Ok(())
    }
}

/// Parses `ts TIMESTAMP 'dd/MM/yyyy', "a b" DECIMAL(10,2) '1.234,5'`.
///
/// # Errors
/// Fails if the text is not such a list.
pub fn columns(text: &str) -> Result<GivenColumns, String> {
    let mut out = GivenColumns::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote is not closed")?,
            None => rest.split_once(char::is_whitespace).ok_or_else(|| format!("{rest:?} has no type"))?,
        };
        // A comma in parentheses belongs to the type, a quoted one to the format.
        let (mut depth, mut is_quoted) = (0, false);
        let end = behind.char_indices().find(|(_, c)| {
            is_quoted ^= *c == '\'';
            depth += i32::from(*c == '(') - i32::from(*c == ')');
            *c == ',' && depth == 0 && !is_quoted
        });
        let (one, next) = end.map_or((behind, ""), |(at, _)| (&behind[..at], &behind[at + 1..]));
        let (type_name, format) = match one.split_once('\'') {
            Some((type_name, format)) => {
                let format = format.trim_end().strip_suffix('\'').ok_or("a quote is not closed")?;
                (type_name, Some(format.replace("''", "'")))
            }
            None => (one, None),
        };
        out.push(name, column_type(type_name.trim())?, format.as_deref())?;
        rest = next.trim();
    }
    Ok(out)
}

/// Parses an SQL type name.
///
/// # Errors
/// Fails if there is no such type.
pub fn column_type(name: &str) -> Result<ColumnType, String> {
    if let Some(found) = ColumnType::from_sql_name(name) {
        return Ok(found);
    }
    let unknown = || format!("{name:?} is no type");
    let upper = name.to_ascii_uppercase();
    let (word, inside) = upper.strip_suffix(')').and_then(|n| n.split_once('(')).ok_or_else(unknown)?;
    if !matches!(word.trim(), "DECIMAL" | "NUMERIC") {
        return Err(unknown());
    }
    let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
    let number = |text: &str| text.trim().parse::<u8>().map_err(|_| unknown());
    match (number(precision)?, number(scale)?) {
        (precision @ 1..=38, scale) if scale <= precision => Ok(ColumnType::Decimal { precision, scale }),
        _ => Err(unknown()),
    }
}

/// Describes the detected file format and, for each column, the type, the format and the reason.
#[must_use]
pub fn findings(plan: &CsvPlan) -> Vec<(String, String)> {
    let detected = &plan.detected;
    let quoted = |byte: u8| match byte {
        b'\t' => "tab".to_owned(),
        byte => char::from(byte).to_string(),
    };
    let header = match (detected.has_names(), detected.header_lines) {
        (true, lines) => format!("line {lines}"),
        (false, _) => "none".to_owned(),
    };
    let mut out = vec![
        ("encoding".to_owned(), TextForm::to_string(&plan.form)),
        ("delimiter".to_owned(), quoted(detected.format.delimiter)),
        ("quote".to_owned(), quoted(detected.format.quote)),
        ("header".to_owned(), header),
        ("comment".to_owned(), detected.format.comment.map_or("none".to_owned(), quoted)),
        ("rows looked at".to_owned(), detected.sampled_rows.to_string()),
    ];
    for (column, finding) in detected.columns.iter().zip(&detected.findings) {
        let examples: Vec<String> = finding.examples.iter().map(|e| format!("{e:?}")).collect();
        let shown = if examples.is_empty() { String::new() } else { format!(", as {}", examples.join(" ")) };
        let nulls = if finding.nulls > 0 { format!(", {} NULL", finding.nulls) } else { String::new() };
        let type_name = column.column_type.map_or_else(|| "left out".to_owned(), |t| t.to_string());
        let format = super::format_of(column).map_or_else(String::new, |f| format!(" '{f}'"));
        out.push((format!("column {}", column.name), format!("{type_name}{format}: {}{shown}{nulls}", finding.why)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_types::TimeUnit;

    #[test]
    fn lists_of_columns_are_read() {
        let found = columns("ts TIMESTAMP_NS, \"a b\" decimal(10, 2),s symbol").unwrap();
        let expected = [
            ("ts".to_owned(), ColumnType::Timestamp(TimeUnit::Nanos)),
            ("a b".to_owned(), ColumnType::Decimal { precision: 10, scale: 2 }),
            ("s".to_owned(), ColumnType::Symbol),
        ];
        assert_eq!(found.columns, expected);
        let found = columns("ts TIMESTAMP 'dd/MM/yyyy, HH:mm', d DATE 'epoch_s', v DOUBLE '1.234,5'").unwrap();
        let formats: Vec<String> = found.formats.iter().map(|(_, f)| f.to_string()).collect();
        assert_eq!(formats, ["dd/MM/yyyy, HH:mm", "epoch_s"]);
        assert_eq!(found.numbers[0].1.to_string(), "1.234,5");
        assert_eq!(columns("ts").unwrap_err(), "\"ts\" has no type");
        assert_eq!(columns("ts NOSUCH").unwrap_err(), "\"NOSUCH\" is no type");
        for bad in ["d decimal(40,2)", "\"d INT", "s VARCHAR 'x'", "ts TIMESTAMP 'x", "v INT 'x'", "t DATE 'HH'"] {
            assert!(columns(bad).is_err(), "{bad}");
        }
        assert_eq!((delimiter("\\t"), delimiter(";")), (Ok(b'\t'), Ok(b';')));
        assert!(delimiter("ab").is_err());
    }

    #[test]
    fn every_option_refuses_what_makes_no_sense() {
        let free = ["timestamp", "null", "nulls"];
        for option in OPTIONS {
            let mut options = ImportOptions::default();
            assert_eq!(
                option.set(&mut options, "no such thing").is_ok(),
                free.contains(&option.name),
                "{}",
                option.name
            );
        }
        let names: Vec<String> = OPTIONS.iter().map(ImportOption::url_name).collect();
        assert!(names.contains(&"dateOrder".to_owned()) && names.contains(&"partitionBy".to_owned()));
        assert!(OPTIONS.iter().all(|option| option.flag == option.name.replace('_', "-")));
    }

    #[test]
    fn other_encodings_are_refused_at_their_place() {
        let options = ImportOptions { on_bad: OnBad::Null, ..ImportOptions::default() };
        let error = options.plan_sample(b"a,b\n1,caf\xe9\n", true, "t", None).unwrap_err();
        assert_eq!((error.message.as_str(), error.line), ("line 2, position 6: the text is not UTF-8", Some(2)));
        assert!(error.hint.is_some_and(|hint| hint.contains("encoding")));
    }
}
