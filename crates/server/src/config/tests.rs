use super::error::SettingError;
use super::*;
use std::path::Path;
use std::time::Duration;

fn given(file: Option<&Path>, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<Given, SettingError> {
    let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    Given::gather(file, env, flags.iter().map(|(k, v)| (*k, (*v).to_owned())))
}

fn config(flags: &[(&'static str, &str)]) -> Result<Config, SettingError> {
    Config::new(&given(None, &[], flags)?)
}

#[test]
fn the_defaults_are_allowed() {
    let config = config(&[]).unwrap();
    assert_eq!(config.http.unwrap().text, "127.0.0.1:9000");
    assert_eq!(config.database.staging_bytes, 256 << 20);
    assert_eq!(config.ilp_commit_interval, Duration::from_millis(10));
}

#[test]
fn flags_win_over_environment_over_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.toml");
    std::fs::write(
        &file,
        "data = \"file\"\n[http]\nlisten = \"127.0.0.1:1\"\ntokens = [\"a\", \"b\"]\n[ilp]\nbatch_rows_max = 5\n",
    )
    .unwrap();
    let env = [("TIDALITE_HTTP_LISTEN", "127.0.0.1:2"), ("TIDALITE_ILP_BATCH_ROWS_MAX", "6"), ("TIDALITE_PORT", "x")];
    let given = given(Some(&file), &env, &[("http.listen", "127.0.0.1:3")]).unwrap();
    assert_eq!(given.unknown_env, ["TIDALITE_PORT"]);
    let config = Config::new(&given).unwrap();
    assert_eq!(config.database.data, Path::new("file"));
    assert_eq!(config.http.unwrap().text, "127.0.0.1:3");
    assert_eq!(config.ilp_batch_rows_max, 6);
    assert_eq!(config.http_tokens, ["a", "b"]);
}

#[test]
fn errors_name_the_key_the_value_and_what_is_allowed() {
    let error = config(&[("durability", "sometimes")]).unwrap_err().0;
    assert_eq!(
        error,
        "setting \"durability\" is \"sometimes\" (from flag); allowed is sync, os, or a time such as 200ms"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.toml");
    std::fs::write(&file, "[http]\nlisen = \"x\"\n").unwrap();
    let error = given(Some(&file), &[], &[]).unwrap_err().0;
    assert!(error.ends_with("there is no setting \"http.lisen\"; did you mean \"http.listen\"?"), "{error}");
    std::fs::write(&file, "[http]\nlisten = 1.5\n").unwrap();
    assert!(given(Some(&file), &[], &[]).unwrap_err().0.contains("setting \"http.listen\" is float"));
    let error = given(Some(Path::new("/nowhere/t.toml")), &[], &[]).unwrap_err().0;
    assert!(error.starts_with("settings file /nowhere/t.toml: could not be read"), "{error}");
}

#[test]
fn secrets_are_not_shown() {
    let error = config(&[("http.tokens", "a b")]).unwrap_err().0;
    assert!(!error.contains("a b"), "{error}");
    assert!(!effective(&given(None, &[], &[("http.password", "pst")]).unwrap()).contains("pst"));
}

#[test]
fn listening_beyond_this_machine_wants_authentication_or_intent() {
    let error = config(&[("http.listen", "0.0.0.0:9000")]).unwrap_err().0;
    assert!(error.contains("\"http.listen\" is \"0.0.0.0:9000\"") && error.contains("--insecure-bind"), "{error}");
    assert!(config(&[("http.listen", "0.0.0.0:9000"), ("insecure_bind", "true")]).is_ok());
    assert!(config(&[("http.listen", "0.0.0.0:9000"), ("http.tokens", "t")]).is_ok());
    assert!(config(&[("ilp.listen", "0.0.0.0:9009"), ("http.tokens", "t")]).is_err());
    assert!(config(&[("http.user", "u")]).is_err());
}

#[test]
fn ports_encrypt_when_there_is_a_certificate() {
    assert!(!config(&[]).unwrap().http_tls);
    let files = [("tls.certificate", "c.pem"), ("tls.key", "k.pem")];
    let all = config(&files).unwrap();
    assert!(all.http_tls && all.pg_tls && all.ilp_tls);
    let some = config(&[files[0], files[1], ("ilp.tls", "false")]).unwrap();
    assert!(some.http_tls && some.pg_tls && !some.ilp_tls);
    let error = config(&files[..1]).unwrap_err().0;
    assert_eq!(error, "setting \"tls.certificate\" is set and \"tls.key\" is not");
    let error = config(&[("pg.tls", "true")]).unwrap_err().0;
    assert_eq!(error, "setting \"pg.tls\" is \"true\" and \"tls.certificate\" is not set");
    assert!(config(&[("pg.tls", "perhaps")]).is_err());
}

#[test]
fn sizes_and_times_carry_units() {
    assert_eq!(meaning::bytes("1_000"), Some(1000));
    assert_eq!(meaning::bytes("4 MiB"), Some(4 << 20));
    assert_eq!(meaning::bytes("4 furlongs"), None);
    assert_eq!(meaning::bytes("99999999999GiB"), None);
    assert_eq!(meaning::duration("5min"), Some(Duration::from_secs(300)));
    assert_eq!(meaning::duration("5"), None);
    assert_eq!(meaning::duration("0"), Some(Duration::ZERO));
}

#[test]
fn the_page_of_the_documentation_is_up_to_date() {
    let path = "../../docs/configuration.md";
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == markdown(), "docs/configuration.md is not what `tidalite config --markdown` writes");
}

#[test]
fn keys_flags_and_variables_are_distinct() {
    for (i, a) in SETTINGS.iter().enumerate() {
        for b in &SETTINGS[i + 1..] {
            assert!(a.key != b.key && a.flag != b.flag && a.env() != b.env(), "{} and {}", a.key, b.key);
        }
    }
}
