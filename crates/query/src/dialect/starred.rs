//! `SELECT *, v AS n` of a table that has a column `n`: two columns of a name, which the planner refuses. The second one
//! gets a number, as in `SELECT n, v AS n`.

use datafusion::sql::sqlparser::ast::{Ident, Query, Select, SelectItem, VisitorMut};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Gives every alias `name` beside a `*` another one; whether there was any.
pub(crate) fn renamed(query: &mut Query, name: &str) -> bool {
    let mut renamer = Renamer { name: name.to_owned(), found: false };
    let _ = super::visit_mut(query, &mut renamer);
    renamer.found
}

struct Renamer {
    name: String,
    found: bool,
}

impl VisitorMut for Renamer {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_wild = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        if !select.projection.iter().any(is_wild) {
            return ControlFlow::Continue(());
        }
        let mut taken: HashSet<String> = HashSet::new();
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                taken.insert(alias.value.clone());
            }
        }
        for item in &mut select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item
                && alias.value == self.name
            {
                let free = (1_u32..).map(|n| format!("{}{n}", self.name)).find(|name| taken.insert(name.clone()));
                *alias = Ident::with_quote('"', free.unwrap_or_default());
                self.found = true;
            }
        }
        ControlFlow::Continue(())
    }
}
