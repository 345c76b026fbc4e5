//! Texts that stand for NULL.

/// In columns of any type, as SQL programs write NULL.
const ANYWHERE: [&str; 2] = ["NULL", "\\N"];
/// In columns that do not hold text, in any case.
const BESIDE_VALUES: [&str; 9] = ["null", "\\n", "na", "n/a", "#n/a", "nan", "-nan", "none", "-"];

/// Unquoted texts that stand for NULL, beside the field without a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nulls {
    texts: Vec<Vec<u8>>,
    /// The first bytes of `texts`, so that most fields need no comparison.
    firsts: [u64; 4],
    has_usual: bool,
}

impl Nulls {
    /// Exactly these texts, in columns of every type.
    #[must_use]
    pub fn new(texts: &[impl AsRef<[u8]>]) -> Nulls {
        let texts: Vec<Vec<u8>> = texts.iter().map(|t| t.as_ref().to_vec()).filter(|t| !t.is_empty()).collect();
        let mut firsts = [0; 4];
        texts.iter().for_each(|text| firsts[usize::from(text[0] >> 6)] |= 1 << (text[0] & 63));
        Nulls { texts, firsts, has_usual: false }
    }

    /// What files usually have: `NULL` and `\N` everywhere; also `NA`, `N/A`, `#N/A`, `None`, `NaN`, `-` in any case in columns
    /// that hold no text.
    #[must_use]
    pub fn usual() -> Nulls {
        Nulls { has_usual: true, ..Nulls::new(&ANYWHERE) }
    }

    /// Whether an unquoted text is NULL in a column of any type.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, text: &[u8]) -> bool {
        match text.first() {
            Some(first) => self.firsts[usize::from(first >> 6)] >> (first & 63) & 1 != 0 && self.is_listed(text),
            None => false,
        }
    }

    /// Whether one of the texts could be a number or a time, so that a field has to be compared before it is read as one.
    pub(super) fn could_be_values(&self) -> bool {
        self.texts.iter().any(|text| text[0].is_ascii_digit() || matches!(text[0], b'+' | b'-' | b'.'))
    }

    #[inline(never)]
    fn is_listed(&self, text: &[u8]) -> bool {
        self.texts.iter().any(|null| null == text)
    }

    /// Whether an unquoted text is NULL in a column that holds no text.
    #[must_use]
    pub fn has_beside_values(&self, text: &[u8]) -> bool {
        let is = |null: &str| text.eq_ignore_ascii_case(null.as_bytes());
        self.has(text) || (self.has_usual && BESIDE_VALUES.iter().any(|null| is(null)))
    }
}
