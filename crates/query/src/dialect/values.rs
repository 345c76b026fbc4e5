//! VALUES whose column has text beside what says its type: `VALUES (TIMESTAMP '2024-01-01'), ('2024-01-02')`. As in
//! PostgreSQL, a text in quotes is of the type that the others have. NULL is, too: the planner wants one type with one
//! mark in all rows.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, ObjectName, TimezoneInfo, TypedString, Value, Values,
};

pub(super) fn typed(values: &mut Values) {
    let width = values.rows.iter().map(|row| row.content.len()).max().unwrap_or_default();
    for at in 0..width {
        let Some(known) = values.rows.iter().find_map(|row| type_of(row.content.get(at)?)) else { continue };
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        let is_finer = matches!(known, DataType::Timestamp(..)) && cells().any(|cell| text(cell).is_some_and(is_fine));
        let known = if is_finer { nanoseconds() } else { known };
        for row in &mut values.rows {
            let is_open = |cell: &&mut Expr| is_finer || text(cell).is_some() || is_null(cell);
            let Some(cell) = row.content.get_mut(at).filter(is_open) else { continue };
            let expr = Box::new(std::mem::replace(cell, Expr::Value(Value::Null.into())));
            let (kind, data_type) = (CastKind::Cast, known.clone());
            *cell = Expr::Cast { kind, expr, data_type, array: false, format: None };
        }
    }
}

fn nanoseconds() -> DataType {
    DataType::Custom(ObjectName::from(vec![Ident::new("timestamp_ns")]), Vec::new())
}

/// Whether there is more of a second than microseconds say.
fn is_fine(text: &str) -> bool {
    let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count() > 6
}

fn type_of(cell: &Expr) -> Option<DataType> {
    match cell {
        Expr::Nested(inner) => type_of(inner),
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => Some(data_type.clone()),
        Expr::Function(function) if function.name.to_string() == "now" => {
            Some(DataType::Timestamp(None, TimezoneInfo::None))
        }
        _ => None,
    }
}

fn is_null(cell: &Expr) -> bool {
    matches!(cell, Expr::Value(value) if value.value == Value::Null)
}

fn text(cell: &Expr) -> Option<&str> {
    match cell {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
