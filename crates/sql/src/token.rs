//! Tokens. A token stores kind and span; [`Span::slice`] returns the text.

use crate::{Keyword, Span};

/// A token and its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind.
    pub kind: TokenKind,
    /// Position in the statement text.
    pub span: Span,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word without quotes, with its keyword if it has one.
    Word(Option<Keyword>),
    /// `"name"`.
    QuotedName,
    /// `` `name` ``.
    BacktickName,
    /// `U&"name"`.
    UnicodeName,
    /// `'text'`.
    String,
    /// `E'text\n'`.
    EscapeString,
    /// `N'text'`.
    NationalString,
    /// `U&'text'`.
    UnicodeString,
    /// `$$text$$`, `$tag$text$tag$`.
    DollarString,
    /// `x'1F'`.
    HexString,
    /// `b'101'`.
    BitString,
    /// `12`, `1_000`, `.5`, `1e5`.
    Number,
    /// `0x1F`.
    HexNumber,
    /// `$1`.
    Parameter,
    /// `@name`.
    Variable,
    /// `#u33d`, `##1101`.
    Geohash,
    /// An operator or a punctuation mark.
    Symbol(Symbol),
    /// The end of the text.
    End,
}

macro_rules! symbols {
    ($($name:ident $text:literal,)*) => {
        /// An operator or a punctuation mark.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the table below has the text of each")]
        pub enum Symbol {
            $($name,)*
        }

        impl Symbol {
            /// All symbols; a longer symbol precedes its prefixes.
            pub(crate) const ALL: &[(&str, Symbol)] = &[$(($text, Symbol::$name),)*];

            /// Returns the text of the symbol.
            #[must_use]
            pub fn text(self) -> &'static str {
                Symbol::ALL[self as usize].0
            }
        }
    };
}

symbols! {
    LeftParen "(", RightParen ")", LeftBracket "[", RightBracket "]", LeftBrace "{", RightBrace "}",
    Comma ",", Semicolon ";", Period ".",
    Assign ":=", DoubleColon "::", Colon ":",
    NotTildeTildeStar "!~~*", NotTildeTilde "!~~", NotTildeStar "!~*", NotTilde "!~", NotEqualC "!=", Exclamation "!",
    TildeTildeStar "~~*", TildeTilde "~~", TildeStar "~*", Tilde "~",
    LongArrow "->>", Arrow "->", Minus "-",
    Plus "+", DoubleStar "**", Star "*", DoubleSlash "//", Slash "/", Percent "%",
    StartsWith "^@", Caret "^",
    FatArrow "=>", DoubleEqual "==", Equal "=",
    ContainedEqual "<<=", ShiftLeft "<<", Distance "<->", NullSafeEqual "<=>", LessEqual "<=", NotEqual "<>",
    ContainedBy "<@", Less "<",
    ContainsEqual ">>=", ShiftRight ">>", GreaterEqual ">=", Greater ">",
    CubeRoot "||/", Concat "||", SquareRoot "|/", Pipe "|",
    Overlap "&&", NotRightOf "&<", NotLeftOf "&>", Ampersand "&",
    PathLongArrow "#>>", PathArrow "#>", DeletePath "#-", Hash "#",
    Contains "@>", PathExists "@?", PathMatch "@@", At "@",
    AnyKey "?|", AllKeys "?&", Question "?",
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_symbols_come_first() {
        for (at, (text, symbol)) in Symbol::ALL.iter().enumerate() {
            assert_eq!(*symbol as usize, at);
            let hidden = Symbol::ALL[..at].iter().find(|(before, _)| text.starts_with(before));
            assert_eq!(hidden, None, "{text} is never found");
        }
    }
}
