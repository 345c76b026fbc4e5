//! SCRAM-SHA-256 (RFC 5802, RFC 7677): the client proves that it knows the password without sending it, and the server
//! that it knows it too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

/// As PostgreSQL's default.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("it is not zero");
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 18;

/// A user and what is needed to check a proof of its password, which itself is not kept.
pub struct Credentials {
    pub user: String,
    salt: [u8; SALT_BYTES],
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

impl Credentials {
    /// `None` when the system has no random bytes.
    #[must_use]
    pub fn new(user: &str, password: &str) -> Option<Credentials> {
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).ok()?;
        Some(Credentials::salted(user, password, salt, ITERATIONS))
    }

    fn salted(user: &str, password: &str, salt: [u8; SALT_BYTES], iterations: NonZeroU32) -> Credentials {
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password.as_bytes(), &mut salted);
        let client_key = mac(&salted, b"Client Key");
        let mut stored_key = [0; 32];
        stored_key.copy_from_slice(digest::digest(&digest::SHA256, &client_key).as_ref());
        Credentials { user: user.to_owned(), salt, stored_key, server_key: mac(&salted, b"Server Key") }
    }
}

fn mac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data);
    let mut out = [0; 32];
    out.copy_from_slice(tag.as_ref());
    out
}

/// One exchange, after the client's first message.
pub struct Exchange {
    client_first: String,
    pub server_first: String,
    /// What the client must send back: the two nonces, and the header it began with.
    nonce: String,
    header: String,
}

impl Exchange {
    /// `None` when the message is none of ours: no SCRAM, or one that wants to be bound to an encrypted channel.
    #[must_use]
    pub fn begin(credentials: &Credentials, client_first: &[u8]) -> Option<Exchange> {
        let mut bytes = [0; NONCE_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Exchange::begin_with(credentials, client_first, &STANDARD.encode(bytes))
    }

    fn begin_with(credentials: &Credentials, client_first: &[u8], server_nonce: &str) -> Option<Exchange> {
        let text = std::str::from_utf8(client_first).ok()?;
        let (header, bare) = ["n,,", "y,,"].iter().find_map(|h| Some((*h, text.strip_prefix(h)?)))?;
        let client_nonce = bare.split(',').find_map(|part| part.strip_prefix("r="))?;
        if client_nonce.is_empty() {
            return None;
        }
        let nonce = format!("{client_nonce}{server_nonce}");
        let server_first = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(credentials.salt));
        Some(Exchange { client_first: bare.to_owned(), server_first, nonce, header: header.to_owned() })
    }

    /// The server's last message, when the proof holds.
    #[must_use]
    pub fn finish(&self, credentials: &Credentials, client_final: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(client_final).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let (channel, nonce) = without_proof.split_once(',')?;
        let is_same = channel == format!("c={}", STANDARD.encode(&self.header)) && nonce == format!("r={}", self.nonce);
        let proof: [u8; 32] = STANDARD.decode(proof).ok()?.try_into().ok()?;
        let message = format!("{},{},{without_proof}", self.client_first, self.server_first);
        let signature = mac(&credentials.stored_key, message.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(key, s)| *key ^= s);
        let stored = digest::digest(&digest::SHA256, &client_key);
        // Digests are compared: how far they agree says nothing about the key.
        let is_known = stored.as_ref() == credentials.stored_key;
        (is_same && is_known)
            .then(|| format!("v={}", STANDARD.encode(mac(&credentials.server_key, message.as_bytes()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard_holds() {
        let salt: [u8; 16] = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap();
        let credentials = Credentials::salted("user", "pencil", salt, ITERATIONS);
        let exchange =
            Exchange::begin_with(&credentials, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
                .unwrap();
        assert_eq!(
            exchange.server_first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let proved = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let answer = exchange.finish(&credentials, proved).unwrap();
        assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let other = Credentials::salted("user", "pencil2", salt, ITERATIONS);
        assert_eq!(exchange.finish(&other, proved), None);
        let mut forged = proved.to_vec();
        forged[40] ^= 1;
        assert_eq!(exchange.finish(&credentials, &forged), None);
        for wrong in [&b""[..], b",p=", b"c=biws,r=,p=AAAA", b"\xff"] {
            assert_eq!(exchange.finish(&credentials, wrong), None);
        }
    }

    #[test]
    fn other_beginnings_are_refused() {
        let credentials = Credentials::new("u", "p").unwrap();
        for first in [&b""[..], b"n,,", b"p=tls-unique,,n=,r=x", b"n,a=other,n=,r=x", b"n,,n=,r=", b"\xff"] {
            assert!(Exchange::begin(&credentials, first).is_none());
        }
    }
}
