//! The values of a Bind message as parameters of a statement.
//!
//! A value in text is read as its type's constant would be; without a type it is a constant whose place decides. Every
//! type has a binary form here or is refused by name.

use super::numeric;
use super::reply::Report;
use tidalite::Parameter;
use tidalite::types::ColumnType;
use tidalite::types::pg_type::{self, PgType};
use tidalite::types::text::hex_digits;
use tidalite::types::time::{TimeUnit, format_timestamp};

/// From 1970-01-01 to 2000-01-01.
const EPOCH_US: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i64 = 10_957;
const DAY_US: i64 = 86_400_000_000;

/// `number` is the parameter's, from 1, for errors; `oid` 0 stands for no type.
///
/// # Errors
/// When the bytes are no value of the type.
pub fn decode(number: usize, oid: u32, is_binary: bool, value: Option<&[u8]>) -> Result<Parameter, Report> {
    let Some(bytes) = value else { return Ok(Parameter::Null) };
    let pg_type = match oid {
        0 => pg_type::UNKNOWN,
        oid => pg_type::by_oid(oid).ok_or_else(|| unsupported(number, &format!("number {oid}")))?,
    };
    if is_binary && is_infinite(pg_type, bytes) {
        let message = format!("infinity is not supported as a value of type {}: bind parameter {number}", pg_type.name);
        return Err(Report::error("0A000", message));
    }
    if is_binary {
        return binary(pg_type, bytes).ok_or_else(|| match readable(pg_type) {
            true => Report::error("22P03", format!("incorrect binary data format in bind parameter {number}")),
            false => unsupported(number, pg_type.name),
        });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Report::error("22021", "invalid byte sequence for encoding \"UTF8\""))?;
    if text.contains('\0') {
        return Err(Report::error("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    from_text(pg_type, text).ok_or_else(|| match is_integer(pg_type) && has_digits_only(text) {
        true => Report::error("22003", format!("value \"{text}\" is out of range for type {}", pg_type.sql_name)),
        false => Report::error("22P02", format!("invalid input syntax for type {}: \"{text}\"", pg_type.sql_name)),
    })
}

fn unsupported(number: usize, type_name: &str) -> Report {
    Report::error("0A000", format!("type {type_name} of bind parameter {number} is not supported"))
        .with_hint("send it as text, without a type")
}

/// Whether values of the type have a binary form here.
fn readable(pg_type: PgType) -> bool {
    !matches!(pg_type, pg_type::INET | pg_type::ACLITEM | pg_type::TID | pg_type::PG_LSN)
}

/// Returns true for an infinity of PostgreSQL, which datetime.max of Python becomes in asyncpg.
fn is_infinite(pg_type: PgType, bytes: &[u8]) -> bool {
    match pg_type {
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ => [i64::MIN, i64::MAX].iter().any(|end| bytes == end.to_be_bytes()),
        pg_type::DATE => [i32::MIN, i32::MAX].iter().any(|end| bytes == end.to_be_bytes()),
        _ => false,
    }
}

fn is_integer(pg_type: PgType) -> bool {
    matches!(pg_type, pg_type::INT2 | pg_type::INT4 | pg_type::INT8 | pg_type::OID)
}

fn has_digits_only(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn from_text(pg_type: PgType, text: &str) -> Option<Parameter> {
    let trimmed = text.trim();
    Some(match pg_type {
        pg_type::BOOL => match trimmed.to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => Parameter::Boolean(true),
            "f" | "false" | "n" | "no" | "off" | "0" => Parameter::Boolean(false),
            _ => return None,
        },
        pg_type::INT2 => Parameter::Long(trimmed.parse::<i16>().ok()?.into()),
        pg_type::INT4 => Parameter::Long(trimmed.parse::<i32>().ok()?.into()),
        pg_type::INT8 => Parameter::Long(trimmed.parse().ok()?),
        pg_type::OID => Parameter::Long(trimmed.parse::<u32>().ok()?.into()),
        pg_type::FLOAT4 | pg_type::FLOAT8 => Parameter::Double(trimmed.parse().ok()?),
        pg_type::NUMERIC => decimal(trimmed)?,
        pg_type::BYTEA => Parameter::Bytes(hex(trimmed.strip_prefix("\\x")?)?),
        pg_type if pg_type.is_array() => {
            let element = pg_type::by_oid(pg_type.element)?;
            Parameter::list_of_text(trimmed, &|text| from_text(element, text))?
        }
        pg_type => typed(pg_type, text.to_owned()),
    })
}

/// A constant with the type it has to have.
fn typed(pg_type: PgType, text: String) -> Parameter {
    match pg_type {
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ => {
            let unit = unit(&text);
            Parameter::Typed(text, ColumnType::Timestamp(unit))
        }
        pg_type::DATE => Parameter::Typed(text, ColumnType::Date),
        pg_type::UUID => Parameter::Typed(text, ColumnType::Uuid),
        pg_type::JSON => Parameter::Typed(text, ColumnType::Json),
        pg_type::JSONB => Parameter::Typed(text, ColumnType::Jsonb),
        pg_type::INTERVAL | pg_type::TIME => Parameter::Of(text, pg_type),
        _ => Parameter::Text(text),
    }
}

/// Microseconds, unless the text has more digits.
fn unit(text: &str) -> TimeUnit {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 6 { TimeUnit::Nanos } else { TimeUnit::Micros }
}

fn decimal(text: &str) -> Option<Parameter> {
    let number: f64 = text.parse().ok()?;
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+'));
    Some(if is_plain { Parameter::Decimal(text.trim_start_matches('+').to_owned()) } else { Parameter::Double(number) })
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn binary(pg_type: PgType, bytes: &[u8]) -> Option<Parameter> {
    Some(match pg_type {
        pg_type::BOOL => Parameter::Boolean(i8::from_be_bytes(bytes.try_into().ok()?) != 0),
        pg_type::INT2 => Parameter::Long(i64::from(i16::from_be_bytes(bytes.try_into().ok()?))),
        pg_type::INT4 => Parameter::Long(i64::from(i32::from_be_bytes(bytes.try_into().ok()?))),
        pg_type::OID => Parameter::Long(i64::from(u32::from_be_bytes(bytes.try_into().ok()?))),
        pg_type::INT8 => Parameter::Long(i64::from_be_bytes(bytes.try_into().ok()?)),
        // By its text, which has no more digits than the value.
        pg_type::FLOAT4 => Parameter::Double(f32::from_be_bytes(bytes.try_into().ok()?).to_string().parse().ok()?),
        pg_type::FLOAT8 => Parameter::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
        pg_type::NUMERIC => decimal(&numeric::text_of(bytes)?)?,
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ => {
            let us = i64::from_be_bytes(bytes.try_into().ok()?);
            // The ends are PostgreSQL's infinities.
            let us = us.checked_add(EPOCH_US).filter(|_| us != i64::MIN && us != i64::MAX)?;
            Parameter::Typed(format_timestamp(us, TimeUnit::Micros), ColumnType::Timestamp(TimeUnit::Micros))
        }
        pg_type::DATE => {
            let days = i64::from(i32::from_be_bytes(bytes.try_into().ok()?)) + EPOCH_DAYS;
            let text = format_timestamp(days.checked_mul(DAY_US)?, TimeUnit::Micros);
            Parameter::Typed(text.split('T').next()?.to_owned(), ColumnType::Date)
        }
        pg_type::UUID => {
            let bytes: [u8; 16] = bytes.try_into().ok()?;
            let digits = hex_digits(&bytes);
            let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
            Parameter::Typed(parts.join("-"), ColumnType::Uuid)
        }
        pg_type::BYTEA => Parameter::Bytes(bytes.to_vec()),
        pg_type::JSON => typed(pg_type, text(bytes)?),
        pg_type::JSONB => typed(pg_type, text(bytes.strip_prefix(b"\x01")?)?),
        pg_type::INTERVAL => Parameter::Of(interval(bytes)?, pg_type),
        pg_type::TIME => {
            let us = i64::from_be_bytes(bytes.try_into().ok()?);
            let us = Some(us).filter(|us| (0..=DAY_US).contains(us))?;
            Parameter::Of(clock(us), pg_type)
        }
        pg_type if pg_type.is_object() => Parameter::Long(i64::from(u32::from_be_bytes(bytes.try_into().ok()?))),
        pg_type if pg_type.is_array() => array_of_bytes(bytes)?,
        _ => Parameter::Text(text(bytes)?),
    })
}

/// `01:02:03.000004`.
fn clock(us: i64) -> String {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    format!("{:02}:{:02}:{:02}.{us:06}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Microseconds, days and months, each with its own sign.
fn interval(bytes: &[u8]) -> Option<String> {
    let (us, rest) = bytes.split_first_chunk::<8>()?;
    let (days, rest) = rest.split_first_chunk::<4>()?;
    let us = i64::from_be_bytes(*us);
    let (days, months) = (i32::from_be_bytes(*days), i32::from_be_bytes(rest.try_into().ok()?));
    let sign = if us < 0 { "-" } else { "" };
    let us = us.unsigned_abs();
    Some(format!("{months} months {days} days {sign}{}.{:06} seconds", us / 1_000_000, us % 1_000_000))
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok().filter(|t| !t.contains('\0'))
}

/// Dimensions, whether there are NULLs, the type of the elements; then length and lower bound of each dimension.
fn array_of_bytes(bytes: &[u8]) -> Option<Parameter> {
    let mut rest = bytes;
    let mut word = || -> Option<i32> {
        let (word, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        Some(i32::from_be_bytes(*word))
    };
    let (dims, _, element) = (word()?, word()?, word()? as u32);
    if !(0..=Parameter::DIMS_MAX).contains(&dims) {
        return None;
    }
    let element = pg_type::by_oid(element).filter(|t| !t.is_array())?;
    let mut lengths = Vec::new();
    for _ in 0..dims {
        lengths.push(usize::try_from(word()?).ok()?);
        word()?;
    }
    // One that is empty has no elements, whatever the others say.
    if lengths.is_empty() || lengths.contains(&0) {
        return rest.is_empty().then(|| Parameter::List(Vec::new()));
    }
    let list = items(&mut rest, element, &lengths)?;
    rest.is_empty().then_some(list)
}

fn items(rest: &mut &[u8], element: PgType, lengths: &[usize]) -> Option<Parameter> {
    let Some((length, inner)) = lengths.split_first() else {
        let (size, after) = rest.split_first_chunk::<4>()?;
        *rest = after;
        let size = i32::from_be_bytes(*size);
        if size == -1 {
            return Some(Parameter::Null);
        }
        let (value, after) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        *rest = after;
        return binary(element, value);
    };
    // Each element takes bytes, so a length that lies ends soon.
    let mut list = Vec::new();
    for _ in 0..*length {
        list.push(items(rest, element, inner)?);
    }
    Some(Parameter::List(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(oid: u32, text: &str) -> Result<Parameter, String> {
        decode(1, oid, false, Some(text.as_bytes())).map_err(|e| e.message)
    }

    fn of_bytes(oid: u32, bytes: &[u8]) -> Option<Parameter> {
        decode(1, oid, true, Some(bytes)).ok()
    }

    #[test]
    fn text_is_read_by_type() {
        assert_eq!(of_text(0, "1; drop").unwrap(), Parameter::Text("1; drop".to_owned()));
        assert_eq!(of_text(20, " -5 ").unwrap(), Parameter::Long(-5));
        assert_eq!(of_text(701, "NaN").map(|p| format!("{p:?}")).unwrap(), "Double(NaN)");
        assert_eq!(of_text(1700, "1.50").unwrap(), Parameter::Decimal("1.50".to_owned()));
        assert_eq!(of_text(1700, "1e3").unwrap(), Parameter::Double(1000.0));
        assert_eq!(of_text(17, "\\x01ff").unwrap(), Parameter::Bytes(vec![1, 255]));
        let nanos = of_text(1114, "2020-01-01 00:00:00.123456789").unwrap();
        assert!(matches!(nanos, Parameter::Typed(_, ColumnType::Timestamp(TimeUnit::Nanos))));
        for (oid, text) in
            [(20, "x"), (16, "maybe"), (17, "\\x0"), (17, "\\xzz"), (1700, "--1"), (1022, "{1"), (1022, "{1}}")]
        {
            assert!(of_text(oid, text).unwrap_err().starts_with("invalid input syntax for type "), "{text}");
        }
        for (oid, name) in [(21, "smallint"), (23, "integer"), (20, "bigint")] {
            let report = decode(1, oid, false, Some(b"-99999999999999999999")).unwrap_err();
            let expected = format!("value \"-99999999999999999999\" is out of range for type {name}");
            assert_eq!((report.sqlstate, report.message), ("22003", expected));
        }
        assert_eq!(decode(1, 20, false, None).unwrap(), Parameter::Null);
    }

    #[test]
    fn arrays_are_read_in_both_forms() {
        let expected = Parameter::List(vec![Parameter::Double(1.0), Parameter::Null]);
        assert_eq!(of_text(1022, "{1,NULL}").unwrap(), expected);
        let bytes = [
            &1i32.to_be_bytes()[..],
            &1i32.to_be_bytes(),
            &701i32.to_be_bytes(),
            &2i32.to_be_bytes(),
            &1i32.to_be_bytes(),
            &8i32.to_be_bytes(),
            &1f64.to_be_bytes(),
            &(-1i32).to_be_bytes(),
        ]
        .concat();
        assert_eq!(of_bytes(1022, &bytes).unwrap(), expected);
        for cut in 0..bytes.len() {
            assert_eq!(of_bytes(1022, &bytes[..cut]), None);
        }
        let mut lying = bytes.clone();
        lying[12..16].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(of_bytes(1022, &lying), None);
        let words = of_text(1009, "{\"a,\\\"\", b ,\"NULL\",{}}").unwrap();
        let text = |t: &str| Parameter::Text(t.to_owned());
        assert_eq!(words, Parameter::List(vec![text("a,\""), text("b"), text("NULL"), Parameter::List(vec![])]));
        let deep = "{".repeat(100_000);
        assert!(of_text(1009, &deep).is_err());
    }

    #[test]
    fn bytes_are_read_by_type() {
        let typed = |text: &str, t| Some(Parameter::Typed(text.to_owned(), t));
        let micros = ColumnType::Timestamp(TimeUnit::Micros);
        assert_eq!(of_bytes(1114, &1i64.to_be_bytes()), typed("2000-01-01T00:00:00.000001Z", micros));
        assert_eq!(of_bytes(1184, &(-1i64).to_be_bytes()), typed("1999-12-31T23:59:59.999999Z", micros));
        for (oid, bytes) in [(1114, i64::MAX.to_be_bytes().to_vec()), (1184, i64::MIN.to_be_bytes().to_vec())] {
            assert_eq!(decode(1, oid, true, Some(&bytes)).unwrap_err().sqlstate, "0A000");
        }
        assert_eq!(decode(1, 1082, true, Some(&i32::MAX.to_be_bytes())).unwrap_err().sqlstate, "0A000");
        assert_eq!(of_bytes(1082, &(-1i32).to_be_bytes()), typed("1999-12-31", ColumnType::Date));
        assert_eq!(of_bytes(700, &0.1f32.to_be_bytes()), Some(Parameter::Double(0.1)));
        assert_eq!(of_bytes(2950, &[0x11; 16]), typed("11111111-1111-1111-1111-111111111111", ColumnType::Uuid));
        assert_eq!(of_bytes(25, b"a\0b"), None);
        for pg_type in pg_type::TYPES {
            for length in 0..20 {
                let _ = of_bytes(pg_type.oid, &vec![0x7f; length]);
            }
        }
        assert!(decode(1, 4_000_000, true, Some(b"")).unwrap_err().message.contains("number 4000000"));
    }
}
