//! The signature that servers ask for over TCP: ECDSA over P-256 with SHA-256.

use crate::errors;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};

/// Signs a challenge with the private key `secret` whose public point is (`x`, `y`).
#[pyfunction]
pub fn sign<'py>(
    py: Python<'py>,
    challenge: &[u8],
    secret: &[u8],
    x: &[u8],
    y: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let refused =
        |why: &dyn std::fmt::Display| errors::of_kind(py, "interface", &format!("the key cannot be used: {why}"));
    let point = [&[4], x, y].concat();
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_private_key_and_public_key(&ECDSA_P256_SHA256_ASN1_SIGNING, secret, &point, &random);
    let signature = key.map_err(|e| refused(&e))?.sign(&random, challenge).map_err(|e| refused(&e))?;
    Ok(PyBytes::new(py, signature.as_ref()))
}
