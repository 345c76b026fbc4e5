//! Variable-length values: as views and data, or as a dictionary of views and codes.

use super::choice::{BYTES_MIN, Effort, Payload};
use super::chunk::{Chunk, Layout};
use super::{EncodedBlock, compressed, dict, fsst, nulls, text};
use crate::BlockData;
use crate::segment::buffer::{collect, share};
use crate::segment::format::Encoding;
use hashbrown::HashTable;
use std::borrow::Cow;
use std::hash::BuildHasher;
use tidalite_types::ViewsRef;
use tidalite_types::views::{INLINE_BYTES, view_bytes};

pub(super) fn encode(chunk: &mut Chunk, views: &[u128], data: &[u8], effort: Effort) {
    let validity = chunk.validity.clone();
    let filled = nulls::fill_with_neighbours(views, validity.as_ref());
    let source = ViewsRef { views: &filled, data };
    let zeroed = nulls::fill_with(views, validity.as_ref(), 0);
    let given = ViewsRef { views: &zeroed, data };
    chunk.write(&match effort {
        Effort::Fresh => fresh(source).unwrap_or_else(|| plain(given)),
        Effort::Sealed => sealed(source, given, chunk.compresses),
    });
}

fn plain(given: ViewsRef<'_>) -> Payload<'static> {
    let (own, own_data) = compact(given.views.iter().copied(), given.data);
    with_views(Encoding::Plain, 0, own, own_data)
}

/// FSST is too slow for rows that may be merged again soon.
fn fresh(source: ViewsRef<'_>) -> Option<Payload<'static>> {
    Some(packed_dictionary(&dictionary(source)?, source.data))
}

pub(super) fn packed_dictionary(dictionary: &dict::Dictionary<u128>, data: &[u8]) -> Payload<'static> {
    let (distinct, distinct_data) = compact(dictionary.values.iter().copied(), data);
    let codes = dict::packed(&dictionary.codes, distinct.len());
    let mut payload = with_views(Encoding::PackedDict, distinct.len() as u32, distinct, distinct_data);
    payload.sections.push(codes.into());
    payload
}

/// Chooses the smallest of the values, a dictionary of them, either with FSST, or compressed. The percentages weigh the
/// cost of reading.
fn sealed(source: ViewsRef<'_>, given: ViewsRef<'_>, compresses: bool) -> Payload<'static> {
    let plain = plain(given);
    if plain.bytes() <= BYTES_MIN {
        return plain;
    }
    let mut options = vec![(115, fsst::payload(given))];
    let mut to_compress = vec![(125, text::payload(given))];
    let rows = source.views.len();
    if let Some(dictionary) = dictionary_up_to(source, rows - 1) {
        let distinct = ViewsRef { views: &dictionary.values, data: source.data };
        // Compressed codes may be many: they are looked up once per block anyway.
        if dictionary.values.len() <= dict::distinct_max(rows, 16, rows * 16) {
            let codes = dict::packed(&dictionary.codes, dictionary.values.len());
            options.push((105, Some(packed_dictionary(&dictionary, source.data))));
            options.push((108, fsst::dictionary_payload(distinct, codes)));
        }
        to_compress.push((120, text::dictionary_payload(distinct, &dictionary.codes)));
    }
    to_compress.retain(|_| compresses);
    let guessed = to_compress.into_iter().filter_map(|(percent, inner)| {
        let inner = inner?;
        Some((compressed::text_guess(&inner)? * percent, percent, inner))
    });
    if let Some((_, percent, inner)) = guessed.min_by_key(|(cost, ..)| *cost) {
        options.push((percent, compressed::text(&inner)));
    }
    let weighed = options.into_iter().filter_map(|(percent, payload)| payload.map(|p| (p.bytes() * percent / 100, p)));
    let plain_bytes = plain.bytes();
    weighed
        .chain([(plain_bytes, plain)])
        .min_by_key(|(cost, _)| *cost)
        .map(|(_, payload)| payload)
        .expect("plain at least")
}

pub(super) fn with_views<'a>(
    encoding: Encoding,
    parameter: u32,
    views: Vec<u128>,
    data: impl Into<Cow<'a, [u8]>>,
) -> Payload<'a> {
    let data = data.into();
    let data_bytes = data.len() as u32;
    let sections = vec![bytemuck::cast_slice(&views).to_vec().into(), data];
    Payload { encoding, parameter, data_bytes, sections }
}

/// Returns the views with only the data they need, in their order.
fn compact(views: impl ExactSizeIterator<Item = u128>, data: &[u8]) -> (Vec<u128>, Vec<u8>) {
    let mut own = Vec::with_capacity(views.len());
    let mut own_data = Vec::new();
    for view in views {
        if view as u32 as usize <= INLINE_BYTES {
            own.push(view);
        } else {
            own.push(view & OFFSET_CLEAR | (own_data.len() as u128) << 96);
            own_data.extend_from_slice(view_bytes(&view, data));
        }
    }
    (own, own_data)
}

/// Mask of all bits of a view except its offset.
const OFFSET_CLEAR: u128 = u128::MAX >> 32;

/// Builds a dictionary if it is clearly smaller than the views alone, ignoring the data.
fn dictionary(source: ViewsRef<'_>) -> Option<dict::Dictionary<u128>> {
    let rows = source.views.len();
    dictionary_up_to(source, dict::distinct_max(rows, 16, rows * 16))
}

/// Builds a dictionary with at most `limit` distinct values.
pub(super) fn dictionary_up_to(source: ViewsRef<'_>, limit: usize) -> Option<dict::Dictionary<u128>> {
    let rows = source.views.len();
    if limit == 0 {
        return None;
    }
    let sample = rows.min(1024);
    let mut distinct = Distinct::new(source.data);
    let stride = (rows / sample) | 1;
    source.views.iter().step_by(stride).for_each(|v| {
        distinct.code(*v);
    });
    if rows > 1024 && distinct.views.len() > dict::sample_distinct_max(limit, rows / stride) {
        return None;
    }
    let mut codes = Vec::with_capacity(rows);
    for slice in source.views.chunks(256) {
        codes.extend(slice.iter().map(|v| distinct.code(*v)));
        if distinct.views.len() > limit {
            return None;
        }
    }
    let mut order: Vec<u16> = (0..distinct.views.len()).map(|i| i as u16).collect();
    order.sort_unstable_by(|a, b| distinct.bytes(*a).cmp(distinct.bytes(*b)));
    let values: Vec<u128> = order.iter().map(|i| distinct.views[usize::from(*i)]).collect();
    Some(dict::Dictionary { codes: dict::ranked(&codes, &dict::ranks(&order)), values })
}

/// Distinct views by content; codes are assigned in order of appearance.
struct Distinct<'a> {
    data: &'a [u8],
    views: Vec<u128>,
    table: HashTable<u16>,
    hasher: hashbrown::DefaultHashBuilder,
}

impl<'a> Distinct<'a> {
    fn new(data: &'a [u8]) -> Distinct<'a> {
        Distinct { data, views: Vec::new(), table: HashTable::new(), hasher: hashbrown::DefaultHashBuilder::default() }
    }

    fn bytes(&self, code: u16) -> &[u8] {
        view_bytes(&self.views[usize::from(code)], self.data)
    }

    #[inline]
    fn code(&mut self, view: u128) -> u16 {
        let Distinct { data, views, table, hasher } = self;
        let hash = hash_of(hasher, view, data);
        let is_same = |code: &u16| same(views[usize::from(*code)], view, data);
        if let Some(code) = table.find(hash, is_same) {
            return *code;
        }
        let code = views.len() as u16;
        views.push(view);
        table.insert_unique(hash, code, |code| hash_of(hasher, views[usize::from(*code)], data));
        code
    }
}

/// Hashes short values by their views, and long values by their bytes, independent of the offset.
#[inline]
fn hash_of(hasher: &hashbrown::DefaultHashBuilder, view: u128, data: &[u8]) -> u64 {
    if view as u32 as usize <= INLINE_BYTES { hasher.hash_one(view) } else { hasher.hash_one(view_bytes(&view, data)) }
}

#[inline]
fn same(a: u128, b: u128, data: &[u8]) -> bool {
    // Length and first bytes are in the low half.
    a == b || (a as u64 == b as u64 && a as u32 as usize > INLINE_BYTES && view_bytes(&a, data) == view_bytes(&b, data))
}

pub(super) fn decode_dict(block: &EncodedBlock, layout: &Layout) -> BlockData {
    let distinct: Vec<u128> = collect(layout.first(&block.bytes));
    let mut views = dict::values_of(&distinct, layout, block);
    nulls::zero_nulls(&mut views, layout.validity(&block.bytes));
    BlockData::Views { views: share(views), data: layout.data_bytes(&block.bytes) }
}

/// Checks that every view is inside the data, and that short views are padded with zeros.
pub(super) fn check_views(views: &[u8], data: &[u8]) -> Result<(), String> {
    let views: Vec<u128> = collect(views);
    let is_right = |view: &u128| {
        let len = *view as u32 as usize;
        if len <= INLINE_BYTES {
            len == INLINE_BYTES || *view >> (32 + 8 * len) == 0
        } else {
            let buffer = (*view >> 64) as u32;
            let offset = (*view >> 96) as usize;
            buffer == 0 && offset + len <= data.len()
        }
    };
    if views.iter().all(is_right) { Ok(()) } else { Err("a value outside of its data".to_owned()) }
}
