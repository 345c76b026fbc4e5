//! Paths in a Rust source: those of `use` declarations and those in other code.

use std::collections::HashSet;

use crate::code::{Token, closing};

/// A path as written, `::` between its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub segments: Vec<String>,
    /// The name that the path has in the file; none in other code than `use`.
    pub name: Option<String>,
    /// True for `pub use`, `pub(crate) use` and the like of a name that the file does not use itself.
    pub is_reexport: bool,
}

/// Paths of `tokens`, relative to the file: `super` inside of an inline module is removed.
pub fn imports(tokens: &[Token<'_>]) -> Vec<Import> {
    let inline = inline_modules(tokens);
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let depth = inline.iter().filter(|(start, end)| (*start..*end).contains(&at)).count();
        let first = out.len();
        at += if is_use(tokens, at) { use_declaration(tokens, at, &mut out) } else { path(tokens, at, &mut out) };
        for import in &mut out[first..] {
            leave_inline_modules(import, depth);
        }
    }
    let used = words_in_code(tokens);
    for import in &mut out {
        import.is_reexport &= import.name.as_ref().is_none_or(|name| !used.contains(name.as_str()));
    }
    out
}

/// Words of `tokens` outside of `use` declarations, without fields and methods.
fn words_in_code<'a>(tokens: &[Token<'a>]) -> HashSet<&'a str> {
    let mut out = HashSet::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_use(tokens, at) {
            at += declaration_len(tokens, at);
        } else if tokens[at].is_word() && (at == 0 || ![".", "fn", "mod"].contains(&tokens[at - 1].text)) {
            out.insert(tokens[at].text);
        }
        at += 1;
    }
    out
}

/// Ranges of tokens of the bodies of `mod name { … }`.
fn inline_modules(tokens: &[Token<'_>]) -> Vec<(usize, usize)> {
    let starts = (2..tokens.len()).filter(|at| tokens[at - 2].text == "mod" && tokens[*at].text == "{");
    starts.map(|at| (at, closing(tokens, at))).collect()
}

/// Rewrites a path of an inline module to one of its file. A path inside of the inline module becomes empty.
fn leave_inline_modules(import: &mut Import, depth: usize) {
    if depth == 0 || import.segments.first().is_none_or(|s| s == "crate") {
        return;
    }
    let supers = import.segments.iter().take_while(|s| *s == "super").count();
    if supers < depth {
        import.segments.clear();
    } else {
        import.segments.splice(..depth, ["self".to_owned()]);
    }
    import.name = None;
}

/// True at the word of a declaration; `use<'a>` in the bounds of a type is none.
fn is_use(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at].text == "use" && tokens.get(at + 1).is_some_and(|t| t.text != "<")
}

fn declaration_len(tokens: &[Token<'_>], at: usize) -> usize {
    tokens[at..].iter().position(|t| t.text == ";").unwrap_or(tokens.len() - at)
}

/// Adds the paths of the declaration at `at`. Returns its number of tokens.
fn use_declaration(tokens: &[Token<'_>], at: usize, out: &mut Vec<Import>) -> usize {
    let len = declaration_len(tokens, at);
    let is_reexport = at > 0 && ["pub", ")"].contains(&tokens[at - 1].text);
    use_tree(&tokens[at + 1..at + len], &[], is_reexport, out);
    len
}

fn use_tree(tree: &[Token<'_>], prefix: &[String], is_reexport: bool, out: &mut Vec<Import>) {
    let mut segments = prefix.to_vec();
    let mut name = None;
    for (at, token) in tree.iter().enumerate() {
        match token.text {
            "::" => {}
            "{" => {
                let body = &tree[at + 1..closing(tree, at).min(tree.len())];
                return split_at_commas(body).for_each(|part| use_tree(part, &segments, is_reexport, out));
            }
            "as" => {
                name = tree.get(at + 1).map(|t| t.text.to_owned());
                break;
            }
            "self" if !segments.is_empty() => {}
            word => segments.push(word.to_owned()),
        }
    }
    if !tree.is_empty() {
        let name = name.or_else(|| segments.last().cloned());
        out.push(Import { segments, name, is_reexport });
    }
}

fn split_at_commas<'t, 's>(tokens: &'t [Token<'s>]) -> impl Iterator<Item = &'t [Token<'s>]> {
    let mut depth = 0;
    tokens.split(move |token| {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && token.text == ","
    })
}

/// Adds the path of at least two segments at `at`. Returns the number of tokens read, at least one.
fn path(tokens: &[Token<'_>], at: usize, out: &mut Vec<Import>) -> usize {
    if !tokens[at].is_word() || at > 0 && tokens[at - 1].text == "::" || is_visibility(tokens, at) {
        return 1;
    }
    let mut segments = vec![tokens[at].text.to_owned()];
    let mut len = 1;
    while tokens.get(at + len).is_some_and(|t| t.text == "::") && tokens.get(at + len + 1).is_some_and(Token::is_word) {
        segments.push(tokens[at + len + 1].text.to_owned());
        len += 2;
    }
    if len > 1 {
        out.push(Import { segments, name: None, is_reexport: false });
    }
    len
}

/// True for the path of `pub(in path)`.
fn is_visibility(tokens: &[Token<'_>], at: usize) -> bool {
    at > 2 && ["pub", "(", "in"].iter().zip(&tokens[at - 3..]).all(|(word, token)| token.text == *word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;

    fn paths(source: &str) -> Vec<String> {
        let all = imports(&code::tokens(source));
        all.iter().map(|i| i.segments.join("::")).filter(|p| !p.is_empty()).collect()
    }

    #[test]
    fn trees_are_expanded() {
        assert_eq!(paths("use a::{b, c::{self, d as e}, f::*,};"), ["a::b", "a::c", "a::c::d", "a::f::*"]);
        let found = imports(&code::tokens("pub(crate) use a::b as c;"));
        let expected = Import { segments: vec!["a".into(), "b".into()], name: Some("c".into()), is_reexport: true };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn paths_in_code_have_two_segments() {
        assert_eq!(paths("fn f() -> crate::A<B> { c::d::<E>(self.g, H::new()) } "), ["crate::A", "c::d", "H::new"]);
        assert_eq!(paths("fn f() -> impl Fn() + use<'_, T> { x } pub(in crate::a) mod b;"), [""; 0]);
    }

    #[test]
    fn super_of_an_inline_module_is_the_file() {
        assert_eq!(
            paths("mod a { use super::B; use super::super::C; use d::E; } use super::F;"),
            ["self::B", "self::super::C", "super::F"]
        );
    }
}
