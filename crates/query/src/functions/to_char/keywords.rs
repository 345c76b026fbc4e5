//! Time patterns split into keywords, as table 9.28 of PostgreSQL's documentation lists them.

/// The meaning of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Ad {
        has_points: bool,
    },
    Am {
        has_points: bool,
    },
    Century,
    DayName,
    DayNameShort,
    DayOfYear,
    DayOfMonth,
    /// Sunday is 1.
    DayOfWeek,
    /// The given number of digits of the fraction of a second.
    Fraction(usize),
    Hour24,
    Hour12,
    IsoDayOfYear,
    IsoDayOfWeek,
    IsoWeek,
    /// The given number of last digits of the ISO week-numbering year.
    IsoYear(usize),
    Julian,
    Minute,
    MonthNumber,
    MonthName,
    MonthNameShort,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Offset,
    OffsetHours,
    OffsetMinutes,
    Quarter,
    MonthRoman,
    Second,
    SecondOfDay,
    Zone,
    WeekOfMonth,
    WeekOfYear,
    YearWithComma,
    /// The given number of last digits of the year.
    Year(usize),
}

/// The case of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Upper,
    Lower,
    Capital,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Field(Field),
}

/// A keyword with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub keyword: Keyword,
    pub letters: Letters,
    /// FM: without padding.
    pub is_bare: bool,
    /// TH or th: with the ending of an ordinal number.
    pub ordinal: Option<Letters>,
}

use Keyword as K;

/// Keywords in upper case; a longer keyword precedes its prefixes.
const KEYWORDS: &[(&str, Keyword)] = &[
    ("A.D.", K::Ad { has_points: true }),
    ("A.M.", K::Am { has_points: true }),
    ("AD", K::Ad { has_points: false }),
    ("AM", K::Am { has_points: false }),
    ("B.C.", K::Ad { has_points: true }),
    ("BC", K::Ad { has_points: false }),
    ("CC", K::Century),
    ("DAY", K::DayName),
    ("DDD", K::DayOfYear),
    ("DD", K::DayOfMonth),
    ("DY", K::DayNameShort),
    ("D", K::DayOfWeek),
    ("FF1", K::Fraction(1)),
    ("FF2", K::Fraction(2)),
    ("FF3", K::Fraction(3)),
    ("FF4", K::Fraction(4)),
    ("FF5", K::Fraction(5)),
    ("FF6", K::Fraction(6)),
    ("HH24", K::Hour24),
    ("HH12", K::Hour12),
    ("HH", K::Hour12),
    ("IDDD", K::IsoDayOfYear),
    ("ID", K::IsoDayOfWeek),
    ("IW", K::IsoWeek),
    ("IYYY", K::IsoYear(4)),
    ("IYY", K::IsoYear(3)),
    ("IY", K::IsoYear(2)),
    ("I", K::IsoYear(1)),
    ("J", K::Julian),
    ("MI", K::Minute),
    ("MM", K::MonthNumber),
    ("MONTH", K::MonthName),
    ("MON", K::MonthNameShort),
    ("MS", K::Milliseconds),
    ("NS", K::Nanoseconds),
    ("OF", K::Offset),
    ("P.M.", K::Am { has_points: true }),
    ("PM", K::Am { has_points: false }),
    ("Q", K::Quarter),
    ("RM", K::MonthRoman),
    ("SSSSS", K::SecondOfDay),
    ("SSSS", K::SecondOfDay),
    ("SS", K::Second),
    ("TZH", K::OffsetHours),
    ("TZM", K::OffsetMinutes),
    ("TZ", K::Zone),
    ("US", K::Microseconds),
    ("WW", K::WeekOfYear),
    ("W", K::WeekOfMonth),
    ("Y,YYY", K::YearWithComma),
    ("YYYY", K::Year(4)),
    ("YYY", K::Year(3)),
    ("YY", K::Year(2)),
    ("Y", K::Year(1)),
];

/// Returns the keyword that a pattern begins with, its letter case and its length in bytes.
fn keyword(pattern: &str) -> Option<(Keyword, Letters, usize)> {
    let is_name = |keyword: Keyword| matches!(keyword, K::DayName | K::DayNameShort | K::MonthName | K::MonthNameShort);
    for (name, keyword) in KEYWORDS {
        let Some(written) = pattern.get(..name.len()) else { continue };
        if written == *name {
            return Some((*keyword, Letters::Upper, name.len()));
        }
        if written.bytes().eq(name.bytes().map(|b| b.to_ascii_lowercase())) {
            return Some((*keyword, Letters::Lower, name.len()));
        }
        let mut capital = written.chars();
        let is_capital =
            capital.next().is_some_and(|c| c.is_ascii_uppercase()) && capital.all(|c| c.is_ascii_lowercase());
        if is_name(*keyword) && is_capital && written.eq_ignore_ascii_case(name) {
            return Some((*keyword, Letters::Capital, name.len()));
        }
    }
    None
}

/// Takes a modifier in either case.
fn takes(rest: &mut &str, upper: &str) -> Option<Letters> {
    let written = rest.get(..upper.len())?;
    let letters = match written {
        written if written == upper => Letters::Upper,
        written if written == upper.to_ascii_lowercase() => Letters::Lower,
        _ => return None,
    };
    *rest = &rest[upper.len()..];
    Some(letters)
}

/// Splits a time pattern into keywords and the text between.
pub(crate) fn pieces(pattern: &str) -> Vec<Piece> {
    let (mut out, mut text) = (Vec::new(), String::new());
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let before = rest;
        let mut is_bare = false;
        loop {
            // Names are in English and not padded.
            if takes(&mut rest, "FM").is_some() || takes(&mut rest, "TM").is_some() {
                is_bare = true;
            } else if takes(&mut rest, "FX").is_none() {
                break;
            }
        }
        if let Some((keyword, letters, length)) = keyword(rest) {
            rest = &rest[length..];
            let ordinal = takes(&mut rest, "TH");
            if !text.is_empty() {
                out.push(Piece::Text(std::mem::take(&mut text)));
            }
            out.push(Piece::Field(Field { keyword, letters, is_bare, ordinal }));
            continue;
        }
        if rest.len() < before.len() {
            continue;
        }
        rest = &rest[first.len_utf8()..];
        match first {
            '"' => quoted(&mut rest, &mut text),
            '\\' if rest.starts_with('"') => {
                text.push('"');
                rest = &rest[1..];
            }
            other => text.push(other),
        }
    }
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
    out
}

/// Reads text up to the closing quote, in which a backslash escapes the next character.
fn quoted(rest: &mut &str, text: &mut String) {
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                *rest = &rest[at + 1..];
                return;
            }
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            other => text.push(other),
        }
    }
    *rest = "";
}
