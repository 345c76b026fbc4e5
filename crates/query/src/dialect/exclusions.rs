//! `EXCLUDE CURRENT ROW`, `EXCLUDE GROUP` and `EXCLUDE TIES` in the frame of a window.
//!
//! The stock grammar has no place for it, so that it is noted as the first key of the partition,
//! `sum(v) OVER (PARTITION BY __exclude('ties'), k ORDER BY v …)`, and becomes
//! `__without_ties_sum(true, false, v) OVER (…)` ([`crate::functions::excluding`]): the condition of FILTER, and DISTINCT.

use super::clauses::is_word;
use crate::functions::excluding;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value,
    WindowType,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

const EXCLUDE: &str = "__exclude";

/// Functions that look at no frame.
pub(crate) const WITHOUT_FRAME: &[&str] =
    &["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

/// Notes what is excluded in the window whose tokens `out` ends with; whether there is one.
pub(super) fn noted(out: &mut Vec<TokenWithSpan>, what: &str) -> bool {
    let mut depth = 0_i32;
    let opens = out.iter().rposition(|t| {
        match t.token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        depth < 0
    });
    let Some(opens) = opens else { return false };
    let span = out[opens].span;
    let word = |w: &str| Token::make_word(w, None);
    let names_window = matches!(&out[opens + 1].token, Token::Word(w) if w.keyword == Keyword::NoKeyword);
    let at = opens + 1 + usize::from(names_window);
    let mut note = vec![word(EXCLUDE), Token::LParen, Token::SingleQuotedString(what.to_owned()), Token::RParen];
    let at = if out.get(at).is_some_and(|t| is_word(&t.token, "partition")) {
        note.push(Token::Comma);
        at + 2
    } else {
        note.splice(0..0, [word("partition"), word("by")]);
        at
    };
    out.splice(at..at, note.into_iter().map(|token| TokenWithSpan::new(token, span)));
    true
}

/// Whether it is a note, not a key of a partition.
pub(super) fn is_note(expr: &Expr) -> bool {
    super::call(expr).is_some_and(|(name, _)| name == EXCLUDE)
}

/// Makes the function one that leaves rows of its frame out.
pub(super) fn applied(function: &mut Function) {
    let Some(WindowType::WindowSpec(spec)) = &mut function.over else { return };
    let Some(at) = spec.partition_by.iter().position(is_note) else { return };
    let FunctionArguments::List(list) = &mut function.args else { return };
    let note = spec.partition_by.remove(at);
    let name = function.name.to_string();
    let what = super::call(&note).and_then(|(_, args)| super::text(args.first()?));
    // `avg(x, kind, n)` is an exponential average.
    let has_frame = !WITHOUT_FRAME.contains(&name.as_str()) && !(name == "avg" && list.args.len() > 2);
    let Some(what) = what.filter(|_| has_frame) else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Wildcard) = arg {
            *arg =
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(Value::Number("1".to_owned(), false).into())));
        }
    }
    if list.args.is_empty() && name == "count" {
        let one = Expr::Value(Value::Number("1".to_owned(), false).into());
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(one)));
    }
    let is_distinct = matches!(list.duplicate_treatment.take(), Some(DuplicateTreatment::Distinct));
    let yes = |is: bool| Expr::Value(Value::Boolean(is).into());
    let asked = function.filter.take().map_or_else(|| yes(true), |condition| *condition);
    let own = [asked, yes(is_distinct)].map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
    list.args.splice(0..0, own);
    function.name = ObjectName::from(vec![Ident::new(excluding::name(&what, &name))]);
}
