//! Compares the parser with a slow reference implementation of the grammar in docs/line-protocol.md on random lines.
//!
//! It supports text values; binary values and decimals have separate tests.

use super::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
enum Text {
    Symbol(String),
    Varchar(String),
    Long(i64),
    Double(f64),
    Boolean(bool),
    Timestamp(TimeUnit, i64),
}

#[derive(Debug, Default)]
struct Row {
    line: u32,
    table: String,
    /// Indexed by folded name; `None` for NaN.
    columns: BTreeMap<String, Option<Text>>,
    /// Number of tags and fields, including those without a value.
    items: usize,
    time: Option<(TimeUnit, i64)>,
}

impl Row {
    /// Keeps the first value of a column that is not NULL.
    fn take(&mut self, name: &str, value: Option<Option<Text>>) {
        self.items += 1;
        if let Some(value) = value {
            let held = self.columns.entry(name.to_lowercase()).or_default();
            *held = held.take().or(value);
        }
    }
}

/// The lines before the first invalid one, and its number.
#[derive(Debug, Default)]
struct Read {
    rows: Vec<Row>,
    /// The type of each column of each table so far.
    types: BTreeMap<(String, String), &'static str>,
    /// For each time column: some values are in nanoseconds; some values exceed the range of nanoseconds.
    ///
    /// Both together are an error. The designated timestamp has an empty name here.
    times: BTreeMap<(String, String), (bool, bool)>,
    bad: Option<u32>,
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

type Step<T> = Result<T, ()>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// Returns the length of the line end at the current position.
    fn line_end(&self) -> Option<usize> {
        match self.input.get(self.at..)? {
            [b'\n', ..] => Some(1),
            [b'\r', b'\n', ..] => Some(2),
            _ => None,
        }
    }

    fn spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Returns the unescaped text up to one of `ends` or the line end, which are not consumed.
    fn plain(&mut self, ends: &[u8]) -> Step<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let byte = self.peek().ok_or(())?;
            if self.line_end().is_some() || ends.contains(&byte) {
                return Ok(text);
            }
            if byte == 0 || byte == b'\r' {
                return Err(());
            }
            self.at += 1;
            if byte == b'\\' && b", =\\\n\r".contains(&self.peek().ok_or(())?) {
                text.push(self.input[self.at]);
                self.at += 1;
            } else {
                text.push(byte);
            }
        }
    }

    fn quoted(&mut self) -> Step<String> {
        let mut text = Vec::new();
        loop {
            self.at += 1;
            match self.peek().ok_or(())? {
                b'"' => break,
                b'\\' if self.input.get(self.at + 1).is_some_and(|next| b"\"\\\n\r".contains(next)) => {
                    self.at += 1;
                    text.push(self.input[self.at]);
                }
                byte => text.push(byte),
            }
        }
        self.at += 1;
        match self.peek().ok_or(())? {
            b',' | b' ' | b'\n' | b'\r' => String::from_utf8(text).map_err(drop),
            _ => Err(()),
        }
    }

    /// Parses a field; `None` for a missing value, the inner `None` for a value without a type.
    fn field(&mut self) -> Step<Option<Option<Text>>> {
        if self.peek() == Some(b'"') {
            return self.quoted().map(|text| Some(Some(Text::Varchar(text))));
        }
        let start = self.at;
        let text = self.plain(b", =")?;
        if self.peek() == Some(b'=') || self.input[start..self.at].contains(&b'\\') {
            return Err(());
        }
        let text = String::from_utf8(text).map_err(drop)?;
        if text.is_empty() {
            return Ok(None);
        }
        let (body, last) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
        let integer = || body.parse::<i64>().map_err(drop);
        let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
        let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let value = match (last, text.to_ascii_lowercase().as_str()) {
            (_, "t" | "true") => Text::Boolean(true),
            (_, "f" | "false") => Text::Boolean(false),
            ("i", _) if is_integer => Text::Long(integer()?),
            ("u", _) if is_integer && digits.len() == body.len() => Text::Long(integer()?),
            ("t", _) if is_integer => Text::Timestamp(TimeUnit::Micros, in_range(integer()?, 1)?),
            ("m", _) if is_integer => Text::Timestamp(TimeUnit::Micros, in_range(integer()?, 1_000)?),
            ("n", _) if is_integer => Text::Timestamp(TimeUnit::Nanos, integer()?),
            (_, "nan" | "-nan" | "+nan") => return Ok(Some(None)),
            (last, word) => {
                let is_word = word.contains("inf");
                let value: f64 = text.parse().map_err(drop)?;
                let is_number = !value.is_infinite() && last != "n" && last != "f";
                if !(is_word || is_number) {
                    return Err(());
                }
                Text::Double(value)
            }
        };
        Ok(Some(Some(value)))
    }
}

fn in_range(value: i64, factor: i64) -> Step<i64> {
    let micros = value.checked_mul(factor).ok_or(())?;
    (-62_135_596_800_000_000..253_402_300_800_000_000).contains(&micros).then_some(micros).ok_or(())
}

fn name(bytes: Vec<u8>) -> Step<String> {
    let name = String::from_utf8(bytes).map_err(drop)?;
    let is_bad = |c: char| c.is_control() || c == '\u{feff}';
    if name.is_empty() || name.len() > 127 || name.chars().any(is_bad) { Err(()) } else { Ok(name) }
}

fn read(input: &[u8]) -> Read {
    let mut read = Read::default();
    let mut reader = Reader { input, at: 0 };
    let mut line = 0;
    while reader.at < input.len() {
        line += 1;
        match reader.line(line) {
            Ok(None) => {}
            Ok(Some(row)) if read.take(&row).is_ok() => read.rows.push(row),
            _ => {
                read.bad = Some(line);
                break;
            }
        }
    }
    read
}

impl Reader<'_> {
    fn line(&mut self, line: u32) -> Step<Option<Row>> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.peek() == Some(b'#') {
            while self.peek().is_some_and(|byte| byte != b'\n') {
                self.at += 1;
            }
        }
        if let Some(end) = self.line_end() {
            self.at += end;
            return Ok(None);
        }
        let mut row = Row { line, table: name(self.plain(b", ")?)?, ..Row::default() };
        let mut in_fields = false;
        while self.line_end().is_none() {
            // An extra comma before a space or the line end has no meaning.
            let is_comma = self.peek() == Some(b',');
            self.at += usize::from(is_comma);
            let is_space = self.peek() == Some(b' ');
            self.spaces();
            if self.line_end().is_some() || is_space && in_fields {
                break;
            }
            let start = self.at;
            let key = self.plain(b", =")?;
            if self.peek() != Some(b'=') {
                // Only tags, followed by the timestamp.
                self.at = start;
                if is_space && row.items > 0 { break } else { return Err(()) }
            }
            self.at += 1;
            in_fields |= is_space;
            let value = if in_fields { self.field()? } else { Some(Some(Text::Symbol(self.tag()?))) };
            row.take(&name(key)?, value);
        }
        let text = self.plain(b" ,=")?;
        self.spaces();
        self.at += self.line_end().ok_or(())?;
        row.time = Some(timestamp(&text)?);
        if row.items > 0 { Ok(Some(row)) } else { Err(()) }
    }

    fn tag(&mut self) -> Step<String> {
        let value = self.plain(b", =")?;
        if self.peek() == Some(b'=') { Err(()) } else { String::from_utf8(value).map_err(drop) }
    }
}

fn timestamp(text: &[u8]) -> Step<(TimeUnit, i64)> {
    let text = std::str::from_utf8(text).map_err(drop)?;
    let integer = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        digits.bytes().all(|b| b.is_ascii_digit()).then_some(()).ok_or(())?;
        text.parse::<i64>().map_err(drop)
    };
    match text.strip_suffix(['n', 't', 'm']) {
        None if text.is_empty() => Ok((TimeUnit::Nanos, NOW)),
        None => Ok((TimeUnit::Nanos, integer(text)?)),
        Some(body) if text.ends_with('n') => Ok((TimeUnit::Nanos, integer(body)?)),
        Some(body) => Ok((TimeUnit::Micros, in_range(integer(body)?, if text.ends_with('t') { 1 } else { 1_000 })?)),
    }
}

impl Read {
    /// Sets the types of a row's columns; fails if they have other types.
    fn take(&mut self, row: &Row) -> Step<()> {
        let mut changes = Vec::new();
        for (name, value) in row.columns.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            let key = (row.table.to_lowercase(), name.clone());
            let given = match value {
                Text::Symbol(_) | Text::Varchar(_) => "text",
                Text::Long(_) => "long",
                Text::Double(_) => "double",
                Text::Boolean(_) => "boolean",
                Text::Timestamp(..) => "timestamp",
            };
            let held = self.types.get(&key).copied().unwrap_or(given);
            match (held, given) {
                ("long", "double") => changes.push((key, "double")),
                ("double", "long") => {}
                _ if held == given => changes.push((key, given)),
                _ => return Err(()),
            }
        }
        let times = row.columns.iter().filter_map(|(name, value)| match value {
            Some(Text::Timestamp(unit, time)) => Some((name.clone(), *unit, *time)),
            _ => None,
        });
        let own = row.time.map(|(unit, time)| (String::new(), unit, time));
        let mut held = self.times.clone();
        for (name, unit, time) in times.chain(own) {
            let key = (row.table.to_lowercase(), name);
            // The current time takes the unit of the batch.
            if time == NOW && held.contains_key(&key) {
                continue;
            }
            let (nanos, far) = held.entry(key).or_default();
            *nanos |= unit == TimeUnit::Nanos;
            *far |= unit.convert(time, TimeUnit::Nanos).is_none();
            if *nanos && *far {
                return Err(());
            }
        }
        self.times = held;
        self.types.extend(changes);
        Ok(())
    }
}

/// Returns the value of a batch's column in the form of the reference.
fn value(column: &BatchColumn, row: usize) -> Option<Text> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    column.column.is_valid(row).then(|| match (&column.column.values, column.column_type) {
        (Values::Bit(v), _) => Text::Boolean(v.get(row)),
        (Values::I64(v), ColumnType::Timestamp(unit)) => Text::Timestamp(unit, v[row]),
        (Values::I64(v), _) => Text::Long(v[row]),
        (Values::F64(v), _) => Text::Double(v[row]),
        (Values::U32(v), _) => Text::Symbol(text(column.dictionary.get(v[row] as usize))),
        (Values::Views(v), _) => Text::Varchar(text(v.get(row))),
        other => unreachable!("{other:?}"),
    })
}

fn is_same(held: Option<&Text>, read: Option<&Text>) -> bool {
    let Some((held, read)) = held.zip(read) else { return held.is_none() && read.is_none() };
    match (held, read) {
        (Text::Symbol(a) | Text::Varchar(a), Text::Symbol(b) | Text::Varchar(b)) => a == b,
        (Text::Double(a), Text::Double(b)) => a.to_bits() == b.to_bits(),
        (Text::Double(a), Text::Long(b)) => *a == *b as f64,
        (Text::Timestamp(unit, a), Text::Timestamp(from, b)) => from.convert(*b, *unit) == Some(*a),
        _ => held == read,
    }
}

/// Checks the result of a parser with any history for `text`.
fn compare(parser: &mut LineParser, text: &[u8], cut: usize) {
    parser.reset();
    let error = feed(parser, &[&text[..cut], &text[cut..]]).err();
    let batches = parser.take();
    let shown = String::from_utf8_lossy(text);
    let read = read(text);
    let bad = error.as_ref().map(|error| u32::try_from(error.line).expect("few lines"));
    assert_eq!(bad, read.bad, "{error:?} in {shown}");
    assert_eq!(batches.iter().map(|b| b.rows).sum::<usize>(), read.rows.len(), "{shown}");
    for row in &read.rows {
        let batch = batches.iter().find(|b| b.table.to_lowercase() == row.table.to_lowercase()).expect("a table");
        let at = batch.lines.iter().position(|line| *line == row.line).expect("a row");
        for column in &batch.columns {
            let read = row.columns.get(&column.name.to_lowercase()).and_then(Option::as_ref);
            let held = value(column, at);
            assert!(is_same(held.as_ref(), read), "{held:?}, not {read:?}, in {} of {shown}", column.name);
        }
        for name in row.columns.keys() {
            assert!(batch.columns.iter().any(|c| c.name.to_lowercase() == *name), "column {name} of {shown}");
        }
        let times = batch.timestamps.as_ref().expect("times");
        let (unit, time) = row.time.expect("a time");
        // The current time has the unit of the batch at that line, which a later line may refine.
        let is_now = time == NOW && [NOW, NOW / 1_000, NOW / 1_000 * 1_000].contains(&times.values[at]);
        assert!(is_now || unit.convert(time, times.unit) == Some(times.values[at]), "{time} in {shown}");
    }
}

/// Fragments from which random names are built: plain, unusual and escaped.
const PIECES: [&str; 24] = [
    "a", "b7", "cpu", "é", "日", ".", "-", "/", "%", "(", ")", ":", "\\ ", "\\,", "\\=", "\\\\", "\\n", "\\x", "\"",
    "'", "\\\n", "#", "*", "_total",
];

fn random_name(dice: &mut fastrand::Rng) -> String {
    let name: String = (0..dice.usize(1..4)).map(|_| PIECES[dice.usize(..PIECES.len())]).collect();
    // A comment, or a part of the following text.
    name.trim_start_matches('#').to_owned() + "x"
}

fn random_text(dice: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 14] = [
        "one",
        "two ",
        ",",
        "=",
        "\n",
        "\r\n",
        "\\\"",
        "\\\\",
        "\\n",
        "\\x",
        "é",
        "\t",
        "# ",
        "longer than twelve bytes",
    ];
    (0..dice.usize(..5)).map(|_| PIECES[dice.usize(..PIECES.len())]).collect()
}

fn random_field(dice: &mut fastrand::Rng, kind: usize) -> String {
    match kind {
        0 => format!("{}{}", dice.i64(..) >> dice.u32(..64), "i"),
        1 => format!("{}u", dice.u64(..) >> dice.u32(1..64)),
        2 => ["1", "1.5", "-0.25", "1e3", "NaN", "nan", "-Inf", "Infinity", "5.", "0.1234567890123456789"]
            [dice.usize(..10)]
        .into(),
        3 => ["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"][dice.usize(..10)].to_owned(),
        4 => format!("\"{}\"", random_text(dice)),
        5 => format!("{}{}", dice.i64(-1_000..1_451_606_400_000_000), ["t", "n"][usize::from(dice.u8(..9) == 0)]),
        _ => String::new(),
    }
}

fn random_lines_with_odd_names(dice: &mut fastrand::Rng) -> String {
    let names: Vec<String> = (0..12).map(|_| random_name(dice)).collect();
    let mut text = String::new();
    for _ in 0..dice.usize(1..40) {
        let table = dice.usize(..3);
        text += &names[table];
        for tag in 0..dice.usize(..3) {
            let value: String = (0..dice.usize(..3)).map(|_| PIECES[dice.usize(..PIECES.len())]).collect();
            text += &format!(",{}t{tag}={value}v", names[3 + tag]);
        }
        let gap = |dice: &mut fastrand::Rng| " ".repeat(if dice.u8(..12) == 0 { 2 } else { 1 });
        let mut separator = gap(dice);
        for field in 0..dice.usize(1..6) {
            if dice.u8(..6) > 0 {
                let kind = if dice.u16(..200) == 0 { dice.usize(..7) } else { field };
                text += &format!("{separator}{}{kind}={}", names[5 + field], random_field(dice, kind));
                ",".clone_into(&mut separator);
            }
        }
        if dice.u8(..4) > 0 {
            let time = dice.i64(0..1_451_606_400_000_000);
            text += &format!("{}{time}{}", gap(dice), ["", "", "", "t", "n"][dice.usize(..5)]);
        }
        text += if dice.u8(..20) == 0 { "\r\n" } else { "\n" };
    }
    text
}

#[test]
fn random_lines_with_odd_names_and_escapes_are_read_as_the_grammar_says() {
    for seed in 0..600 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut texts: Vec<String> = (0..3).map(|_| random_lines_with_odd_names(&mut dice)).collect();
        texts.push(texts[0].clone());
        for text in &texts {
            let cut = dice.usize(..=text.len());
            compare(&mut quick, text.as_bytes(), cut);
            compare(&mut plain, text.as_bytes(), cut);
        }
    }
}

#[test]
fn mutated_lines_are_read_as_the_grammar_says() {
    for seed in 0..6_000 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        let good = random_lines_with_odd_names(&mut dice);
        compare(&mut quick, good.as_bytes(), 0);
        let mut text: Vec<char> = good.chars().collect();
        for _ in 0..dice.usize(1..4) {
            let at = dice.usize(..text.len());
            let odd = *dice
                .choice(&['\n', '\r', ' ', ',', '=', '\\', '"', '#', '0', 'i', 'u', '-', 'n', '\0'])
                .expect("not empty");
            match dice.u8(..3) {
                0 => text[at] = odd,
                1 => text.insert(at, odd),
                _ => drop(text.remove(at)),
            }
            if text.is_empty() {
                text.push('\n');
            }
        }
        // Another test covers a last line without its end.
        text.push('\n');
        let text: String = text.into_iter().collect();
        compare(&mut quick, text.as_bytes(), dice.usize(..=text.len()));
    }
}
