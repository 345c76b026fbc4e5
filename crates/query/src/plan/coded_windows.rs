//! Window functions by symbols: partitions told apart by codes, rows sorted by ours, functions asked of whole partitions.
//!
//! Works on the finished plan: a stock operator for windows, and the sort below it if there is one. Symbols that partitions
//! are by come as codes from below, where [`super::coded_keys`] can see their table, and are texts again above. Rows are in
//! the order of the texts all the same, on which plans above may count.

use super::coded_keys::{Want, mentions, with_coded};
use crate::exec::decoded::Decoded;
use crate::exec::sorted::Sorted;
use crate::exec::windows::{Windows, functions_of, partition_columns};
use datafusion::arrow::array::StringViewArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::sorts::sort::SortExec;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// `None` where nothing becomes of it.
pub(super) fn windowed(node: &Plan) -> Result<Option<Plan>> {
    let Some((functions, input)) = functions_of(node) else { return Ok(None) };
    let Some(keys) = partition_columns(functions) else { return Ok(None) };
    let sort = input.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none());
    let mut rows = sort.map_or(input, SortExec::input).clone();
    let mut texts: Vec<Option<StringViewArray>> = vec![None; rows.schema().fields().len()];
    for key in keys {
        let is_text = *rows.schema().field(key).data_type() == DataType::Utf8View;
        if !is_text || Windows::looked_at(functions).any(|expr| mentions(&expr, key)) {
            continue;
        }
        let Some((coded, Some(kind))) = with_coded(&rows, key, Want::Column)? else { continue };
        texts[key] = kind.dictionary().cloned();
        rows = coded;
    }
    let is_coded = texts.iter().any(Option::is_some);
    let sorted = sort.map(|sort| Sorted::of(sort, rows.clone(), &texts));
    let (input, is_coded) = match sorted {
        Some(Some(sorted)) => (Arc::new(sorted) as Plan, is_coded),
        // By something else: as it was.
        Some(None) => (input.clone(), false),
        None => (rows, is_coded),
    };
    let stock = replace_children_if_necessary(node.clone(), vec![input])?;
    let own = Windows::of(stock.clone()).map_or(stock, |own| Arc::new(own) as Plan);
    if !is_coded {
        return Ok((!Arc::ptr_eq(&own, node)).then_some(own));
    }
    texts.resize(own.schema().fields().len(), None);
    Ok(Some(Arc::new(Decoded::new(own, texts, node.properties().clone()))))
}
