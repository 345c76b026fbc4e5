//! Functions of our own, one per file or one subject: about the database's tables and statements, about time, numbers,
//! text and places, made-up data, and what clients of PostgreSQL ask. [`scalar`] is what most scalars share.

mod accumulators;
pub(crate) mod adjusted;
mod administration;
pub(crate) mod array_casts;
pub(crate) mod array_elements;
pub(crate) mod array_part;
mod array_values;
mod arrays;
pub(crate) mod bit_shifts;
mod byte_lengths;
mod byte_values;
mod calendar_times;
pub(crate) mod casts;
pub(crate) mod charts;
pub(crate) mod checked;
mod civil;
mod date_part;
mod date_trunc;
mod dateadd;
pub(crate) mod decimal_arithmetic;
mod directed_rounding;
mod element_wise;
pub(crate) mod ema;
mod encodings;
pub(crate) mod excluding;
mod field_columns;
mod file_readers;
mod finance;
pub(crate) mod floats;
mod formulas;
pub(crate) mod geo;
pub(crate) mod guarded;
pub(crate) mod identifiers;
mod inner_arrays;
mod interval_words;
pub(crate) mod ipv4;
pub(crate) mod is_ordered;
pub(crate) mod json;
pub(crate) mod json_agg;
mod json_build;
pub(crate) mod json_paths;
pub(crate) mod lengths;
pub(crate) mod limits;
mod matrices;
mod members;
pub(crate) mod meta;
mod mode;
pub(crate) mod nested;
mod now;
pub(crate) mod nth_value;
mod numbers;
pub(crate) mod one_row;
pub(crate) mod own_field;
mod partitions;
pub(crate) mod paths;
mod patterns;
pub(crate) mod percentiles;
pub(crate) mod pick;
pub(crate) mod postgres;
mod quick_text;
pub(crate) mod random;
mod ranks;
mod recomputed;
mod regexps;
mod regions;
mod rounding;
pub(crate) mod same_name;
mod scalar;
pub(crate) mod sequence;
pub(crate) mod series;
mod shapes;
pub(crate) mod shifts;
mod signed;
mod sliding_parts;
mod slow_rows;
pub(crate) mod stoppable;
mod storage;
mod sums;
mod switch;
mod system;
pub(crate) mod text_times;
pub(crate) mod time_casts;
mod times;
pub(crate) mod timestamp_floor;
mod to_char;
mod to_timestamp;
mod type_of;
pub(crate) mod value_texts;
mod views;
mod width_bucket;
pub(crate) mod zones;

pub(crate) use arrays::operator as array_operator;
pub(crate) use file_readers::FileReader;
pub(crate) use interval_words::{interval_text, is_interval};
pub(crate) use partitions::partitions;
pub(crate) use postgres::OWNER;

use crate::Catalog;
use crate::pg_catalog::{self, INFORMATION_SCHEMA, PG_CATALOG};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::sql::sqlparser::ast::{self, Visitor};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

/// Scalars, which are the same for every query.
pub(crate) fn scalars() -> Vec<Arc<ScalarUDF>> {
    let intervals = interval_words::IntervalWord::all().map(ScalarUDF::new_from_impl);
    let others = [
        ScalarUDF::new_from_impl(switch::Switch::new()),
        ScalarUDF::new_from_impl(type_of::TypeOf::new()),
        ScalarUDF::new_from_impl(array_part::ArrayPart::new()),
        ScalarUDF::new_from_impl(same_name::As::new()),
        ScalarUDF::new_from_impl(dateadd::DateAdd::new()),
        ScalarUDF::new_from_impl(zones::AtTimeZone::new()),
        ScalarUDF::new_from_impl(date_part::DatePart::new()),
        ScalarUDF::new_from_impl(to_char::ToChar::new()),
        ScalarUDF::new_from_impl(timestamp_floor::TimestampFloor::new(false)),
        ScalarUDF::new_from_impl(timestamp_floor::TimestampFloor::new(true)),
    ];
    let tables = [
        civil::FUNCTIONS,
        interval_words::FUNCTIONS,
        zones::FUNCTIONS,
        patterns::FUNCTIONS,
        json::FUNCTIONS,
        json_build::FUNCTIONS,
        json_paths::FUNCTIONS,
        lengths::FUNCTIONS,
        limits::FUNCTIONS,
        arrays::FUNCTIONS,
        inner_arrays::FUNCTIONS,
        array_values::FUNCTIONS,
        byte_values::FUNCTIONS,
        bit_shifts::FUNCTIONS,
        numbers::FUNCTIONS,
        percentiles::FUNCTIONS,
        regexps::FUNCTIONS,
        matrices::FUNCTIONS,
        nested::FUNCTIONS,
        encodings::FUNCTIONS,
        charts::FUNCTIONS,
        directed_rounding::FUNCTIONS,
        width_bucket::FUNCTIONS,
        regions::FUNCTIONS,
        finance::FUNCTIONS,
        geo::FUNCTIONS,
        identifiers::FUNCTIONS,
        ipv4::FUNCTIONS,
        sequence::FUNCTIONS,
        floats::FUNCTIONS,
        one_row::FUNCTIONS,
        own_field::FUNCTIONS,
        text_times::FUNCTIONS,
        time_casts::FUNCTIONS,
        calendar_times::FUNCTIONS,
        value_texts::FUNCTIONS,
    ];
    let plain = tables.into_iter().flatten().map(scalar::udf);
    let times = date_trunc::functions().into_iter();
    let times = times.chain(to_timestamp::ToTime::all().map(ScalarUDF::new_from_impl));
    let nows = now::Now::all().map(ScalarUDF::new_from_impl);
    let all = intervals
        .into_iter()
        .chain(others)
        .chain(nows)
        .chain(times)
        .chain(postgres::functions())
        .chain(random::functions());
    let all = all
        .chain(plain)
        .chain(guarded::functions())
        .chain(rounding::functions())
        .chain(signed::functions())
        .chain(array_values::functions());
    all.map(Arc::new).collect()
}

pub(crate) use timestamp_floor::buckets_of;

/// A scalar of ours by its name, for plans.
pub(crate) fn scalar_named(name: &str) -> Option<Arc<ScalarUDF>> {
    static ALL: LazyLock<HashMap<String, Arc<ScalarUDF>>> =
        LazyLock::new(|| scalars().into_iter().map(|f| (f.name().to_owned(), f)).collect());
    ALL.get(name).cloned()
}

/// Makes what is made once in a process: a child of a fork would wait for ever for a thread of its parent that was at it.
pub(crate) fn prepare() {
    let _ = (scalar_named(""), adjusted::sum(), nth_value::nth_value(), meta::names().next());
}

/// Returns the window functions, which are the same for every query.
pub(crate) fn window_functions() -> Vec<Arc<WindowUDF>> {
    ranks::functions().map(Arc::new).into()
}

/// Aggregates, which are the same for every query.
pub(crate) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let picks = pick::Pick::all().map(AggregateUDF::new_from_impl);
    let paths = paths::Path::all().into_iter().map(AggregateUDF::new_from_impl);
    let all = picks.into_iter().chain(formulas::functions()).chain(paths);
    let all = all.chain(adjusted::Adjusted::all().into_iter().map(AggregateUDF::new_from_impl));
    let all = all.chain(array_elements::Elements::all().map(AggregateUDF::new_from_impl));
    let all = all.chain([
        AggregateUDF::new_from_impl(charts::Sparkline::new()),
        AggregateUDF::new_from_impl(is_ordered::IsOrdered::new()),
    ]);
    let all = all.chain(json_agg::JsonAgg::all().map(AggregateUDF::new_from_impl));
    let all = all.chain([AggregateUDF::new_from_impl(mode::Mode::new())]).map(Arc::new);
    all.chain([nth_value::nth_value()]).collect()
}

/// `name(DISTINCT x)`, where it would make a difference.
fn refuse_distinct(name: &str, is_distinct: bool) -> datafusion::common::Result<()> {
    if is_distinct {
        return Err(crate::Error::invalid(format!("DISTINCT is not supported by {name}")).into());
    }
    Ok(())
}

/// Table functions, which look at one query's catalog.
pub(crate) fn register_tables(state: &mut SessionState, catalog: &Arc<dyn Catalog>) {
    for (name, make) in system::FUNCTIONS {
        state.register_udtf(name, Arc::new(system::SystemTable { name, catalog: catalog.clone(), make: *make }));
    }
    state.register_udtf(postgres::sleep::SLEEP, Arc::new(postgres::sleep::SleepTable));
    for name in series::NAMES {
        state.register_udtf(name, Arc::new(series::Series { name }));
    }
}

/// Returns true if a query reads the system catalog or functions about the database, and no other table function. The
/// caller checks that it names no other table.
pub(crate) fn is_about_system(query: &ast::Query) -> bool {
    let mut visitor = FindFunctions { ours: 0, others: 0 };
    let _ = crate::dialect::visit(query, &mut visitor);
    visitor.ours > 0 && visitor.others == 0
}

pub(crate) fn is_system_function(name: &str) -> bool {
    system::FUNCTIONS.iter().any(|(ours, _)| *ours == name)
}

/// Returns true for a table of the system catalog; its name alone suffices if the user has no such table.
fn is_system_table(name: &[ast::ObjectNamePart]) -> bool {
    let text = |part: &ast::ObjectNamePart| part.as_ident().map(|ident| ident.value.clone());
    match name {
        [schema, _] => text(schema).is_some_and(|schema| [PG_CATALOG, INFORMATION_SCHEMA].contains(&schema.as_str())),
        [table] => text(table).is_some_and(|table| pg_catalog::has(PG_CATALOG, &table)),
        _ => false,
    }
}

struct FindFunctions {
    ours: usize,
    others: usize,
}

impl Visitor for FindFunctions {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
        match factor {
            ast::TableFactor::Table { name, args: None, .. } => {
                self.ours += usize::from(is_system_table(&name.0));
            }
            ast::TableFactor::Table { name, args: Some(_), .. } | ast::TableFactor::Function { name, .. } => {
                let is_ours = matches!(&name.0[..], [name] if name.as_ident().is_some_and(|name| is_system_function(&name.value)));
                *(if is_ours { &mut self.ours } else { &mut self.others }) += 1;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
