//! Any text as a statement: it must not panic, not take long, and be the same each time. An error's position is in the
//! text, where a character begins. The parser of `crates/sql` runs first; the stock parser runs on the statements that
//! the first parser accepts.
//!
//! The first byte of an input says whether there are values for `$1` and `$2`. The files are those of `crates/query`; what
//! they know of the rest of it stands here, so that DataFusion need not be built with coverage.
#![no_main]
#![expect(dead_code, unused_imports, reason = "the dialect is used by more than its parser")]

#[path = "../../crates/query/src/calendar/mod.rs"]
mod calendar;
#[path = "../../crates/query/src/dialect/mod.rs"]
mod dialect;
#[path = "../../crates/query/src/names.rs"]
mod names;
#[path = "../../crates/query/src/parameters.rs"]
mod parameters;
#[path = "../../crates/query/src/statement.rs"]
mod statement;

mod error {
    use tidalite_types::ErrorKind;

    #[derive(Clone, Debug)]
    pub struct Error {
        kind: ErrorKind,
        message: String,
        pub position: Option<usize>,
        pub hint: Option<String>,
        pub subject: Option<String>,
    }

    impl Error {
        pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
            Error { kind, message: message.into(), position: None, hint: None, subject: None }
        }

        pub fn invalid(message: impl Into<String>) -> Error {
            Error::new(ErrorKind::Invalid, message)
        }

        pub fn internal(message: impl Into<String>) -> Error {
            Error::new(ErrorKind::Internal, message)
        }

        pub fn at(mut self, position: usize) -> Error {
            self.position.get_or_insert(position);
            self
        }

        pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
            self.hint = Some(hint.into());
            self
        }

        pub fn about(mut self, subject: impl Into<String>) -> Error {
            self.subject = Some(subject.into());
            self
        }

        pub fn message(&self) -> &str {
            &self.message
        }

        pub fn kind(&self) -> ErrorKind {
            self.kind
        }
    }

    impl std::fmt::Display for Error {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&self.message)
        }
    }
}

#[path = "."]
mod door {
    #[path = "../../crates/query/src/door/timestamps.rs"]
    pub mod timestamps;

    use datafusion::arrow::datatypes::FieldRef;

    pub mod values {
        use datafusion::arrow::array::RecordBatch;
        use datafusion::sql::sqlparser::ast;
        use tidalite_types::ColumnType;

        pub fn literal_rows(_: &ast::Query, _: &[ColumnType]) -> Option<RecordBatch> {
            None
        }
    }

    pub fn field(_: &str, _: tidalite_types::ColumnType, _: bool) -> FieldRef {
        FieldRef
    }
}

mod functions {
    use datafusion::functions_aggregate::Named;
    use std::sync::Arc;

    pub mod array_part {
        pub const NAME: &str = "__array_part";
        pub const INDEX: char = 'i';
        pub const SLICE: char = 's';
    }

    pub mod excluding {
        pub fn name(what: &str, aggregate: &str) -> String {
            format!("__without_{what}_{aggregate}")
        }
    }

    pub mod geo {
        pub const BITS_MAX: u32 = 60;
        pub const CUT: &str = "__geohash";

        pub fn text(hash: u64, bits: u32) -> String {
            format!("{hash} {bits}")
        }

        /// Which letters there are does not matter here.
        pub fn parsed(text: &str) -> Option<(u64, u32)> {
            let bits = u32::try_from(text.len()).ok()?.checked_mul(5)?;
            (text.is_ascii() && (1..=BITS_MAX).contains(&bits)).then_some((7, bits))
        }
    }

    pub mod json {
        pub const PART: &str = "__json_part";
    }

    pub mod same_name {
        pub const AS: &str = "__as";
    }

    pub mod meta {
        pub fn table_names() -> impl Iterator<Item = &'static str> {
            ["tables", "table_columns", "generate_series", "long_sequence", "read_csv"].into_iter()
        }
    }

    pub mod random {
        pub const SEEDED: &str = "__seeded";
        pub const NAMES: &[&str] = &["rnd_int", "rnd_double", "rnd_symbol", "rnd_str"];
    }

    pub mod sequence {
        pub const AFTER: &str = "__after";
        pub const NAMES: &[&str] = &["timestamp_sequence", "timestamp_sequence_ns"];
    }

    pub mod series {
        pub const LONG_SEQUENCE: &str = "long_sequence";
    }

    pub fn aggregates() -> Vec<Arc<Named>> {
        Vec::new()
    }
}

mod tables {
    pub const SCHEMA: &str = "public";
}

mod scan {
    pub mod read {
        pub const ADDRESS: &str = "+row";
    }
}

type Result<T, E = Error> = std::result::Result<T, E>;

use error::Error;
use libfuzzer_sys::fuzz_target;
use parameters::Parameter;
use statement::Statement;

fuzz_target!(|input: &[u8]| {
    let [how, text @ ..] = input else { return };
    let Ok(sql) = std::str::from_utf8(text) else { return };
    let values = [Parameter::Text("a".to_owned()), Parameter::Null];
    let values = &values[..usize::from(how % 3)];
    drop(tidalite_sql::expected_at(sql, sql.len()));
    let first = dialect::parse_bound(sql, values);
    if let Err(error) = &first {
        assert!(!error.message().is_empty());
        assert!(error.position.is_none_or(|at| at <= sql.len() && sql.is_char_boundary(at)), "{error:?}");
    }
    let again = dialect::parse_bound(sql, values);
    let told = |parsed: &Result<Statement>| parsed.as_ref().err().map(|e| (e.message().to_owned(), e.position));
    assert_eq!(told(&first), told(&again), "the same each time");
});
