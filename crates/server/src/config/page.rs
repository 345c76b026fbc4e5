//! The settings as text: what holds now, and the page of the documentation.

use super::{ENV_CONFIG, Given, SETTINGS, Source};
use std::fmt::Write;

/// A settings file that says what holds, each line with where it comes from.
#[must_use]
pub fn effective(given: &Given) -> String {
    let mut out = String::new();
    for setting in SETTINGS {
        let (value, source) = given.get(setting.key);
        let value = if setting.secret && !value.is_empty() { "…" } else { value };
        let comment = if source == Source::Default && value.is_empty() { "# " } else { "" };
        let _ = writeln!(out, "{comment}{} = {value:?}  # {source}", setting.key);
    }
    out
}

/// `docs/configuration.md`.
#[must_use]
pub fn markdown() -> String {
    let mut out = format!(
        "<!-- Written by `tidalite config --markdown` from crates/server/src/config.rs; edit there. -->\n\
         # Configuration\n\n\
         Tidalite runs without any. What you want otherwise can be said in three places; a later one wins:\n\n\
         1. a TOML file, named by `--config FILE` or the variable `{ENV_CONFIG}`,\n\
         2. environment variables,\n\
         3. flags of `tidalite serve`.\n\n\
         `tidalite config` prints the settings that hold and where each comes from. An unknown key or a value that is\n\
         not allowed stops the start with a message that says what is. Sizes are bytes, or carry `KiB`, `MiB`, `GiB`;\n\
         times carry `us`, `ms`, `s`, `min`, `h`.\n\n\
         ```toml\n# tidalite.toml\ndata = \"/var/lib/tidalite\"\n\n[http]\nlisten = \"0.0.0.0:9000\"\nuser = \"admin\"\n\
         password = \"secret\"\n```\n\n"
    );
    out.push_str("| key | flag | environment | default | allowed |\n|---|---|---|---|---|\n");
    for s in SETTINGS {
        let default = if s.default.is_empty() { "–".to_owned() } else { format!("`{}`", s.default) };
        let allowed = s.allowed.replace('|', "\\|");
        let _ = writeln!(
            out,
            "| [`{}`](#{}) | `--{}` | `{}` | {default} | {allowed} |",
            s.key,
            anchor(s.key),
            s.flag,
            s.env()
        );
    }
    for s in SETTINGS {
        let _ = write!(out, "\n## {}\n\n{}\n", s.key, s.help);
    }
    out
}

/// As GitHub makes them of headings.
fn anchor(key: &str) -> String {
    key.replace('.', "")
}
