//! Types, the functions of types, and functions.

use super::Source;
use super::definitions::{BuiltinType, builtin_types, procedure_named, procedures};
use super::objects::{OWNER_OID, Objects, PG_CATALOG_OID};
use super::rows::{Filled, fill};
use crate::functions::meta;

pub(super) const SOURCES: &[(&str, Source)] = &[("pg_type", types), ("pg_proc", functions), ("pg_range", ranges)];

/// The language of built-in functions.
const INTERNAL_OID: i64 = 12;
/// First number of Tidalite's functions, by which clients only join.
const FUNCTIONS_OID: i64 = 8_000;
/// The pseudo-type `any`.
const ANY_OID: i64 = 2276;

fn function(of: &BuiltinType, at: usize) -> i64 {
    procedure_named(of.functions[at]).unwrap_or(0)
}

fn types(_: &Objects) -> Filled {
    fill(
        builtin_types(),
        &[
            ("oid", |t| t.pg_type.oid.into()),
            ("typname", |t| t.pg_type.name.into()),
            ("typnamespace", |_| PG_CATALOG_OID.into()),
            ("typowner", |_| OWNER_OID.into()),
            ("typlen", |t| i64::from(t.pg_type.len).into()),
            ("typbyval", |t| t.by_value.into()),
            ("typtype", |t| t.kind.into()),
            ("typcategory", |t| t.pg_type.category.to_string().into()),
            ("typispreferred", |t| t.is_preferred.into()),
            ("typisdefined", |_| true.into()),
            ("typdelim", |t| t.delimiter.into()),
            ("typelem", |t| t.pg_type.element.into()),
            ("typarray", |t| t.pg_type.array.into()),
            ("typinput", |t| function(t, 0).into()),
            ("typoutput", |t| function(t, 1).into()),
            ("typreceive", |t| function(t, 2).into()),
            ("typsend", |t| function(t, 3).into()),
            ("typmodin", |t| function(t, 4).into()),
            ("typmodout", |t| function(t, 5).into()),
            ("typsubscript", |t| function(t, 6).into()),
            ("typanalyze", |t| function(t, 7).into()),
            ("typalign", |t| t.alignment.into()),
            ("typstorage", |t| t.storage.into()),
            ("typtypmod", |_| (-1).into()),
            ("typcollation", |t| t.collation.into()),
        ],
    )
}

/// A function as in `pg_proc`.
struct Function {
    oid: i64,
    name: &'static str,
    kind: &'static str,
    returns_set: bool,
}

fn functions(_: &Objects) -> Filled {
    let of_types = procedures().map(|(name, oid)| Function { oid, name, kind: "f", returns_set: false });
    let ours = meta::all().zip(FUNCTIONS_OID..).map(|((name, kind), oid)| Function {
        oid,
        name,
        kind: match kind {
            "aggregate" => "a",
            "window" => "w",
            _ => "f",
        },
        returns_set: kind == "table",
    });
    let mut all: Vec<Function> = of_types.chain(ours).collect();
    all.sort_by_key(|function| function.oid);
    fill(
        &all,
        &[
            ("oid", |f| f.oid.into()),
            ("proname", |f| f.name.into()),
            ("pronamespace", |_| PG_CATALOG_OID.into()),
            ("proowner", |_| OWNER_OID.into()),
            ("prolang", |_| INTERNAL_OID.into()),
            ("procost", |_| 1.0.into()),
            ("prokind", |f| f.kind.into()),
            ("proisstrict", |_| true.into()),
            ("proretset", |f| f.returns_set.into()),
            ("provolatile", |_| "i".into()),
            ("proparallel", |_| "s".into()),
            ("prorettype", |_| ANY_OID.into()),
            ("prosrc", |f| f.name.into()),
        ],
    )
}

fn ranges(_: &Objects) -> Filled {
    /// Range, element, multirange, collation and operator class of the element type.
    const RANGES: &[[i64; 5]] = &[
        [3904, 23, 4451, 0, 1978],
        [3906, 1700, 4532, 0, 3125],
        [3908, 1114, 4533, 0, 3128],
        [3910, 1184, 4534, 0, 3127],
        [3912, 1082, 4535, 0, 3122],
        [3926, 20, 4536, 0, 3124],
    ];
    fill(
        RANGES,
        &[
            ("rngtypid", |r| r[0].into()),
            ("rngsubtype", |r| r[1].into()),
            ("rngmultitypid", |r| r[2].into()),
            ("rngcollation", |r| r[3].into()),
            ("rngsubopc", |r| r[4].into()),
        ],
    )
}
