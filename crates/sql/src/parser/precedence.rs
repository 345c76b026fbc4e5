//! Operator precedence; a higher number binds more tightly.

pub const OR: u8 = 1;
pub const AND: u8 = 2;
pub const NOT: u8 = 3;
pub const IS: u8 = 4;
pub const COMPARISON: u8 = 5;
/// BETWEEN, IN, LIKE.
pub const RANGE: u8 = 6;
/// All other operators.
pub const OTHER: u8 = 7;
pub const BIT_XOR: u8 = 8;
pub const BIT_AND: u8 = 9;
pub const SHIFT: u8 = 10;
pub const SUM: u8 = 11;
pub const PRODUCT: u8 = 12;
pub const ARROW: u8 = 13;
pub const POWER: u8 = 14;
pub const AT: u8 = 15;
pub const COLLATE: u8 = 16;
