//! The buckets of time that a block's rows are in: by the bounds of the block, or of its vectors.

use super::{Bucket, GroupSpec, as_type};
use crate::scan::read::Reader;
use crate::scan::spec::Form;
use crate::{Error, Result};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use tidalite_storage::segment::OpenBlock;
use tidalite_storage::{Bounds, Segment};

/// The buckets of a block's rows.
pub(super) struct Buckets<'a> {
    /// The column of times, where the buckets of some vector have to be computed.
    pub times: Option<(usize, OpenBlock<'a>)>,
    /// That of every vector, where it is one for each.
    pub all: Option<Bucket>,
    /// By vector, those that are in one bucket; empty if `all` is known.
    pub of_vectors: Vec<Option<Bucket>>,
}

impl<'a> Buckets<'a> {
    /// `None` where the bounds of rows do not tell.
    pub fn of(spec: &GroupSpec, reader: &Reader, segment: &'a Segment, block: usize) -> Result<Option<Buckets<'a>>> {
        let one = |bucket| Ok(Some(Buckets { times: None, all: Some(bucket), of_vectors: Vec::new() }));
        let Some(column) = spec.bucket() else { return one(None) };
        let Form::Rising(expr) = reader.form(column) else { return Ok(None) };
        let named = |e| Error::from(reader.snapshot.named(e));
        let own = reader.column(column);
        if let Some(bucket) = reader.bucket_of_block(segment, block, column)? {
            return one(Some(bucket));
        }
        if !reader.has_buckets(column)
            && let Some(bucket) = reader.risen(segment, block, own, expr)?
        {
            let bucket = bucket.to_array_of_size(1).map_err(|e| Error::internal(e.to_string()))?;
            let bucket = as_type(&bucket, &DataType::Int64)?;
            return one(bucket.is_valid(0).then(|| bucket.as_primitive::<Int64Type>().value(0)));
        }
        let Some(times) = segment.open_block(own.id, block).map_err(named)? else { return Ok(None) };
        let mut ends = Vec::new();
        for zone in times.zones().map_err(named)? {
            let Bounds::Int(first, last) = zone.bounds else { return Ok(None) };
            if zone.null_count > 0 {
                return Ok(None);
            }
            ends.extend([first, last]);
        }
        // What cannot be computed is an error once rows are read, with these words.
        let Ok(made) = reader.bucketed(column, ends) else { return Ok(None) };
        if made.null_count() > 0 {
            return Ok(None);
        }
        let of_vector = |i: usize| (made.value(2 * i) == made.value(2 * i + 1)).then(|| Some(made.value(2 * i)));
        let of_vectors: Vec<_> = (0..made.len() / 2).map(of_vector).collect();
        let times = of_vectors.contains(&None).then_some((column, times));
        Ok(Some(Buckets { times, all: None, of_vectors }))
    }

    /// How many runs of one bucket there are, at least.
    pub fn runs(&self) -> usize {
        self.of_vectors.chunk_by(|a, b| a == b).count().max(1)
    }
}
