//! Texts that represent NULL.

/// In columns of every type, as SQL programs write NULL.
const ANYWHERE: [&str; 2] = ["NULL", "\\N"];
/// In columns without text, in any case.
const BESIDE_VALUES: [&str; 9] = ["null", "\\n", "na", "n/a", "#n/a", "nan", "-nan", "none", "-"];

/// Unquoted texts that represent NULL.
///
/// The empty field is one of them, except with [`Nulls::without_empty`] in columns that hold text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nulls {
    texts: Vec<Vec<u8>>,
    /// The first bytes of `texts`, so that most fields need no comparison.
    firsts: [u64; 4],
    has_usual: bool,
    /// True if the empty field is a text in columns that hold text.
    keeps_empty: bool,
}

impl Nulls {
    /// Creates a set of exactly these texts, for columns of every type.
    #[must_use]
    pub fn new(texts: &[impl AsRef<[u8]>]) -> Nulls {
        let texts: Vec<Vec<u8>> = texts.iter().map(|t| t.as_ref().to_vec()).filter(|t| !t.is_empty()).collect();
        let mut firsts = [0; 4];
        texts.iter().for_each(|text| firsts[usize::from(text[0] >> 6)] |= 1 << (text[0] & 63));
        Nulls { texts, firsts, has_usual: false, keeps_empty: false }
    }

    /// Makes the empty field an empty text in columns that hold text.
    #[must_use]
    pub fn without_empty(self) -> Nulls {
        Nulls { keeps_empty: true, ..self }
    }

    /// Returns true if the empty field is an empty text in columns that hold text.
    #[inline(always)]
    pub(super) fn keeps_empty(&self) -> bool {
        self.keeps_empty
    }

    /// Returns the usual NULL strings of CSV files.
    ///
    /// `NULL` and `\N` in every column; also `NA`, `N/A`, `#N/A`, `None`, `NaN`, `-`, in any case, in columns that hold
    /// no text.
    #[must_use]
    pub fn usual() -> Nulls {
        Nulls { has_usual: true, ..Nulls::new(&ANYWHERE) }
    }

    /// Returns true if an unquoted string is NULL in a column of any type.
    #[inline(always)]
    #[must_use]
    pub fn has(&self, text: &[u8]) -> bool {
        match text.first() {
            Some(first) => self.firsts[usize::from(first >> 6)] >> (first & 63) & 1 != 0 && self.is_listed(text),
            None => false,
        }
    }

    /// Returns true if one of the NULL strings could be a number or a time.
    ///
    /// A field must then be compared with the NULL strings before the field is parsed.
    pub(super) fn could_be_values(&self) -> bool {
        self.texts.iter().any(|text| text[0].is_ascii_digit() || matches!(text[0], b'+' | b'-' | b'.'))
    }

    #[inline(never)]
    fn is_listed(&self, text: &[u8]) -> bool {
        self.texts.iter().any(|null| null == text)
    }

    /// Returns true if an unquoted string is NULL in a column that holds no text.
    #[must_use]
    pub fn has_beside_values(&self, text: &[u8]) -> bool {
        let is = |null: &str| text.eq_ignore_ascii_case(null.as_bytes());
        self.has(text) || (self.has_usual && BESIDE_VALUES.iter().any(|null| is(null)))
    }
}
