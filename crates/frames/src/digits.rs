//! Formats the digits of decimals.

/// Appends a decimal, for example `-12.05` for -1205 and a scale of 2.
pub(crate) fn push_decimal(value: i128, scale: u8, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value.unsigned_abs()).as_bytes();
    let scale = usize::from(scale);
    let whole = digits.len().saturating_sub(scale);
    out.extend_from_slice(if whole == 0 { b"0" } else { &digits[..whole] });
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + scale.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(&digits[whole..]);
    }
}
