//! Catalog tables and PostgreSQL's built-in types, read once from their lists.

use std::collections::HashMap;
use std::sync::LazyLock;
use tidalite_types::ColumnType;
use tidalite_types::pg_type::{self, PgType};

/// Lines of `schema table oid kind column:type[!] …`, where `!` marks NOT NULL.
const TABLES: &str = include_str!("tables.txt");
/// `oid name sql_name len by_value kind category preferred delimiter element array input output receive send modin modout
/// align storage collation subscript analyze`, where `-` is no function.
const TYPES: &str = include_str!("types.txt");

/// A table of the catalog.
#[derive(Debug)]
pub(crate) struct Definition {
    pub schema: &'static str,
    pub name: &'static str,
    pub oid: u32,
    /// `r` for a table, `v` for a view.
    pub kind: &'static str,
    pub columns: Vec<ColumnDefinition>,
}

#[derive(Debug)]
pub(crate) struct ColumnDefinition {
    pub name: &'static str,
    pub pg_type: PgType,
    pub is_nullable: bool,
}

/// A built-in type of PostgreSQL.
#[derive(Debug)]
pub(crate) struct BuiltinType {
    pub pg_type: PgType,
    pub by_value: bool,
    pub kind: &'static str,
    pub is_preferred: bool,
    pub delimiter: &'static str,
    /// Input, output, receive, send, modifier input and output, subscript, analyze.
    pub functions: [&'static str; 8],
    pub alignment: &'static str,
    pub storage: &'static str,
    pub collation: i64,
}

static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| TABLES.lines().filter_map(definition).collect());
static BUILTIN: LazyLock<Vec<BuiltinType>> = LazyLock::new(|| TYPES.lines().filter_map(builtin).collect());
/// Numbers of type functions.
///
/// PostgreSQL's own numbers would need another list, and clients only join by them.
static PROCEDURES: LazyLock<HashMap<&'static str, i64>> = LazyLock::new(|| {
    let mut names: Vec<&str> = BUILTIN.iter().flat_map(|t| t.functions).filter(|name| *name != "-").collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().zip(PROCEDURES_OID..).collect()
});
const PROCEDURES_OID: i64 = 6_500;

fn definition(line: &'static str) -> Option<Definition> {
    let mut words = line.split(' ');
    let (schema, name, oid, kind) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let column = |word: &'static str| {
        let (name, type_name) = word.split_once(':')?;
        let plain = type_name.trim_end_matches('!');
        let pg_type = type_named(plain)?;
        Some(ColumnDefinition { name, pg_type, is_nullable: plain.len() == type_name.len() })
    };
    Some(Definition { schema, name, oid: oid.parse().ok()?, kind, columns: words.filter_map(column).collect() })
}

fn builtin(line: &'static str) -> Option<BuiltinType> {
    let words: Vec<&'static str> = line.split(' ').collect();
    let &[oid, name, sql, len, by_value, kind, category, preferred, delimiter, element, array, ref rest @ ..] =
        &words[..]
    else {
        return None;
    };
    let &[input, output, receive, send, modin, modout, alignment, storage, collation, subscript, analyze] = rest else {
        return None;
    };
    let oid = oid.parse().ok()?;
    // A type that no value can have has a one-word name.
    let known = pg_type::by_oid(oid);
    let pg_type = PgType {
        oid,
        name,
        sql_name: known.map_or(sql, |t| t.sql_name),
        len: len.parse().ok()?,
        category: category.chars().next()?,
        array: array.parse().ok()?,
        element: element.parse().ok()?,
    };
    Some(BuiltinType {
        pg_type,
        by_value: by_value == "t",
        kind,
        is_preferred: preferred == "t",
        delimiter,
        functions: [input, output, receive, send, modin, modout, subscript, analyze],
        alignment,
        storage,
        collation: collation.parse().ok()?,
    })
}

/// A word of PostgreSQL's grammar, its category letter, and its use as a label without AS.
#[derive(Debug)]
pub(crate) struct Keyword {
    pub word: &'static str,
    pub category: &'static str,
    pub is_bare_label: bool,
}

/// Lines of `word category bare_label`, by word.
static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(|| {
    let keyword = |line: &'static str| {
        let mut words = line.split(' ');
        let (word, category) = (words.next()?, words.next()?);
        Some(Keyword { word, category, is_bare_label: words.next()? == "t" })
    };
    include_str!("keywords.txt").lines().filter_map(keyword).collect()
});

pub(crate) fn keywords() -> &'static [Keyword] {
    &KEYWORDS
}

/// Returns true if a name has to be quoted because it is a keyword.
pub(crate) fn is_keyword(name: &str) -> bool {
    let found = KEYWORDS.binary_search_by(|keyword| keyword.word.cmp(name));
    found.is_ok_and(|at| KEYWORDS[at].category != "U")
}

/// Returns all tables, `pg_catalog` first, by name.
pub(crate) fn tables() -> &'static [Definition] {
    &DEFINITIONS
}

pub(crate) fn table(schema: &str, name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|table| table.schema == schema && table.name.eq_ignore_ascii_case(name))
}

pub(crate) fn builtin_types() -> &'static [BuiltinType] {
    &BUILTIN
}

/// Returns a built-in type by its number.
pub(crate) fn builtin_type(oid: i64) -> Option<&'static BuiltinType> {
    BUILTIN.iter().find(|t| i64::from(t.pg_type.oid) == oid)
}

/// Returns a type by its name in `pg_type` or in SQL, Tidalite's names included.
pub(crate) fn type_named(name: &str) -> Option<PgType> {
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let plain = plain.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(plain);
    let own = BUILTIN.iter().map(|t| t.pg_type).find(|t| t.name.eq_ignore_ascii_case(plain));
    own.or_else(|| pg_type::by_sql_name(plain))
}

pub(crate) fn procedure_named(name: &str) -> Option<i64> {
    PROCEDURES.get(name).copied()
}

pub(crate) fn procedure_name(oid: i64) -> Option<&'static str> {
    PROCEDURES.iter().find(|(_, known)| **known == oid).map(|(name, _)| *name)
}

/// Returns all type functions with their numbers.
pub(crate) fn procedures() -> impl Iterator<Item = (&'static str, i64)> {
    PROCEDURES.iter().map(|(name, oid)| (*name, *oid))
}

/// Returns the SQL name of a type with its modifier, as PostgreSQL's `format_type` does.
pub(crate) fn format_type(oid: i64, modifier: Option<i64>) -> String {
    let Some(found) = builtin_type(oid) else { return if oid == 0 { "-" } else { "???" }.to_owned() };
    let of = found.pg_type;
    if of.category == 'A' && of.element != 0 && of.len == -1 {
        return format!("{}[]", format_type(i64::from(of.element), modifier));
    }
    let Some(modifier) = modifier.filter(|m| *m >= 0) else {
        // Without a length `character` would mean one character.
        return if of == pg_type::BPCHAR && modifier.is_some() { "bpchar".to_owned() } else { of.sql_name.to_owned() };
    };
    match of {
        pg_type::VARCHAR | pg_type::BPCHAR if modifier >= 4 => format!("{}({})", of.sql_name, modifier - 4),
        pg_type::NUMERIC if modifier >= 4 => {
            format!("numeric({},{})", (modifier - 4) >> 16 & 0xffff, (modifier - 4) & 0x7ff)
        }
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ | pg_type::TIME => match of.sql_name.split_once(' ') {
            Some((first, rest)) => format!("{first}({modifier}) {rest}"),
            None => of.sql_name.to_owned(),
        },
        _ => of.sql_name.to_owned(),
    }
}

/// Returns the PostgreSQL type modifier of a column; -1 for none.
pub(crate) fn modifier(column_type: ColumnType) -> i64 {
    match column_type {
        ColumnType::Decimal { precision, scale } => ((i64::from(precision) << 16) | i64::from(scale)) + 4,
        _ => -1,
    }
}
