//! What can be wrong with files. Handshakes are tried with real clients and certificates in `tests/clients`.

use super::*;

#[test]
fn a_file_that_is_no_good_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let absent = path("absent.pem");
    let reason = Certificate::read(&absent, &absent).unwrap_err();
    assert!(reason.starts_with(&format!("{}: could not be read: ", absent.display())), "{reason}");

    let text = path("text.pem");
    std::fs::write(&text, "hello").unwrap();
    let reason = Certificate::read(&text, &absent).unwrap_err();
    assert_eq!(reason, format!("{}: there is no certificate in it", text.display()));

    let chain = path("chain.pem");
    std::fs::write(&chain, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let reason = Certificate::read(&chain, &text).unwrap_err();
    assert_eq!(reason, format!("{}: there is no private key in it (PEM)", text.display()));

    let locked = path("locked.pem");
    std::fs::write(&locked, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    let reason = Certificate::read(&chain, &locked).unwrap_err();
    assert!(reason.ends_with("locked.pem: the private key is encrypted; give one without a passphrase"), "{reason}");

    let broken = path("broken.pem");
    std::fs::write(&broken, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
    let reason = Certificate::read(&chain, &broken).unwrap_err();
    assert!(reason.starts_with(&format!("{}: the private key cannot be used: ", broken.display())), "{reason}");
}
