//! The PostgreSQL types that represent Tidalite's types, for its clients and its catalog.

use crate::ColumnType;

/// The version of PostgreSQL whose clients and catalog are supported.
pub const SERVER_VERSION: &str = "14.0";

/// A type as listed in `pg_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgType {
    pub oid: u32,
    pub name: &'static str,
    /// The name that `format_type` returns.
    pub sql_name: &'static str,
    /// Size in bytes, or -1 for a variable length.
    pub len: i16,
    pub category: char,
    /// The type of arrays of this type.
    pub array: u32,
    /// The element type of an array, or 0.
    pub element: u32,
}

const fn scalar(oid: u32, name: &'static str, sql_name: &'static str, len: i16, category: char, array: u32) -> PgType {
    PgType { oid, name, sql_name, len, category, array, element: 0 }
}

const fn array(oid: u32, name: &'static str, sql_name: &'static str, element: u32) -> PgType {
    PgType { oid, name, sql_name, len: -1, category: 'A', array: 0, element }
}

pub const BOOL: PgType = scalar(16, "bool", "boolean", 1, 'B', 1000);
pub const BYTEA: PgType = scalar(17, "bytea", "bytea", -1, 'U', 1001);
pub const CHAR: PgType = scalar(18, "char", "\"char\"", 1, 'Z', 1002);
pub const NAME: PgType = scalar(19, "name", "name", 64, 'S', 1003);
pub const INT8: PgType = scalar(20, "int8", "bigint", 8, 'N', 1016);
pub const INT2: PgType = scalar(21, "int2", "smallint", 2, 'N', 1005);
pub const INT4: PgType = scalar(23, "int4", "integer", 4, 'N', 1007);
pub const TEXT: PgType = scalar(25, "text", "text", -1, 'S', 1009);
pub const OID: PgType = scalar(26, "oid", "oid", 4, 'N', 1028);
pub const JSON: PgType = scalar(114, "json", "json", -1, 'U', 199);
pub const FLOAT4: PgType = scalar(700, "float4", "real", 4, 'N', 1021);
pub const FLOAT8: PgType = scalar(701, "float8", "double precision", 8, 'N', 1022);
pub const UNKNOWN: PgType = scalar(705, "unknown", "unknown", -2, 'X', 0);
pub const BPCHAR: PgType = scalar(1042, "bpchar", "character", -1, 'S', 1014);
pub const VARCHAR: PgType = scalar(1043, "varchar", "character varying", -1, 'S', 1015);
pub const DATE: PgType = scalar(1082, "date", "date", 4, 'D', 1182);
pub const TIME: PgType = scalar(1083, "time", "time without time zone", 8, 'D', 1183);
pub const TIMESTAMP: PgType = scalar(1114, "timestamp", "timestamp without time zone", 8, 'D', 1115);
pub const TIMESTAMPTZ: PgType = scalar(1184, "timestamptz", "timestamp with time zone", 8, 'D', 1185);
pub const INTERVAL: PgType = scalar(1186, "interval", "interval", 16, 'T', 1187);
pub const NUMERIC: PgType = scalar(1700, "numeric", "numeric", -1, 'N', 1231);
pub const UUID: PgType = scalar(2950, "uuid", "uuid", 16, 'U', 2951);
pub const JSONB: PgType = scalar(3802, "jsonb", "jsonb", -1, 'U', 3807);
pub const INT2VECTOR: PgType = PgType { element: 21, ..scalar(22, "int2vector", "int2vector", -1, 'A', 1006) };
pub const REGPROC: PgType = scalar(24, "regproc", "regproc", 4, 'N', 1008);
pub const TID: PgType = scalar(27, "tid", "tid", 6, 'U', 1010);
pub const XID: PgType = scalar(28, "xid", "xid", 4, 'U', 1011);
pub const CID: PgType = scalar(29, "cid", "cid", 4, 'U', 1012);
pub const OIDVECTOR: PgType = PgType { element: 26, ..scalar(30, "oidvector", "oidvector", -1, 'A', 1013) };
pub const PG_NODE_TREE: PgType = scalar(194, "pg_node_tree", "pg_node_tree", -1, 'Z', 0);
pub const INET: PgType = scalar(869, "inet", "inet", -1, 'I', 1041);
pub const ACLITEM: PgType = scalar(1033, "aclitem", "aclitem", 12, 'U', 1034);
pub const REGPROCEDURE: PgType = scalar(2202, "regprocedure", "regprocedure", 4, 'N', 2207);
pub const REGOPER: PgType = scalar(2203, "regoper", "regoper", 4, 'N', 2208);
pub const REGOPERATOR: PgType = scalar(2204, "regoperator", "regoperator", 4, 'N', 2209);
pub const REGCLASS: PgType = scalar(2205, "regclass", "regclass", 4, 'N', 2210);
pub const REGTYPE: PgType = scalar(2206, "regtype", "regtype", 4, 'N', 2211);
pub const ANYARRAY: PgType = scalar(2277, "anyarray", "anyarray", -1, 'P', 0);
pub const VOID: PgType = scalar(2278, "void", "void", 4, 'P', 0);
pub const PG_LSN: PgType = scalar(3220, "pg_lsn", "pg_lsn", 8, 'U', 3221);
pub const REGNAMESPACE: PgType = scalar(4089, "regnamespace", "regnamespace", 4, 'N', 4090);
pub const REGROLE: PgType = scalar(4096, "regrole", "regrole", 4, 'N', 4097);
pub const BOOLS: PgType = array(1000, "_bool", "boolean[]", 16);
pub const INT2S: PgType = array(1005, "_int2", "smallint[]", 21);
pub const INT4S: PgType = array(1007, "_int4", "integer[]", 23);
pub const TEXTS: PgType = array(1009, "_text", "text[]", 25);
pub const VARCHARS: PgType = array(1015, "_varchar", "character varying[]", 1043);
pub const INT8S: PgType = array(1016, "_int8", "bigint[]", 20);
pub const OIDS: PgType = array(1028, "_oid", "oid[]", 26);
pub const FLOAT4S: PgType = array(1021, "_float4", "real[]", 700);
pub const FLOAT8S: PgType = array(1022, "_float8", "double precision[]", 701);
pub const BYTEAS: PgType = array(1001, "_bytea", "bytea[]", 17);
pub const CHARS: PgType = array(1002, "_char", "\"char\"[]", 18);
pub const NAMES: PgType = array(1003, "_name", "name[]", 19);
pub const BPCHARS: PgType = array(1014, "_bpchar", "character[]", 1042);
pub const JSONS: PgType = array(199, "_json", "json[]", 114);
pub const ACLITEMS: PgType = array(1034, "_aclitem", "aclitem[]", 1033);
pub const DATES: PgType = array(1182, "_date", "date[]", 1082);
pub const TIMES: PgType = array(1183, "_time", "time without time zone[]", 1083);
pub const TIMESTAMPTZS: PgType = array(1185, "_timestamptz", "timestamp with time zone[]", 1184);
pub const INTERVALS: PgType = array(1187, "_interval", "interval[]", 1186);
pub const REGCLASSES: PgType = array(2210, "_regclass", "regclass[]", 2205);
pub const REGTYPES: PgType = array(2211, "_regtype", "regtype[]", 2206);
pub const UUIDS: PgType = array(2951, "_uuid", "uuid[]", 2950);
pub const JSONBS: PgType = array(3807, "_jsonb", "jsonb[]", 3802);
pub const TIMESTAMPS: PgType = array(1115, "_timestamp", "timestamp without time zone[]", 1114);
pub const NUMERICS: PgType = array(1231, "_numeric", "numeric[]", 1700);

/// All types.
pub const TYPES: &[PgType] = &[
    BOOL,
    BYTEA,
    CHAR,
    NAME,
    INT8,
    INT2,
    INT4,
    TEXT,
    OID,
    JSON,
    FLOAT4,
    FLOAT8,
    UNKNOWN,
    BPCHAR,
    VARCHAR,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    INTERVAL,
    NUMERIC,
    UUID,
    JSONB,
    BOOLS,
    INT2S,
    INT4S,
    TEXTS,
    VARCHARS,
    INT8S,
    FLOAT4S,
    FLOAT8S,
    TIMESTAMPS,
    NUMERICS,
    OIDS,
    INT2VECTOR,
    REGPROC,
    TID,
    XID,
    CID,
    OIDVECTOR,
    PG_NODE_TREE,
    INET,
    ACLITEM,
    REGPROCEDURE,
    REGOPER,
    REGOPERATOR,
    REGCLASS,
    REGTYPE,
    ANYARRAY,
    VOID,
    PG_LSN,
    REGNAMESPACE,
    REGROLE,
    BYTEAS,
    CHARS,
    NAMES,
    BPCHARS,
    JSONS,
    ACLITEMS,
    DATES,
    TIMES,
    TIMESTAMPTZS,
    INTERVALS,
    REGCLASSES,
    REGTYPES,
    UUIDS,
    JSONBS,
];

impl PgType {
    /// Returns true if a value is the number of a catalog object, shown as a number or by its name.
    #[must_use]
    pub fn is_object(self) -> bool {
        matches!(self, OID | XID | CID) || self.has_name()
    }

    /// Returns true if a value is the number of an object and its text is the name.
    #[must_use]
    pub fn has_name(self) -> bool {
        matches!(self, REGPROC | REGPROCEDURE | REGOPER | REGOPERATOR | REGCLASS | REGTYPE | REGNAMESPACE | REGROLE)
    }

    /// Returns true if the type is an array or a catalog vector.
    #[must_use]
    pub fn is_array(self) -> bool {
        self.category == 'A'
    }
}

/// Returns the type in which values of a column type are sent.
#[must_use]
pub fn of(column_type: ColumnType) -> PgType {
    match column_type {
        ColumnType::Boolean => BOOL,
        ColumnType::Byte | ColumnType::Short => INT2,
        ColumnType::Int => INT4,
        ColumnType::Long => INT8,
        ColumnType::Float => FLOAT4,
        ColumnType::Double => FLOAT8,
        ColumnType::Decimal { .. } => NUMERIC,
        ColumnType::Timestamp(_) => TIMESTAMP,
        ColumnType::Date => DATE,
        ColumnType::Symbol | ColumnType::Varchar | ColumnType::Ipv4 => TEXT,
        ColumnType::Binary => BYTEA,
        ColumnType::Uuid => UUID,
        ColumnType::DoubleArray { .. } => FLOAT8S,
        ColumnType::Json => JSON,
        ColumnType::Jsonb => JSONB,
    }
}

#[must_use]
pub fn by_oid(oid: u32) -> Option<PgType> {
    TYPES.iter().find(|t| t.oid == oid).copied()
}

/// Returns the type of an SQL name of PostgreSQL or Tidalite, in any case; text in parentheses is ignored.
#[must_use]
pub fn by_sql_name(name: &str) -> Option<PgType> {
    let plain = name.to_ascii_lowercase();
    let element = plain.trim_end_matches("[]");
    if element.len() < plain.len() {
        return by_sql_name(element).and_then(|element| by_oid(element.array));
    }
    let plain = match (plain.find('('), plain.find(')')) {
        (Some(open), Some(close)) if open < close => format!("{} {}", &plain[..open], &plain[close + 1..]),
        _ => plain,
    };
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let known = TYPES.iter().find(|t| t.name == plain || t.sql_name == plain).copied();
    let own = match plain.as_str() {
        "decimal" => Some(NUMERIC),
        // In SQL the name means FLOAT8, as in PostgreSQL; a column of Tidalite's type `float` has four bytes.
        "float" => Some(FLOAT8),
        _ => None,
    };
    known.or(own).or_else(|| ColumnType::from_sql_name(&plain).map(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_many_names() {
        for (name, found) in [
            ("BIGINT", INT8),
            ("long", INT8),
            ("double  precision", FLOAT8),
            ("timestamp(6) without time zone", TIMESTAMP),
            ("numeric(10, 2)", NUMERIC),
            ("decimal", NUMERIC),
            ("float", FLOAT8),
            ("interval", INTERVAL),
            ("uuid[]", UUIDS),
            ("character varying(20)", VARCHAR),
            ("Symbol", TEXT),
            ("double[]", FLOAT8S),
            ("int[]", INT4S),
            ("int[][]", INT4S),
        ] {
            assert_eq!(by_sql_name(name), Some(found), "{name}");
        }
        assert_eq!((by_sql_name("nosuch"), by_sql_name(")("), by_sql_name("")), (None, None, None));
    }

    #[test]
    fn arrays_and_their_elements_name_each_other() {
        for array in TYPES.iter().filter(|t| t.element != 0 && t.name.starts_with('_')) {
            let element = by_oid(array.element).unwrap();
            assert_eq!((element.array, array.name), (array.oid, format!("_{}", element.name).as_str()));
        }
    }

    #[test]
    fn numbers_are_distinct() {
        for (i, a) in TYPES.iter().enumerate() {
            assert!(TYPES[i + 1..].iter().all(|b| b.oid != a.oid && b.name != a.name), "{}", a.name);
        }
    }
}
