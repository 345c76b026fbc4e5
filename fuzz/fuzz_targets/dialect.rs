//! Any text as a statement: the parser must not panic, not take long, and give the same each time. An error's position
//! is in the text, where a character begins, and so are the words that completion expects at its end.
//!
//! The first byte of an input is not part of the text: inputs of earlier versions had a parameter there.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [_, text @ ..] = input else { return };
    let Ok(sql) = std::str::from_utf8(text) else { return };
    drop(tidalite_sql::expected_at(sql, sql.len()));
    let outcome =
        || tidalite_sql::parse(sql).map(drop).map_err(|error| (error.to_string(), error.position, error.hint));
    let first = outcome();
    if let Err((message, position, _)) = &first {
        assert!(!message.is_empty());
        assert!(*position <= sql.len() && sql.is_char_boundary(*position), "{message} at {position}");
    }
    assert_eq!(first, outcome(), "the same each time");
});
