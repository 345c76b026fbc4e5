//! Catalog objects: names, numbers, definitions, sizes.

use super::{Arguments, Function, function};
use crate::Error;
use crate::names::quoted;
use crate::pg_catalog::objects::{Kind, Relation};
use crate::pg_catalog::{
    Objects, Value, builtin_type, bytes, constraint_definition, format_type, index_definition, procedure_name,
    procedure_named, type_named, view_definition,
};
use datafusion::common::Result;
use tidalite_types::ErrorKind;
use tidalite_types::pg_type::{self, PgType};

/// An object type whose numbers have names, such as `regclass`.
struct Class {
    pg_type: PgType,
    /// The casts from and to text, and the conversion that returns NULL for an unknown name.
    from_text: &'static str,
    to_text: &'static str,
    number: fn(&Objects, &str) -> Option<i64>,
    name: fn(&Objects, i64) -> Option<String>,
    /// The kind of object in error messages.
    what: &'static str,
}

const CLASSES: &[Class] = &[
    Class {
        pg_type: pg_type::REGCLASS,
        from_text: "__regclass_in",
        to_text: "__regclass_out",
        number: |objects, name| objects.relation_named(name).map(|r| r.oid),
        name: |objects, oid| objects.relation(oid).map(|r| objects.written(r)),
        what: "relation",
    },
    Class {
        pg_type: pg_type::REGTYPE,
        from_text: "__regtype_in",
        to_text: "__regtype_out",
        number: |_, name| type_named(name).map(|of| i64::from(of.oid)),
        name: |_, oid| builtin_type(oid).map(|_| format_type(oid, None)),
        what: "type",
    },
    Class {
        pg_type: pg_type::REGPROC,
        from_text: "__regproc_in",
        to_text: "__regproc_out",
        number: |_, name| procedure_named(name.strip_prefix("pg_catalog.").unwrap_or(name)),
        name: |_, oid| procedure_name(oid).map(str::to_owned),
        what: "function",
    },
    Class {
        pg_type: pg_type::REGPROCEDURE,
        from_text: "__regprocedure_in",
        to_text: "__regprocedure_out",
        number: |_, name| procedure_named(name.split('(').next().unwrap_or_default().trim()),
        name: |_, oid| procedure_name(oid).map(|name| format!("{name}()")),
        what: "function",
    },
    Class {
        pg_type: pg_type::REGNAMESPACE,
        from_text: "__regnamespace_in",
        to_text: "__regnamespace_out",
        number: |objects, name| {
            let name = crate::names::identifiers(name)?.pop()?;
            objects.schemas().into_iter().find(|(_, known)| *known == name).map(|(oid, _)| oid)
        },
        name: |objects, oid| {
            objects.schemas().into_iter().find(|(known, _)| *known == oid).map(|(_, name)| quoted(&name))
        },
        what: "schema",
    },
    Class {
        pg_type: pg_type::REGROLE,
        from_text: "__regrole_in",
        to_text: "__regrole_out",
        number: |objects, name| {
            let name = crate::names::identifiers(name)?.pop()?;
            objects.roles().into_iter().find(|role| role.name == name).map(|role| role.oid)
        },
        name: |objects, oid| objects.roles().into_iter().find(|role| role.oid == oid).map(|role| quoted(&role.name)),
        what: "role",
    },
];

/// Returns the function that parses a name of an object type such as `regclass`.
pub(crate) fn class_number(of: PgType) -> Option<&'static str> {
    CLASSES.iter().find(|class| class.pg_type == of).map(|class| class.from_text)
}

/// Returns the function that formats a number of an object type such as `regclass`.
pub(crate) fn class_name(of: PgType) -> Option<&'static str> {
    CLASSES.iter().find(|class| class.pg_type == of).map(|class| class.to_text)
}

/// Parses a name or a number. A number may belong to no object.
fn read(objects: &Objects, arguments: &Arguments, at: usize) -> Result<Value> {
    let class = &CLASSES[at];
    let text = arguments.text(0).unwrap_or_default().trim();
    if text == "-" {
        return Ok(0.into());
    }
    if let Ok(oid) = text.parse::<u32>() {
        return Ok(oid.into());
    }
    let found = (class.number)(objects, text);
    let missing = || Error::new(ErrorKind::NotFound, format!("{} \"{text}\" does not exist", class.what));
    Ok(found.ok_or_else(missing)?.into())
}

fn written(objects: &Objects, arguments: &Arguments, at: usize) -> Result<Value> {
    let Some(oid) = arguments.int(0) else { return Ok(Value::Null) };
    if oid == 0 {
        return Ok("-".into());
    }
    Ok((CLASSES[at].name)(objects, oid).unwrap_or_else(|| oid.to_string()).into())
}

/// Parses a name; NULL for an unknown name.
fn looked_up(objects: &Objects, arguments: &Arguments, at: usize) -> Result<Value> {
    Ok(arguments.text(0).and_then(|name| (CLASSES[at].number)(objects, name)).into())
}

/// Returns the relation that an argument names by number or name.
fn relation<'a>(objects: &'a Objects, arguments: &Arguments, n: usize) -> Option<&'a Relation> {
    match arguments.int(n) {
        Some(oid) => objects.relation(oid),
        None => objects.relation_named(arguments.text(n)?),
    }
}

fn size(relation: Option<&Relation>) -> Value {
    relation.map(|r| r.table().map_or(0, |t| i64::try_from(bytes(t)).unwrap_or(i64::MAX))).into()
}

fn visible(objects: &Objects, arguments: &Arguments) -> Result<Value> {
    let is_on_path = |r: &Relation| matches!(r.schema.as_str(), "public" | "pg_catalog");
    Ok(arguments.int(0).and_then(|oid| objects.relation(oid)).map(is_on_path).into())
}

fn none(_: &Objects, _: &Arguments) -> Result<Value> {
    Ok(Value::Null)
}

fn zero(_: &Objects, _: &Arguments) -> Result<Value> {
    Ok(0.into())
}

fn yes(_: &Objects, _: &Arguments) -> Result<Value> {
    Ok(true.into())
}

pub(super) const FUNCTIONS: &[Function] = &[
    function("__regclass_in", (1, 1), pg_type::REGCLASS, |o, a| read(o, a, 0)),
    function("__regtype_in", (1, 1), pg_type::REGTYPE, |o, a| read(o, a, 1)),
    function("__regproc_in", (1, 1), pg_type::REGPROC, |o, a| read(o, a, 2)),
    function("__regprocedure_in", (1, 1), pg_type::REGPROCEDURE, |o, a| read(o, a, 3)),
    function("__regnamespace_in", (1, 1), pg_type::REGNAMESPACE, |o, a| read(o, a, 4)),
    function("__regrole_in", (1, 1), pg_type::REGROLE, |o, a| read(o, a, 5)),
    function("__regclass_out", (1, 1), pg_type::TEXT, |o, a| written(o, a, 0)),
    function("__regtype_out", (1, 1), pg_type::TEXT, |o, a| written(o, a, 1)),
    function("__regproc_out", (1, 1), pg_type::TEXT, |o, a| written(o, a, 2)),
    function("__regprocedure_out", (1, 1), pg_type::TEXT, |o, a| written(o, a, 3)),
    function("__regnamespace_out", (1, 1), pg_type::TEXT, |o, a| written(o, a, 4)),
    function("__regrole_out", (1, 1), pg_type::TEXT, |o, a| written(o, a, 5)),
    function("to_regclass", (1, 1), pg_type::REGCLASS, |o, a| looked_up(o, a, 0)),
    function("to_regtype", (1, 1), pg_type::REGTYPE, |o, a| looked_up(o, a, 1)),
    function("to_regproc", (1, 1), pg_type::REGPROC, |o, a| looked_up(o, a, 2)),
    function("to_regprocedure", (1, 1), pg_type::REGPROCEDURE, |o, a| looked_up(o, a, 3)),
    function("to_regnamespace", (1, 1), pg_type::REGNAMESPACE, |o, a| looked_up(o, a, 4)),
    function("to_regrole", (1, 1), pg_type::REGROLE, |o, a| looked_up(o, a, 5)),
    // Calls are replaced by their result when a query is planned.
    function("pg_typeof", (1, 1), pg_type::REGTYPE, none),
    function("pg_get_userbyid", (1, 1), pg_type::NAME, |objects, arguments| {
        let oid = arguments.int(0).unwrap_or_default();
        let found = objects.roles().into_iter().find(|role| role.oid == oid);
        Ok(found.map_or_else(|| format!("unknown (OID={oid})"), |role| role.name).into())
    }),
    function("pg_table_is_visible", (1, 1), pg_type::BOOL, visible),
    function("pg_type_is_visible", (1, 1), pg_type::BOOL, |_, arguments| {
        Ok(arguments.int(0).and_then(builtin_type).map(|_| true).into())
    }),
    function("pg_function_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_operator_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_opclass_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_opfamily_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_collation_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_conversion_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_statistics_obj_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_ts_config_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_ts_dict_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_ts_parser_is_visible", (1, 1), pg_type::BOOL, yes),
    function("pg_ts_template_is_visible", (1, 1), pg_type::BOOL, yes),
    Function {
        is_strict: false,
        ..function("format_type", (2, 2), pg_type::TEXT, |_, arguments| {
            Ok(arguments.int(0).map(|oid| format_type(oid, arguments.int(1))).into())
        })
    },
    function("pg_get_viewdef", (1, 2), pg_type::TEXT, |objects, arguments| {
        Ok(relation(objects, arguments, 0).and_then(Relation::table).and_then(|table| view_definition(table)).into())
    }),
    function("pg_get_ruledef", (1, 2), pg_type::TEXT, |objects, arguments| {
        let view = arguments.int(0).and_then(|oid| objects.relation(oid - 0x2000_0000));
        let sql = view.and_then(Relation::table).and_then(|table| view_definition(table));
        let name = view.map(|view| objects.written(view)).unwrap_or_default();
        Ok(sql.map(|sql| format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {sql}")).into())
    }),
    function("pg_get_indexdef", (1, 3), pg_type::TEXT, |objects, arguments| {
        let column = arguments.int(1).unwrap_or_default();
        Ok(arguments.int(0).and_then(|oid| index_definition(objects, oid, column)).into())
    }),
    function("pg_get_constraintdef", (1, 2), pg_type::TEXT, |objects, arguments| {
        Ok(arguments.int(0).and_then(|oid| constraint_definition(objects, oid)).into())
    }),
    function("pg_get_expr", (2, 3), pg_type::TEXT, none),
    function("pg_get_partkeydef", (1, 1), pg_type::TEXT, none),
    function("pg_get_partition_constraintdef", (1, 1), pg_type::TEXT, none),
    function("pg_get_triggerdef", (1, 2), pg_type::TEXT, none),
    function("pg_get_functiondef", (1, 1), pg_type::TEXT, none),
    function("pg_get_function_sqlbody", (1, 1), pg_type::TEXT, none),
    function("pg_get_function_arguments", (1, 1), pg_type::TEXT, |_, _| Ok("".into())),
    function("pg_get_function_identity_arguments", (1, 1), pg_type::TEXT, |_, _| Ok("".into())),
    function("pg_get_function_result", (1, 1), pg_type::TEXT, |_, _| Ok("\"any\"".into())),
    function("pg_get_statisticsobjdef", (1, 1), pg_type::TEXT, none),
    function("pg_get_statisticsobjdef_columns", (1, 1), pg_type::TEXT, none),
    function("pg_get_serial_sequence", (2, 2), pg_type::TEXT, none),
    function("obj_description", (1, 2), pg_type::TEXT, none),
    function("col_description", (2, 2), pg_type::TEXT, none),
    function("shobj_description", (2, 2), pg_type::TEXT, none),
    function("pg_describe_object", (3, 3), pg_type::TEXT, |objects, arguments| {
        let found = arguments.int(1).and_then(|oid| objects.relation(oid));
        let of = |r: &Relation| match (&r.kind, r.letter()) {
            (Kind::Index(_), _) => format!("index {}", objects.written(r)),
            (_, "v") => format!("view {}", objects.written(r)),
            (_, "m") => format!("materialized view {}", objects.written(r)),
            _ => format!("table {}", objects.written(r)),
        };
        Ok(found.map(of).into())
    }),
    function("pg_relation_size", (1, 2), pg_type::INT8, |o, a| Ok(size(relation(o, a, 0)))),
    function("pg_table_size", (1, 1), pg_type::INT8, |o, a| Ok(size(relation(o, a, 0)))),
    function("pg_total_relation_size", (1, 1), pg_type::INT8, |o, a| Ok(size(relation(o, a, 0)))),
    function("pg_indexes_size", (1, 1), pg_type::INT8, |objects, arguments| {
        Ok(relation(objects, arguments, 0).map(|_| 0).into())
    }),
    function("pg_database_size", (1, 1), pg_type::INT8, |objects, _| Ok(all_bytes(objects).into())),
    function("pg_tablespace_size", (1, 1), pg_type::INT8, |objects, _| Ok(all_bytes(objects).into())),
    function("pg_tablespace_location", (1, 1), pg_type::TEXT, |_, _| Ok("".into())),
    function("pg_relation_filenode", (1, 1), pg_type::OID, |objects, arguments| {
        Ok(relation(objects, arguments, 0).filter(|r| r.letter() != "v").map(|r| r.oid).into())
    }),
    function("pg_relation_filepath", (1, 1), pg_type::TEXT, none),
    // Bits of the supported commands of a relation: update 4, insert 8, delete 16.
    function("pg_relation_is_updatable", (2, 2), pg_type::INT4, |objects, arguments| {
        let found = relation(objects, arguments, 0);
        let is_plain = |r: &Relation| r.table().is_some_and(|t| t.schema.view.is_none());
        Ok(found.map(|r| if is_plain(r) { 28 } else { 0 }).into())
    }),
    function("pg_column_is_updatable", (3, 3), pg_type::BOOL, |objects, arguments| {
        let found = relation(objects, arguments, 0);
        Ok(found.map(|r| r.table().is_some_and(|t| t.schema.view.is_none())).into())
    }),
    function("pg_relation_is_publishable", (1, 1), pg_type::BOOL, |_, _| Ok(false.into())),
    function("pg_blocking_pids", (1, 1), pg_type::INT4S, |_, _| Ok(Vec::<i64>::new().into())),
    function("pg_sequence_last_value", (1, 1), pg_type::INT8, none),
    function("pg_stat_get_numscans", (1, 1), pg_type::INT8, zero),
    function("pg_stat_get_live_tuples", (1, 1), pg_type::INT8, |objects, arguments| {
        let table = relation(objects, arguments, 0).and_then(Relation::table);
        Ok(table.map_or(0, |t| t.row_count() as i64).into())
    }),
    function("pg_stat_get_dead_tuples", (1, 1), pg_type::INT8, zero),
    function("pg_encoding_to_char", (1, 1), pg_type::NAME, |_, arguments| {
        Ok(match arguments.int(0) {
            Some(6) => "UTF8",
            Some(0) => "SQL_ASCII",
            _ => "",
        }
        .into())
    }),
    function("pg_char_to_encoding", (1, 1), pg_type::INT4, |_, arguments| {
        let name = arguments.text(0).unwrap_or_default();
        Ok(if name.eq_ignore_ascii_case("utf8") { 6 } else { -1 }.into())
    }),
];

/// Returns the bytes of the segments of all tables.
fn all_bytes(objects: &Objects) -> i64 {
    i64::try_from(objects.tables().map(|table| bytes(table)).sum::<u64>()).unwrap_or(i64::MAX)
}
