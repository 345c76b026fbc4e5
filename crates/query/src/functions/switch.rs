//! `switch(value, case1, result1, … [, default])` of QuestDB: `CASE value WHEN case1 THEN result1 … ELSE default END`.

use crate::Error;
use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::{comparison_coercion, type_union_coercion};
use datafusion::logical_expr::{Case, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

const NAME: &str = "switch";

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Switch {
    signature: Signature,
}

impl Switch {
    pub fn new() -> Switch {
        Switch { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn refused() -> Error {
    Error::invalid("switch takes a value, pairs of a case and a result, and a default").about(NAME)
}

/// Returns true if argument `n` of `count` is a case.
fn is_case(n: usize, count: usize) -> bool {
    n % 2 == 1 && n + 1 < count
}

impl ScalarUDFImpl for Switch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The value and the cases have one type, and so do all results.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() < 3 {
            return Err(refused().into());
        }
        let (mut value, mut result) = (types[0].clone(), DataType::Null);
        for (n, given) in types.iter().enumerate().skip(1) {
            if is_case(n, types.len()) {
                value = comparison_coercion(&value, given).ok_or_else(refused)?;
            } else {
                result = type_union_coercion(&result, given).ok_or_else(refused)?;
            }
        }
        let wanted = |n| if n == 0 || is_case(n, types.len()) { value.clone() } else { result.clone() };
        Ok((0..types.len()).map(wanted).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.get(2).cloned().ok_or_else(|| refused().into())
    }

    fn short_circuits(&self) -> bool {
        true
    }

    /// Results of other cases are not computed in a CASE.
    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let mut rest = args.into_iter();
        let value = rest.next().map(Box::new);
        let (mut pairs, mut default) = (Vec::new(), None);
        while let Some(case) = rest.next() {
            match rest.next() {
                Some(result) => pairs.push((Box::new(case), Box::new(result))),
                None => default = Some(Box::new(case)),
            }
        }
        Ok(ExprSimplifyResult::Simplified(Expr::Case(Case::new(value, pairs, default))))
    }

    /// For plans that are not simplified.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let pairs = (columns.len() - 1) / 2;
        let mut out = match columns.len() % 2 {
            0 => columns[columns.len() - 1].clone(),
            _ => ScalarValue::try_from(args.return_type())?.to_array_of_size(rows)?,
        };
        for pair in (0..pairs).rev() {
            let is_it = eq(&columns[0], &columns[1 + 2 * pair])?;
            let is_it = BooleanArray::from_iter(is_it.iter().map(|flag| Some(flag == Some(true))));
            out = zip(&is_it, &columns[2 + 2 * pair], &out)?;
        }
        Ok(ColumnarValue::Array(out))
    }
}
