//! The names of DataFusion that the dialect uses: sqlparser is the real one, the rest only stands there.

pub mod sql {
    pub use sqlparser;
}

pub mod arrow {
    pub mod array {
        #[derive(Debug)]
        pub struct RecordBatch;
    }

    pub mod datatypes {
        #[derive(Debug)]
        pub struct FieldRef;
    }
}

pub mod common {
    #[derive(Debug)]
    pub struct DataFusionError;

    pub type Result<T> = std::result::Result<T, DataFusionError>;
}

pub mod logical_expr {
    pub mod planner {
        use crate::arrow::datatypes::FieldRef;
        use sqlparser::ast;

        pub trait TypePlanner {
            fn plan_type_field(&self, sql_type: &ast::DataType) -> crate::common::Result<Option<FieldRef>>;
        }
    }
}

pub mod functions_aggregate {
    use std::sync::Arc;

    /// An aggregate by its name.
    #[derive(Debug)]
    pub struct Named(&'static str);

    impl Named {
        #[must_use]
        pub fn name(&self) -> &str {
            self.0
        }

        #[must_use]
        pub fn aliases(&self) -> &[String] {
            &[]
        }
    }

    #[must_use]
    pub fn all_default_aggregate_functions() -> Vec<Arc<Named>> {
        let names =
            ["count", "sum", "min", "max", "avg", "median", "stddev", "var", "corr", "first_value", "string_agg"];
        names.map(|name| Arc::new(Named(name))).to_vec()
    }
}
