//! The texts of settings, and their sources.

use super::error::SettingError;
use super::{ENV_CONFIG, ENV_PREFIX, ENV_RESTARTS, ENV_SYNC_DELAY, SETTINGS, SHELL_ENV, find};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The source of a value; a later variant has precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Default,
    File(PathBuf),
    Env,
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Env => f.write_str("environment"),
            Source::Flag => f.write_str("flag"),
        }
    }
}

/// Always: keys are keys of [`SETTINGS`].
#[derive(Clone, Debug, Default)]
pub struct Given {
    values: BTreeMap<&'static str, (String, Source)>,
    /// From the hidden variable of tests.
    pub sync_delay_ms: Option<String>,
    /// Variables that look like settings and are none. Not an error: Kubernetes puts variables of its own
    /// (`TIDALITE_PORT`, …) into every container beside a service named tidalite.
    pub unknown_env: Vec<String>,
}

impl Given {
    /// # Errors
    /// When a file cannot be read, is no TOML, or has an unknown key.
    pub fn gather(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: impl Iterator<Item = (&'static str, String)>,
    ) -> Result<Given, SettingError> {
        let mut given = Given::default();
        let env: Vec<(String, String)> = env.filter(|(name, _)| name.starts_with(ENV_PREFIX)).collect();
        let env_file = env.iter().find(|(name, _)| name == ENV_CONFIG).map(|(_, path)| PathBuf::from(path));
        if let Some(path) = file.map(Path::to_path_buf).or(env_file) {
            given.read_file(&path)?;
        }
        given.read_env(env);
        for (key, value) in flags {
            given.values.insert(key, (value, Source::Flag));
        }
        Ok(given)
    }

    /// The value of a setting and where it comes from; an empty text when nothing was given and there is no default.
    #[must_use]
    pub fn get(&self, key: &str) -> (&str, Source) {
        match self.values.get(key) {
            Some((value, source)) => (value, source.clone()),
            None => (find(key).map_or("", |s| s.default), Source::Default),
        }
    }

    /// For a command whose default is another.
    pub fn set_default(&mut self, key: &'static str, value: &str) {
        self.values.insert(key, (value.to_owned(), Source::Default));
    }

    fn read_env(&mut self, env: Vec<(String, String)>) {
        for (name, value) in env {
            if name == ENV_CONFIG || name == ENV_RESTARTS || SHELL_ENV.contains(&name.as_str()) {
                continue;
            }
            if name == ENV_SYNC_DELAY {
                self.sync_delay_ms = Some(value);
            } else if let Some(setting) = SETTINGS.iter().find(|s| s.env() == name) {
                self.values.insert(setting.key, (value, Source::Env));
            } else {
                self.unknown_env.push(name);
            }
        }
    }

    fn read_file(&mut self, path: &Path) -> Result<(), SettingError> {
        let bad = |problem: String| SettingError(format!("settings file {}: {problem}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| bad(format!("could not be read: {e}")))?;
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| bad(e.to_string().trim_end().to_owned()))?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        for (key, value) in flat {
            let setting = find(&key).ok_or_else(|| bad(unknown_key(&key)))?;
            let text = as_text(value).ok_or_else(|| {
                bad(format!("setting {key:?} is {}; allowed is {}", value.type_str(), setting.allowed))
            })?;
            self.values.insert(setting.key, (text, Source::File(path.to_path_buf())));
        }
        Ok(())
    }
}

fn flatten<'a>(prefix: &str, table: &'a toml::Table, out: &mut Vec<(String, &'a toml::Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, out),
            _ => out.push((key, value)),
        }
    }
}

/// A TOML value in the words of the environment.
fn as_text(value: &toml::Value) -> Option<String> {
    Some(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(flag) => flag.to_string(),
        toml::Value::Array(items) => {
            items.iter().map(|i| i.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()?.join(",")
        }
        _ => return None,
    })
}

fn unknown_key(key: &str) -> String {
    let nearest = SETTINGS.iter().min_by_key(|s| distance(s.key, key)).filter(|s| distance(s.key, key) <= 3);
    match nearest {
        Some(setting) => format!("there is no setting {key:?}; did you mean {:?}?", setting.key),
        None => format!("there is no setting {key:?}; `tidalite config` lists all there are"),
    }
}

/// Levenshtein's.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
