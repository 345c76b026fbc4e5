//! The schema of a stream. The crate `arrow` panics at an unknown type; this module returns an error.

use super::error::IpcError;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, TimeUnit, UnionFields, UnionMode};
use arrow::ipc::{self, DateUnit, Endianness, Precision, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// The schema of a message.
pub(super) fn schema(message: ipc::Schema<'_>) -> Result<Schema, IpcError> {
    if message.endianness() != Endianness::Little {
        return Err(IpcError::malformed("big-endian streams are not supported"));
    }
    let fields = message.fields().ok_or_else(|| IpcError::malformed("the schema has no fields"))?;
    let fields = fields.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Schema::new_with_metadata(fields, metadata(message.custom_metadata())))
}

type KeyValues<'a> = flatbuffers::Vector<'a, flatbuffers::ForwardsUOffset<ipc::KeyValue<'a>>>;

fn metadata(entries: Option<KeyValues<'_>>) -> HashMap<String, String> {
    let entries = entries.into_iter().flatten();
    entries.filter_map(|entry| Some((entry.key()?.to_owned(), entry.value()?.to_owned()))).collect()
}

fn field(field: ipc::Field<'_>) -> Result<Field, IpcError> {
    let name = field.name().unwrap_or_default();
    let unknown = || {
        let kind = field.type_type();
        let kind = kind.variant_name().unwrap_or("unknown");
        IpcError::malformed(format!("column \"{name}\" has an unsupported type ({kind})"))
    };
    let data_type = data_type(field)?.ok_or_else(unknown)?;
    let out = match field.dictionary() {
        None => Field::new(name, data_type, field.nullable()),
        Some(dictionary) => {
            let codes = dictionary.indexType().map_or(Some(DataType::Int32), integer).ok_or_else(unknown)?;
            let data_type = DataType::Dictionary(Box::new(codes), Box::new(data_type));
            with_dictionary(name, data_type, field.nullable(), dictionary)
        }
    };
    Ok(out.with_metadata(metadata(field.custom_metadata())))
}

#[expect(deprecated, reason = "the crate arrow has no other place for the id yet")]
fn with_dictionary(name: &str, data_type: DataType, nullable: bool, of: ipc::DictionaryEncoding<'_>) -> Field {
    Field::new_dict(name, data_type, nullable, of.id(), of.isOrdered())
}

/// Returns the type of the values of the dictionary `id`, if the field or a field below has that dictionary.
pub(super) fn dictionary_values(field: &Field, id: i64) -> Option<DataType> {
    let within = |field: &FieldRef| dictionary_values(field, id);
    match field.data_type() {
        DataType::Dictionary(_, values) if dictionary_id(field) == Some(id) => Some(values.as_ref().clone()),
        // The values have a type but no field; nested fields have their own dictionaries.
        DataType::Dictionary(_, values) => dictionary_values(&Field::new("", values.as_ref().clone(), true), id),
        DataType::List(child)
        | DataType::LargeList(child)
        | DataType::ListView(child)
        | DataType::LargeListView(child)
        | DataType::FixedSizeList(child, _)
        | DataType::Map(child, _) => within(child),
        DataType::Struct(fields) => fields.iter().find_map(within),
        DataType::RunEndEncoded(ends, values) => within(ends).or_else(|| within(values)),
        DataType::Union(fields, _) => fields.iter().find_map(|(_, child)| within(child)),
        _ => None,
    }
}

/// Returns the type of a field without its dictionary; `None` for an unknown type.
fn data_type(of: ipc::Field<'_>) -> Result<Option<DataType>, IpcError> {
    let nested = matches!(
        of.type_type(),
        Type::List
            | Type::LargeList
            | Type::ListView
            | Type::LargeListView
            | Type::FixedSizeList
            | Type::Map
            | Type::Struct_
            | Type::RunEndEncoded
            | Type::Union
    );
    if !nested {
        return Ok(plain(of));
    }
    let children = of.children().into_iter().flatten();
    let children = children.map(|child| field(child).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    Ok(with_children(of, children))
}

fn with_children(of: ipc::Field<'_>, children: Vec<FieldRef>) -> Option<DataType> {
    let single = || match &children[..] {
        [child] => Some(child.clone()),
        _ => None,
    };
    Some(match of.type_type() {
        Type::List => DataType::List(single()?),
        Type::LargeList => DataType::LargeList(single()?),
        Type::ListView => DataType::ListView(single()?),
        Type::LargeListView => DataType::LargeListView(single()?),
        Type::FixedSizeList => {
            let size = of.type_as_fixed_size_list()?.listSize();
            DataType::FixedSizeList(single()?, (size >= 0).then_some(size)?)
        }
        Type::Map => DataType::Map(single()?, of.type_as_map()?.keysSorted()),
        Type::RunEndEncoded => match <[FieldRef; 2]>::try_from(children) {
            Ok([ends, values]) => DataType::RunEndEncoded(ends, values),
            Err(_) => return None,
        },
        Type::Union => {
            let union = of.type_as_union()?;
            let mode = match union.mode() {
                ipc::UnionMode::Dense => UnionMode::Dense,
                ipc::UnionMode::Sparse => UnionMode::Sparse,
                _ => return None,
            };
            DataType::Union(union_fields(union, children)?, mode)
        }
        _ => DataType::Struct(children.into()),
    })
}

fn union_fields(union: ipc::Union<'_>, children: Vec<FieldRef>) -> Option<UnionFields> {
    let ids = match union.typeIds() {
        None => (0..children.len()).map(|id| i8::try_from(id).ok()).collect::<Option<Vec<_>>>()?,
        Some(ids) => ids.iter().map(|id| i8::try_from(id).ok()).collect::<Option<Vec<_>>>()?,
    };
    UnionFields::try_new(ids, children).ok()
}

fn plain(of: ipc::Field<'_>) -> Option<DataType> {
    Some(match of.type_type() {
        Type::Null => DataType::Null,
        Type::Bool => DataType::Boolean,
        Type::Int => integer(of.type_as_int()?)?,
        Type::FloatingPoint => match of.type_as_floating_point()?.precision() {
            Precision::HALF => DataType::Float16,
            Precision::SINGLE => DataType::Float32,
            Precision::DOUBLE => DataType::Float64,
            _ => return None,
        },
        Type::Decimal => decimal(of.type_as_decimal()?)?,
        Type::Date => match of.type_as_date()?.unit() {
            DateUnit::DAY => DataType::Date32,
            DateUnit::MILLISECOND => DataType::Date64,
            _ => return None,
        },
        Type::Time => {
            let time = of.type_as_time()?;
            match (time.bitWidth(), unit(time.unit())?) {
                (32, unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => DataType::Time32(unit),
                (64, unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond)) => DataType::Time64(unit),
                _ => return None,
            }
        }
        Type::Timestamp => {
            let timestamp = of.type_as_timestamp()?;
            DataType::Timestamp(unit(timestamp.unit())?, timestamp.timezone().map(Arc::from))
        }
        Type::Duration => DataType::Duration(unit(of.type_as_duration()?.unit())?),
        Type::Interval => match of.type_as_interval()?.unit() {
            ipc::IntervalUnit::YEAR_MONTH => DataType::Interval(IntervalUnit::YearMonth),
            ipc::IntervalUnit::DAY_TIME => DataType::Interval(IntervalUnit::DayTime),
            ipc::IntervalUnit::MONTH_DAY_NANO => DataType::Interval(IntervalUnit::MonthDayNano),
            _ => return None,
        },
        Type::Binary => DataType::Binary,
        Type::LargeBinary => DataType::LargeBinary,
        Type::BinaryView => DataType::BinaryView,
        Type::Utf8 => DataType::Utf8,
        Type::LargeUtf8 => DataType::LargeUtf8,
        Type::Utf8View => DataType::Utf8View,
        Type::FixedSizeBinary => {
            let bytes = of.type_as_fixed_size_binary()?.byteWidth();
            DataType::FixedSizeBinary((bytes >= 0).then_some(bytes)?)
        }
        _ => return None,
    })
}

fn integer(int: ipc::Int<'_>) -> Option<DataType> {
    Some(match (int.bitWidth(), int.is_signed()) {
        (8, true) => DataType::Int8,
        (8, false) => DataType::UInt8,
        (16, true) => DataType::Int16,
        (16, false) => DataType::UInt16,
        (32, true) => DataType::Int32,
        (32, false) => DataType::UInt32,
        (64, true) => DataType::Int64,
        (64, false) => DataType::UInt64,
        _ => return None,
    })
}

fn decimal(of: ipc::Decimal<'_>) -> Option<DataType> {
    let (precision, scale) = (u8::try_from(of.precision()).ok()?, i8::try_from(of.scale()).ok()?);
    let (data_type, digits_max) = match of.bitWidth() {
        32 => (DataType::Decimal32(precision, scale), 9),
        64 => (DataType::Decimal64(precision, scale), 18),
        128 => (DataType::Decimal128(precision, scale), 38),
        256 => (DataType::Decimal256(precision, scale), 76),
        _ => return None,
    };
    ((1..=digits_max).contains(&precision) && scale.unsigned_abs() <= digits_max).then_some(data_type)
}

fn unit(unit: ipc::TimeUnit) -> Option<TimeUnit> {
    Some(match unit {
        ipc::TimeUnit::SECOND => TimeUnit::Second,
        ipc::TimeUnit::MILLISECOND => TimeUnit::Millisecond,
        ipc::TimeUnit::MICROSECOND => TimeUnit::Microsecond,
        ipc::TimeUnit::NANOSECOND => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// Returns the id of the dictionary of a field.
#[expect(deprecated, reason = "the crate arrow has no other place for it yet")]
pub(super) fn dictionary_id(field: &Field) -> Option<i64> {
    field.dict_id()
}
