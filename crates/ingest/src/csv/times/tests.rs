use super::*;

/// The seconds of 2024-01-31T15:04:05Z, from `date -u -d 2024-01-31T15:04:05Z +%s`.
const AT: i64 = 1_706_713_445;

fn seconds(format: &str, text: &str) -> Option<(i64, i64)> {
    TimeFormat::from_text(format).expect(format).instant(text).ok().map(|i| (i.seconds, i.nanos))
}

#[test]
fn notations_with_one_meaning() {
    for (text, expected, nanos) in [
        ("2024-01-31T15:04:05Z", AT, 0),
        ("2024-01-31 15:04:05 UTC", AT, 0),
        ("2024-01-31 15:04:05", AT, 0),
        ("2024-01-31 15:04", AT - 5, 0),
        ("2024/1/31 15:04:05.123", AT, 123_000_000),
        ("2024.01.31 15:04", AT - 5, 0),
        ("2024-01-31 15:04:05,123456", AT, 123_456_000),
        ("2024-01-31 16:04:05+01", AT, 0),
        ("2024-01-31 16:04:05 +0100", AT, 0),
        ("2024-01-31T16:04:05+01:00", AT, 0),
        ("2024-01-31T16:04:05+01:00[Europe/Berlin]", AT, 0),
        ("2024-01-31 16:04:05 Europe/Berlin", AT, 0),
        ("2024-01-31 10:04:05 America/New_York", AT, 0),
        ("2024-01-31 16:04:05 CET", AT, 0),
        ("2024-01-31 17:04:05 UTC+2", AT, 0),
        ("2024-01-31 3:04:05 PM", AT, 0),
        ("2024-01-31 3:04:05 p.m.", AT, 0),
        ("20240131 150405", AT, 0),
        ("20240131 150405123", AT, 123_000_000),
        ("20240131;150405", AT, 0),
        ("20240131-15:04:05.5", AT, 500_000_000),
        ("20240131T150405Z", AT, 0),
        ("20240131_150405", AT, 0),
        ("20240131150405", AT, 0),
        ("20240131150405123", AT, 123_000_000),
        ("202401311504", AT - 5, 0),
        ("31.01.2024 15:04:05", AT, 0),
        ("31.1.2024, 15:04:05", AT, 0),
        ("31.01.24 15:04:05", AT, 0),
        ("31 Jan 2024 15:04:05", AT, 0),
        ("31-Jan-2024 15:04:05", AT, 0),
        ("31-January-24 15:04:05", AT, 0),
        ("Jan 31, 2024 3:04:05 PM", AT, 0),
        ("January 31 2024 15:04:05", AT, 0),
        ("Wed, 31 Jan 2024 15:04:05 GMT", AT, 0),
        ("Wed Jan 31 15:04:05 2024", AT, 0),
        ("Wed Jan 31 15:04:05 UTC 2024", AT, 0),
        ("Wed Jan 31 2024 16:04:05 GMT+0100 (Central European Standard Time)", AT, 0),
        ("31/Jan/2024:16:04:05 +0100", AT, 0),
        ("1706713445", AT, 0),
        ("1706713445.25", AT, 250_000_000),
        ("1.706713445e9", AT, 0),
        ("1706713445123", AT, 123_000_000),
        ("1706713445123456", AT, 123_456_000),
        ("1706713445123456789", AT, 123_456_789),
        // If the clock is set back, the first of both instants; if it is set forward, the instant by the previous
        // offset.
        ("2021-10-31 01:30:00 Europe/London", 1_635_640_200, 0),
        ("2021-03-28 01:30:00 Europe/London", 1_616_895_000, 0),
    ] {
        assert_eq!(seconds("auto", text), Some((expected, nanos)), "{text}");
    }
    for text in [
        "",
        "5",
        "-5",
        "99999999",
        "31/01/2024",
        "2024-02-30",
        "2024-13-01",
        "2024-01-31 25:00",
        "2024-01-31 15",
        "31.13.2024",
        "20241301",
        "2024-01-31 15:04 PST",
        "2024-01-31 13:04 PM",
        "2024-01-31x",
        "1 2024",
        "Jan",
        "Mon",
        "31 Foo 2024",
        "2024-01-31 15:04:05 Europe/Atlantis",
        "2024-01-31 15:04:05.1234567890",
        "1e400",
        "2024-01-31T15:04:05+25",
    ] {
        assert_eq!(seconds("auto", text), None, "{text}");
    }
}

#[test]
fn the_order_of_day_and_month_is_said() {
    for (order, text, expected) in [
        ("dmy", "31/01/2024 15:04:05", Some(AT)),
        ("mdy", "01/31/2024 3:04:05 PM", Some(AT)),
        ("mdy", "1/31/2024 15:04:05", Some(AT)),
        ("dmy", "31-01-2024 15:04:05", Some(AT)),
        ("dmy", "31/01/24 15:04:05", Some(AT)),
        ("mdy", "31/01/2024 15:04:05", None),
        ("dmy", "01/31/2024 15:04:05", None),
        ("mdy", "31.01.2024 15:04:05", Some(AT)),
        ("mdy", "2024-01-31 15:04:05", Some(AT)),
    ] {
        assert_eq!(seconds(order, text).map(|t| t.0), expected, "{order} {text}");
    }
}

#[test]
fn patterns_of_java_and_strptime() {
    for (pattern, text, expected, nanos) in [
        ("yyyy-MM-ddTHH:mm:ss.SSSUUUZ", "2024-01-31T15:04:05.123456Z", AT, 123_456_000),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-01-31T16:04:05.123+01:00", AT, 123_000_000),
        ("dd/MM/yyyy HH:mm:ss", "31/01/2024 15:04:05", AT, 0),
        ("MM/dd/yyyy hh:mm:ss a", "01/31/2024 03:04:05 PM", AT, 0),
        ("M/d/yy h:mm:ss a", "1/31/24 3:04:05 pm", AT, 0),
        ("yyyyMMdd HHmmssSSS", "20240131 150405123", AT, 123_000_000),
        ("yyyyMMddHHmmss", "20240131150405", AT, 0),
        ("dd MMM yyyy HH:mm:ss z", "31 Jan 2024 16:04:05 Europe/Berlin", AT, 0),
        ("E, d MMMM y H:m:s", "Wed, 31 January 2024 15:4:5", AT, 0),
        ("yyyy-DDD HH:mm:ss", "2024-031 15:04:05", AT, 0),
        ("%Y-%m-%d %H:%M:%S.%f", "2024-01-31 15:04:05.5", AT, 500_000_000),
        ("%d.%m.%y %T", "31.01.24 15:04:05", AT, 0),
        ("%b %d %Y %I:%M:%S %p", "Jan 31 2024 03:04:05 PM", AT, 0),
        ("%Y%m%d%H%M%S%z", "20240131160405+0100", AT, 0),
    ] {
        assert_eq!(seconds(pattern, text), Some((expected, nanos)), "{pattern}: {text}");
    }
    for (pattern, text) in [
        ("dd/MM/yyyy", "2024-01-31"),
        ("dd/MM/yyyy", "31/01/2024 15:04"),
        ("dd/MM/yyyy", "31/02/2024"),
        ("dd/MM/yyyy", ""),
        ("yyyy-DDD", "2023-366"),
        ("yyyyMMdd", "2024131"),
    ] {
        assert_eq!(seconds(pattern, text), None, "{pattern}: {text}");
    }
    for bad in ["HH:mm", "yyyy-MM", "yyyy-MM-dd Q", "yyyy-MM-dd 'x", "%Y-%m-%d %q", "%Y-%m-%", "z yyyy-MM-dd", "hello"]
    {
        assert!(TimeFormat::from_text(bad).is_err(), "{bad}");
    }
    for name in ["auto", "dmy", "mdy", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "dd/MM/yyyy"] {
        assert_eq!(TimeFormat::from_text(name).expect(name).to_string(), name);
    }
}

#[test]
fn numbers_of_a_unit_that_was_said() {
    assert_eq!(seconds("epoch_s", "5"), Some((5, 0)));
    assert_eq!(seconds("epoch_ms", "-1"), Some((-1, 999_000_000)));
    assert_eq!(seconds("epoch_ms", "1706713445.5"), Some((1_706_713, 445_500_000)));
    assert_eq!(seconds("epoch_ns", "x"), None);
    let far = TimeFormat::Epoch(EpochUnit::Millis);
    assert_eq!(far.timestamp("1706713445123", TimeUnit::Nanos), Ok(1_706_713_445_123_000_000));
    assert!(far.timestamp("999999999999999999", TimeUnit::Micros).is_err());
    assert_eq!(far.date("86400000"), Ok(1));
}

#[test]
fn times_of_day() {
    for (text, expected) in [
        ("15:04", Some(54_240)),
        ("150405", Some(54_245)),
        ("3:04:05 PM", Some(54_245)),
        ("24:00", None),
        ("x", None),
        ("15:04 UTC", None),
    ] {
        assert_eq!(time_of_day(text), expected.map(|s: i64| s * 1_000_000_000), "{text}");
    }
}

#[test]
fn any_text_is_read_without_a_panic() {
    let mut random = fastrand::Rng::with_seed(5);
    let parts = [
        "2024",
        "01",
        "31",
        "15",
        "Jan",
        "Wed",
        "-",
        "/",
        ".",
        ":",
        " ",
        "T",
        "PM",
        "+01",
        "Z",
        "é",
        "99999999999999999999",
        ",",
        "(",
        "[",
        "UTC",
    ];
    let patterns = ["dd/MM/yyyy HH:mm", "yyyyMMddHHmmssSSS", "EEE dd MMM yy z"].map(|p| TimePattern::new(p).expect(p));
    for _ in 0..20_000 {
        let text: String = (0..random.usize(0..12)).map(|_| parts[random.usize(..parts.len())]).collect();
        for order in [None, Some(DateOrder::DayFirst), Some(DateOrder::MonthFirst)] {
            let _ = TimeFormat::Auto(order).timestamp(&text, TimeUnit::Nanos);
        }
        assert!(patterns.iter().filter(|pattern| pattern.read(&text).is_some()).count() <= patterns.len());
        let _ = (time_of_day(&text), TimeFormat::Epoch(EpochUnit::Seconds).date(&text), TimePattern::new(&text));
    }
}
