//! What the tokenizer and the stock query parser accept.

use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use std::any::TypeId;

/// The stock generic dialect, which DataFusion itself is tested with, and what QuestDB's users write besides.
#[derive(Debug)]
pub(crate) struct TidaliteDialect;

macro_rules! supported {
    ($($method:ident)*) => { $(fn $method(&self) -> bool { true })* };
}

impl Dialect for TidaliteDialect {
    /// Grammar that the parser grants to dialects by name is granted as to the generic one.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"' || c == '`'
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_' || c == '#' || c == '@'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '@')
    }

    supported! {
        supports_unicode_string_literal supports_group_by_expr supports_group_by_with_modifier
        supports_left_associative_joins_without_parens supports_window_function_null_treatment_arg
        supports_dictionary_syntax supports_window_clause_named_window_reference supports_select_wildcard_except
        support_map_literal_syntax allow_extract_custom allow_extract_single_quotes supports_extract_comma_syntax
        supports_parens_around_table_factor supports_values_as_table_factor supports_limit_comma
        supports_from_first_select supports_projection_trailing_commas supports_try_convert
        supports_bitwise_shift_operators supports_named_fn_args_with_assignment_operator supports_nested_comments
        supports_string_escape_constant supports_array_typedef_with_brackets supports_filter_during_aggregation
        supports_select_wildcard_exclude supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_interval_options supports_numeric_literal_underscores supports_in_empty_list
        supports_order_by_all supports_subquery_as_function_arg supports_notnull_operator
    }
}
