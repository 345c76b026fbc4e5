//! Who may send lines: the ECDSA challenge of QuestDB's clients.
//!
//! The client sends its key's name and a newline, the server 512 random printable characters and a newline, the
//! client its signature of those characters in base64 and a newline. Then the lines follow.

use crate::socket::Socket;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CHALLENGE_BYTES: usize = 512;

/// The longest name of a key or signature.
const ANSWER_BYTES_MAX: usize = 1024;

/// Public keys by name, each as an uncompressed point: 4, x, y.
#[derive(Debug)]
pub struct Keys(HashMap<String, [u8; 65]>);

impl Keys {
    /// # Errors
    /// When the file cannot be read or a line is not `name ec-p-256-sha256 x y`.
    pub fn read(path: &Path) -> Result<Keys, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("could not read {}: {e}", path.display()))?;
        Keys::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn parse(text: &str) -> Result<Keys, String> {
        let mut keys = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let &[name, "ec-p-256-sha256", x, y] = words.as_slice() else {
                return Err(format!("line {} is not \"name ec-p-256-sha256 x y\"", number + 1));
            };
            let (Some(x), Some(y)) = (coordinate(x), coordinate(y)) else {
                return Err(format!("line {}: x and y are 32 bytes each in base64url", number + 1));
            };
            let mut point = [4; 65];
            point[1..33].copy_from_slice(&x);
            point[33..].copy_from_slice(&y);
            keys.insert(name.to_owned(), point);
        }
        if keys.is_empty() { Err("there is no key in it".to_owned()) } else { Ok(Keys(keys)) }
    }

    fn verify(&self, name: &str, challenge: &[u8], signature: &[u8]) -> bool {
        let Some(point) = self.0.get(name) else { return false };
        // Clients sign as two numbers of 32 bytes, older ones in DER.
        let fixed = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(challenge, signature);
        fixed.is_ok() || UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(challenge, signature).is_ok()
    }
}

fn coordinate(text: &str) -> Option<[u8; 32]> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    // Leading zeros may be left out.
    let mut out = [0; 32];
    out.get_mut(32usize.checked_sub(bytes.len())?..)?.copy_from_slice(&bytes);
    Some(out)
}

/// Returns what the client sent behind its signature.
pub async fn challenge(socket: &mut Socket, keys: &Keys, timeout: Duration) -> io::Result<Vec<u8>> {
    match crate::accept::in_time(timeout, exchange(socket, keys)).await {
        Some(result) => result,
        None => Err(io::Error::new(io::ErrorKind::TimedOut, "the client did not answer the challenge")),
    }
}

async fn exchange(socket: &mut Socket, keys: &Keys) -> io::Result<Vec<u8>> {
    let denied = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let mut received = Vec::new();
    let name = read_line(socket, &mut received).await?;
    let mut challenge = random_text()?;
    challenge.push(b'\n');
    socket.write_all(&challenge).await?;
    socket.flush().await?;
    challenge.pop();
    let signature = read_line(socket, &mut received).await?;
    let signature = STANDARD_NO_PAD.decode(signature.trim_end_matches('='));
    let signature = signature.map_err(|_| denied("the signature is not base64".to_owned()))?;
    if keys.verify(&name, &challenge, &signature) {
        Ok(received)
    } else {
        Err(denied(format!("no key {:?}, or its signature is wrong", crate::logging::cut(&name))))
    }
}

/// Takes a line off `received`, reading more as needed.
async fn read_line(socket: &mut Socket, received: &mut Vec<u8>) -> io::Result<String> {
    loop {
        if let Some(end) = memchr::memchr(b'\n', received) {
            let line: Vec<u8> = received.drain(..=end).collect();
            return Ok(String::from_utf8_lossy(&line[..end]).trim_end_matches('\r').to_owned());
        }
        if received.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not authenticate but sends data"));
        }
        if socket.read_buf(received).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the client closed the connection"));
        }
    }
}

fn random_text() -> io::Result<Vec<u8>> {
    const FIRST: u8 = 33;
    const COUNT: u8 = 94;
    let random = SystemRandom::new();
    let mut out = Vec::with_capacity(CHALLENGE_BYTES + 1);
    let mut bytes = [0; 256];
    while out.len() < CHALLENGE_BYTES {
        random.fill(&mut bytes).map_err(|_| io::Error::other("no random numbers from the system"))?;
        // Larger bytes would make some characters likelier.
        let fair = bytes.iter().filter(|b| **b < COUNT * 2).map(|b| FIRST + b % COUNT);
        out.extend(fair.take(CHALLENGE_BYTES - out.len()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    #[test]
    fn both_forms_of_signature_by_a_known_key_pass() {
        let random = SystemRandom::new();
        let secret = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = |form| EcdsaKeyPair::from_pkcs8(form, secret.as_ref(), &random).unwrap();
        let fixed = pair(&ECDSA_P256_SHA256_FIXED_SIGNING);
        let public = fixed.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&public[1..33]), URL_SAFE_NO_PAD.encode(&public[33..]));
        let keys = Keys::parse(&format!("# users\n\nme ec-p-256-sha256 {x} {y} # mine\n")).unwrap();
        let challenge = random_text().unwrap();
        assert_eq!(challenge.len(), CHALLENGE_BYTES);
        assert!(challenge.iter().all(u8::is_ascii_graphic));
        for form in [fixed, pair(&ECDSA_P256_SHA256_ASN1_SIGNING)] {
            let signature = form.sign(&random, &challenge).unwrap();
            assert!(keys.verify("me", &challenge, signature.as_ref()));
            assert!(!keys.verify("you", &challenge, signature.as_ref()));
            assert!(!keys.verify("me", b"other", signature.as_ref()));
        }
    }

    #[test]
    fn a_bad_file_names_its_line() {
        assert_eq!(Keys::parse("a b c").unwrap_err(), "line 1 is not \"name ec-p-256-sha256 x y\"");
        assert_eq!(Keys::parse("\n").unwrap_err(), "there is no key in it");
        assert!(Keys::parse("a ec-p-256-sha256 !! !!").unwrap_err().starts_with("line 1: x and y"));
        let questdb = "testUser1 ec-p-256-sha256 fLKYEaoEb9lrn3nkwLDA-M_xnuFOdSt9y0Z7_vWSHLU Dt5tbS1dEDMSYfym3fgMv0B99szno-dFc1rYF9t0aac";
        assert!(Keys::parse(questdb).is_ok());
    }
}
