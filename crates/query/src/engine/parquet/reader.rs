//! Reads footers, page indexes and pages of Parquet files, and checks them before upstream sees them.

use super::checks::{self, Pages, Refusal};
use crate::Error;
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, CachedParquetMetaData};
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, ParquetMetaDataReader};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the length and the magic number at the end of a file.
const TAIL_BYTES: u64 = 8;
const MAGIC: &[u8] = b"PAR1";
/// Bytes of a footer or a page index. The footer of 10,000 row groups of 100 columns has about 100 MiB.
const METADATA_BYTES_MAX: u64 = 256 << 20;

fn refused(object: &ObjectMeta, why: &str) -> Error {
    Error::invalid(format!("could not read the Parquet file /{}: {why}", object.location))
}

/// Checks a footer and the page index that it names, and leaves the metadata in the cache, where upstream finds them.
///
/// # Errors
/// The file claims what cannot be true, or cannot be read. A file without a footer is left to upstream's own error.
pub(super) async fn check_metadata(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    cache: &FileMetadataCache,
) -> Result<()> {
    if cache.get(&object.location).is_some_and(|known| known.is_valid_for(object)) {
        return Ok(());
    }
    let Some(footer) = footer_range(store, object).await? else { return Ok(()) };
    let bytes = store.get_range(&object.location, footer).await?;
    checks::footer(&bytes).map_err(|why| refused(object, &why))?;
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes)?;
    checks::metadata(&metadata, object.size).map_err(|why| refused(object, &why))?;
    let metadata = with_page_index(store, object, metadata).await?;
    let entry = CachedParquetMetaData::new(Arc::new(metadata));
    cache.put(&object.location, CachedFileMetadataEntry::new(object.clone(), Arc::new(entry)));
    Ok(())
}

async fn footer_range(store: &Arc<dyn ObjectStore>, object: &ObjectMeta) -> Result<Option<Range<u64>>> {
    let Some(tail_at) = object.size.checked_sub(TAIL_BYTES) else { return Ok(None) };
    let tail = store.get_range(&object.location, tail_at..object.size).await?;
    let Some((length, magic)) = tail.split_first_chunk() else { return Ok(None) };
    let length = u64::from(u32::from_le_bytes(*length));
    let Some(start) = tail_at.checked_sub(length).filter(|_| magic == MAGIC) else { return Ok(None) };
    if length > METADATA_BYTES_MAX {
        return Err(
            refused(object, &format!("its footer has {length} bytes, at most {METADATA_BYTES_MAX} are read")).into()
        );
    }
    Ok(Some(start..tail_at))
}

/// Byte ranges of all column indexes and offset indexes.
fn index_ranges(metadata: &ParquetMetaData) -> Vec<Range<u64>> {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let of_chunk = chunks.flat_map(|chunk| {
        [
            chunk.column_index_offset().zip(chunk.column_index_length()),
            chunk.offset_index_offset().zip(chunk.offset_index_length()),
        ]
    });
    let ranges = of_chunk.flatten().filter_map(|(start, length)| {
        let (start, length) = (u64::try_from(start).ok()?, u64::try_from(length).ok()?);
        Some(start..start.checked_add(length)?)
    });
    ranges.collect()
}

async fn with_page_index(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    metadata: ParquetMetaData,
) -> Result<ParquetMetaData> {
    let structures = index_ranges(&metadata);
    let mut decoder = ParquetMetaDataPushDecoder::try_new_with_metadata(object.size, metadata)?
        .with_page_index_policy(PageIndexPolicy::Optional);
    loop {
        let ranges = match decoder.try_decode()? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => ranges,
            DecodeResult::Finished => return Err(Error::internal("metadata without an end").into()),
        };
        let bytes: u64 = ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        if bytes > METADATA_BYTES_MAX || ranges.iter().any(|range| range.end > object.size) {
            return Err(refused(object, "its page index is damaged").into());
        }
        let buffers = store.get_ranges(&object.location, &ranges).await?;
        for (range, buffer) in ranges.iter().zip(&buffers) {
            for structure in structures.iter().filter(|s| s.start >= range.start && s.end <= range.end) {
                let at = (structure.start - range.start) as usize..(structure.end - range.start) as usize;
                let index = buffer.get(at).ok_or_else(|| refused(object, "its page index is damaged"))?;
                checks::page_index(index).map_err(|why| refused(object, &why))?;
            }
        }
        decoder.push_ranges(ranges, buffers)?;
    }
}

/// Makes readers of upstream that are checked.
#[derive(Debug)]
pub(super) struct CheckedReaders {
    store: Arc<dyn ObjectStore>,
    cache: Arc<FileMetadataCache>,
    inner: CachedParquetFileReaderFactory,
}

impl CheckedReaders {
    pub fn new(store: Arc<dyn ObjectStore>, cache: Arc<FileMetadataCache>) -> CheckedReaders {
        let inner = CachedParquetFileReaderFactory::new(store.clone(), cache.clone());
        CheckedReaders { store, cache, inner }
    }
}

impl ParquetFileReaderFactory for CheckedReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let object = file.object_meta.clone();
        let inner = self.inner.create_reader(partition_index, file, metadata_size_hint, metrics)?;
        let (store, cache) = (self.store.clone(), self.cache.clone());
        Ok(Box::new(CheckedReader { store, cache, object, inner, layout: None }))
    }
}

struct CheckedReader {
    store: Arc<dyn ObjectStore>,
    cache: Arc<FileMetadataCache>,
    object: ObjectMeta,
    inner: Box<dyn AsyncFileReader + Send>,
    layout: Option<Layout>,
}

impl CheckedReader {
    async fn metadata(&mut self, options: Option<&ArrowReaderOptions>) -> ParquetResult<Arc<ParquetMetaData>> {
        let checked = check_metadata(&self.store, &self.object, self.cache.as_ref()).await;
        checked.map_err(|error| ParquetError::External(Box::new(error)))?;
        let metadata = self.inner.get_metadata(options).await?;
        self.layout = Some(Layout::new(metadata.clone()));
        Ok(metadata)
    }

    async fn pages(&mut self, ranges: Vec<Range<u64>>) -> ParquetResult<Vec<Bytes>> {
        if self.layout.is_none() {
            self.metadata(None).await?;
        }
        let buffers = self.inner.get_byte_ranges(ranges.clone()).await?;
        let mut pages = Pages::default();
        for (range, bytes) in ranges.iter().zip(&buffers) {
            let checked = self.layout.as_ref().map_or(Ok(()), |layout| layout.check(range, bytes, &mut pages));
            checked.map_err(|why| ParquetError::External(Box::new(refused(&self.object, &why))))?;
        }
        Ok(buffers)
    }
}

impl AsyncFileReader for CheckedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.inner.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.pages(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        self.metadata(options).boxed()
    }
}

/// The places of the column chunks of a file.
struct Layout {
    metadata: Arc<ParquetMetaData>,
    /// Bytes, row group and column, in order of the first byte.
    chunks: Vec<(Range<u64>, usize, usize)>,
}

impl Layout {
    fn new(metadata: Arc<ParquetMetaData>) -> Layout {
        let groups = metadata.row_groups().iter().enumerate();
        let chunks = groups.flat_map(|(group, columns)| {
            let columns = columns.columns().iter().enumerate();
            columns.filter_map(move |(column, chunk)| Some((checks::chunk_range(chunk)?, group, column)))
        });
        let mut chunks: Vec<_> = chunks.filter(|(range, ..)| !range.is_empty()).collect();
        chunks.sort_unstable_by_key(|(range, ..)| range.start);
        Layout { metadata, chunks }
    }

    /// Checks the pages in the bytes of a range.
    ///
    /// Upstream finds pages by the offset index where the file has one and it is loaded, else one behind the other.
    fn check(&self, range: &Range<u64>, bytes: &[u8], pages: &mut Pages) -> Result<(), Refusal> {
        if range.is_empty() {
            return Ok(());
        }
        let at = self.chunks.partition_point(|(chunk, ..)| chunk.start <= range.start);
        let chunk = at.checked_sub(1).map(|at| &self.chunks[at]).filter(|(chunk, ..)| range.end <= chunk.end);
        let (chunk, group, column) = chunk.ok_or_else(|| "a page lies outside of its columns".to_owned())?;
        let index = self.metadata.offset_index().and_then(|groups| groups.get(*group)?.get(*column));
        let is_compressed = self.metadata.row_group(*group).column(*column).compression() != Compression::UNCOMPRESSED;
        let is_whole = range == chunk;
        if is_whole {
            pages.check(bytes, is_compressed, None)?;
        }
        let Some(locations) = index.map(|index| index.page_locations()).filter(|pages| !pages.is_empty()) else {
            return if is_whole { Ok(()) } else { pages.check(bytes, is_compressed, Some(&[0])) };
        };
        let offsets = locations.iter().filter_map(|page| u64::try_from(page.offset).ok());
        let offsets = offsets.chain(is_whole.then_some(chunk.start)).filter(|offset| range.contains(offset));
        let mut starts: Vec<usize> = offsets.map(|offset| (offset - range.start) as usize).collect();
        if starts.is_empty() {
            starts.push(0);
        }
        // A whole chunk is counted above.
        let counted = if is_whole { &mut Pages::default() } else { pages };
        counted.check(bytes, is_compressed, Some(&starts))
    }
}
