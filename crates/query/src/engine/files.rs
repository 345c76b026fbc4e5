//! `read_csv('…')` and `read_parquet('…')`: files as tables, before a query is bound.
//!
//! In: the calls of a query. Out: a table for each, a listing of files whose columns, filters and limits are pushed
//! down into the reading. Paths are of the machine that the database runs on, may be patterns (see `globs`), or begin with
//! `s3://`, `gs://`, `az://`, `http://`, `https://`, whose credentials are in the usual variables of the environment.

use super::parquet::BoundedParquet;
use super::{Engine, globs};
use crate::binder::tables::Tables;
use crate::binder::{self, BindError, FileCall, FileOption, Tree};
use crate::functions::FileReader;
use crate::{Error, Result, door};
use datafusion::arrow::datatypes::{DataType, TimeUnit as ArrowUnit};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::context::SessionState;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};
use futures::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path as ObjectPath;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};
use std::path::Path;
use std::sync::Arc;
use tidalite_types::ErrorKind;

/// Bytes of the first file that are looked at to tell its form.
const SNIFFED_BYTES: u64 = 64 << 10;
/// Rows that types of columns are told from.
const SNIFFED_ROWS: usize = 10_000;
const DELIMITERS: [u8; 4] = *b",;\t|";

impl Engine {
    /// Opens the files of a query that is bound; returns true if there are any.
    pub(super) async fn open_files(&self, state: &SessionState, tree: &Tree, tables: &mut Tables) -> Result<bool> {
        let calls = match binder::tables::file_calls(state, tree, tables) {
            Ok(calls) => calls,
            Err(BindError::Invalid(error)) => return Err(*error),
            // A parameter without a value.
            Err(BindError::Unsupported(_) | BindError::Values(_)) => Vec::new(),
        };
        let has_any = !calls.is_empty();
        for (place, call) in calls {
            let at = |mut error: Error| {
                error.position.get_or_insert(place.start as usize);
                error
            };
            self.check_reads_files(&call).map_err(at)?;
            tables.add_file(place, self.table(state, call).await?);
        }
        Ok(has_any)
    }

    fn check_reads_files(&self, call: &FileCall) -> Result<()> {
        if self.reads_files {
            return Ok(());
        }
        let function = call.function.name();
        let error = Error::invalid(format!("{function} is turned off on this server"));
        Err(error.with_hint("query.reads_files turns it on").about(function))
    }

    async fn table(&self, state: &SessionState, call: FileCall) -> Result<Arc<dyn TableProvider>> {
        let mut said = Said::default();
        for (name, value) in &call.options {
            match call.function {
                FileReader::Parquet => return Err(unknown_option(call.function.name(), name)),
                FileReader::Csv => said.take(call.function.name(), name, value)?,
            }
        }
        let mut urls = Vec::new();
        for path in &call.paths {
            urls.extend(self.urls(path).await?);
        }
        let Some(first) = urls.first() else { return Err(not_found(&call.paths.join(", "))) };
        let format: Arc<dyn FileFormat> = match call.function {
            FileReader::Parquet => Arc::new(BoundedParquet::default()),
            FileReader::Csv => Arc::new(self.csv(state, &said, first).await?),
        };
        let options = ListingOptions::new(format).with_file_extension("");
        let schema = options.infer_schema(state, first).await.map_err(|e| unreadable(first, e.into()))?;
        if schema.fields().is_empty() {
            return Err(not_found(&call.paths.join(", ")));
        }
        let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema);
        named_our_way(Arc::new(ListingTable::try_new(config)?))
    }

    /// The files that a path stands for; one that is no pattern stands for itself.
    async fn urls(&self, path: &str) -> Result<Vec<ListingTableUrl>> {
        let Some((scheme, _)) = path.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
            let path = path.strip_prefix("file://").unwrap_or(path);
            if !self.access.is_unrestricted() {
                return self.confined(path).await;
            }
            let Some((base, pattern)) = globs::split(path) else {
                // Removes empty path segments, which object_store rejects.
                let local = std::path::absolute(path).map_err(|_| not_found(path))?;
                return Ok(vec![parsed(&local.to_string_lossy(), path)?]);
            };
            let base = std::path::absolute(if base.is_empty() { "." } else { base });
            let base = base.ok().and_then(|base| ObjectPath::from_absolute_path(base).ok());
            let base = base.ok_or_else(|| not_found(path))?;
            return self.matching(&ObjectStoreUrl::local_filesystem(), base, pattern).await;
        };
        self.access.url(path)?;
        let pattern = globs::split(path).filter(|_| !scheme.starts_with("http"));
        let url = parsed(pattern.map_or(path, |(base, _)| base), path)?;
        self.store(scheme, path, &url.object_store())?;
        match pattern {
            Some((_, pattern)) => self.matching(&url.object_store(), url.prefix().clone(), pattern).await,
            None => Ok(vec![url]),
        }
    }

    /// As `urls` for a local path with confined access: lists the files of a folder and resolves each, since a folder
    /// may have links to files outside of it.
    async fn confined(&self, path: &str) -> Result<Vec<ListingTableUrl>> {
        let local = ObjectStoreUrl::local_filesystem();
        let (base, pattern) = globs::split(path).map_or((path, None), |(base, pattern)| (base, Some(pattern)));
        let base = self.access.path(if base.is_empty() { "." } else { base })?;
        let pattern = pattern.or(base.is_dir().then_some("**"));
        let object = |path: &Path| ObjectPath::from_absolute_path(path).map_err(|_| not_found(&path.to_string_lossy()));
        let Some(pattern) = pattern else { return Ok(vec![url_of(&local, &object(&base)?)?]) };
        let store = self.environment.object_store(&local)?;
        let files = globs::files(store.as_ref(), object(&base)?, pattern).await?;
        let resolved = files.iter().map(|file| url_of(&local, &object(&self.access.path(&format!("/{file}"))?)?));
        resolved.collect()
    }

    async fn matching(&self, store: &ObjectStoreUrl, base: ObjectPath, pattern: &str) -> Result<Vec<ListingTableUrl>> {
        let files = globs::files(self.environment.object_store(store)?.as_ref(), base, pattern).await?;
        files.iter().map(|file| url_of(store, file)).collect()
    }

    /// Makes the connection to a store known, the first time it is named.
    fn store(&self, scheme: &str, path: &str, url: &ObjectStoreUrl) -> Result<()> {
        if self.environment.object_store(url).is_ok() {
            return Ok(());
        }
        let store: Arc<dyn ObjectStore> = match scheme {
            "s3" | "s3a" => {
                Arc::new(AmazonS3Builder::from_env().with_url(path).build().map_err(|e| refused(path, &e))?)
            }
            "gs" | "gcs" => {
                Arc::new(GoogleCloudStorageBuilder::from_env().with_url(path).build().map_err(|e| refused(path, &e))?)
            }
            "az" | "azure" | "abfs" | "abfss" | "adl" => {
                Arc::new(MicrosoftAzureBuilder::from_env().with_url(path).build().map_err(|e| refused(path, &e))?)
            }
            "http" | "https" => {
                let options = ClientOptions::new().with_allow_http(true);
                let mut builder = HttpBuilder::new().with_url(url.as_str()).with_client_options(options);
                if let Some(connector) = self.access.connector() {
                    builder = builder.with_http_connector(connector);
                }
                let built = builder.build();
                Arc::new(built.map_err(|e| refused(path, &e))?)
            }
            _ => {
                let mut error = Error::invalid(format!("files of {scheme}:// cannot be read"))
                    .with_hint("paths of this machine, and s3://, gs://, az://, http:// and https:// can");
                error.subject = Some(format!("'{path}"));
                return Err(error);
            }
        };
        self.environment.register_object_store(url.as_ref(), store);
        Ok(())
    }

    /// How a file is to be read, as far as it was not said.
    async fn csv(&self, state: &SessionState, said: &Said, url: &ListingTableUrl) -> Result<CsvFormat> {
        let head = self.head(state, url).await?;
        let delimiter = said.delimiter.unwrap_or_else(|| delimiter_of(&head));
        let quote = said.quote.unwrap_or(b'"');
        let has_header = said.has_header.unwrap_or_else(|| has_header(&head, delimiter, quote));
        let format = CsvFormat::default()
            .with_delimiter(delimiter)
            .with_quote(quote)
            .with_escape(said.escape)
            .with_comment(said.comment)
            .with_newlines_in_values(true)
            .with_has_header(has_header)
            .with_schema_infer_max_rec(said.sample.unwrap_or(SNIFFED_ROWS));
        Ok(format)
    }

    /// The beginning of the first file.
    async fn head(&self, state: &SessionState, url: &ListingTableUrl) -> Result<Vec<u8>> {
        let store = self.environment.object_store(url.object_store())?;
        let mut files = url.list_all_files(state, store.as_ref(), "").await.map_err(|e| unreadable(url, e.into()))?;
        let Some(file) = files.try_next().await.map_err(|e| unreadable(url, e.into()))? else { return Ok(Vec::new()) };
        let range = 0..file.size.min(SNIFFED_BYTES);
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let location: &ObjectPath = &file.location;
        let bytes = store.get_range(location, range).await;
        Ok(bytes.map_err(|e| Error::new(ErrorKind::Unavailable, format!("could not read {url}: {e}")))?.to_vec())
    }
}

/// Parses a URL; `written` is the path in the statement.
fn parsed(url: &str, written: &str) -> Result<ListingTableUrl> {
    ListingTableUrl::parse(url).map_err(|error| Error::from(error).about(format!("'{written}")))
}

fn url_of(store: &ObjectStoreUrl, file: &ObjectPath) -> Result<ListingTableUrl> {
    let path = file.as_ref().replace('%', "%25").replace('#', "%23").replace('?', "%3F");
    Ok(ListingTableUrl::parse(format!("{}{path}", store.as_str()))?)
}

fn not_found(path: &str) -> Error {
    let mut error = Error::new(ErrorKind::NotFound, format!("no file matches '{path}'"));
    error.subject = Some(format!("'{path}"));
    error
}

fn unreadable(url: &ListingTableUrl, error: Error) -> Error {
    // DataFusion appends a sentence about schemas.
    let text = error.to_string();
    let text = text.split(". Cannot infer schema").next().unwrap_or_default();
    Error::new(error.kind(), format!("could not read {url}: {text}"))
}

fn refused(path: &str, error: &object_store::Error) -> Error {
    let mut refused = Error::invalid(format!("could not open '{path}': {error}"))
        .with_hint("credentials are read from the environment: AWS_*, GOOGLE_*, AZURE_*");
    refused.subject = Some(format!("'{path}"));
    refused
}

fn unknown_option(function: &str, option: &str) -> Error {
    let mut error = Error::invalid(format!("{function} has no option \"{option}\""));
    error.subject = Some(option.to_owned());
    error
}

/// Columns under their folded names, and of types that ours have: times without a zone, whole seconds as milliseconds.
fn named_our_way(files: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let schema = files.schema();
    let plan = LogicalPlanBuilder::scan("files", provider_as_source(files), None)?;
    let fields: Vec<String> = schema.fields().iter().map(|f| tidalite_types::schema::fold_name(f.name())).collect();
    let names = crate::plan::distinct_names(fields.iter().map(String::as_str));
    let columns = plan.schema().columns().into_iter().zip(schema.fields()).zip(names).map(|((column, field), name)| {
        let column = Expr::Column(column);
        let typed = match field.data_type() {
            DataType::Timestamp(ArrowUnit::Second, _) => {
                cast(column, DataType::Timestamp(ArrowUnit::Millisecond, None))
            }
            DataType::Timestamp(unit, Some(_)) => cast(column, DataType::Timestamp(*unit, None)),
            _ => column,
        };
        typed.alias_with_metadata(name, Some(door::spelled_metadata(field.name()).into()))
    });
    let plan = plan.project(columns.collect::<Vec<_>>())?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// What the options of read_csv say.
#[derive(Default)]
struct Said {
    delimiter: Option<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    has_header: Option<bool>,
    sample: Option<usize>,
}

impl Said {
    fn take(&mut self, function: &str, name: &str, value: &FileOption) -> Result<()> {
        let refused = |what: &str| {
            let mut error = Error::invalid(format!("option \"{name}\" of {function} takes {what}"));
            error.subject = Some(name.to_owned());
            error
        };
        let byte = || match value {
            FileOption::Text(text) if text == "\\t" => Ok(b'\t'),
            FileOption::Text(text) if text.len() == 1 => Ok(text.as_bytes()[0]),
            _ => Err(refused("one character")),
        };
        let flag = || match value {
            FileOption::Flag(flag) => Ok(*flag),
            _ => Err(refused("true or false")),
        };
        match name {
            "delim" | "delimiter" | "sep" => self.delimiter = Some(byte()?),
            "quote" => self.quote = Some(byte()?),
            "escape" => self.escape = Some(byte()?),
            "comment" => self.comment = Some(byte()?),
            "header" => self.has_header = Some(flag()?),
            "sample_size" => {
                let rows = match value {
                    FileOption::Number(digits) => digits.parse().ok(),
                    _ => None,
                };
                self.sample = Some(rows.ok_or_else(|| refused("a number of rows"))?);
            }
            _ => {
                return Err(unknown_option(function, name)
                    .with_hint("options are delim, quote, escape, comment, header and sample_size"));
            }
        }
        Ok(())
    }
}

/// The one that comes most often in the first line.
fn delimiter_of(head: &[u8]) -> u8 {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let count = |delimiter: &u8| line.iter().filter(|b| *b == delimiter).count();
    // Of several that come equally often the first of the list.
    DELIMITERS.into_iter().rev().max_by_key(count).filter(|d| count(d) > 0).unwrap_or(b',')
}

/// Whether the first line has names: none is empty, a number or a time, and all are different.
fn has_header(head: &[u8], delimiter: u8, quote: u8) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let line = line.trim_start_matches('\u{feff}').trim_end_matches('\r');
    let mut fields: Vec<&str> =
        line.split(char::from(delimiter)).map(|field| field.trim().trim_matches(char::from(quote))).collect();
    let is_name = |field: &&str| {
        !field.is_empty()
            && field.parse::<f64>().is_err()
            && !["true", "false"].contains(&field.to_lowercase().as_str())
            && door::timestamps::parse_timestamp(field, tidalite_types::TimeUnit::Micros).is_none()
    };
    let are_names = fields.iter().all(is_name);
    let count = fields.len();
    fields.sort_unstable();
    fields.dedup();
    are_names && fields.len() == count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_file_is_told_from_its_first_line() {
        assert_eq!(delimiter_of(b"a;b;c,d\n1;2;3"), b';');
        assert_eq!((delimiter_of(b"a\tb\n"), delimiter_of(b"a\n")), (b'\t', b','));
        assert!(has_header(b"time,\"price\"\r\n2024-01-01,1\n", b',', b'"'));
        assert!(
            !has_header(b"2024-01-01,1\n", b',', b'"')
                && !has_header(b"a,a\n", b',', b'"')
                && !has_header(b"a,\n", b',', b'"')
        );
    }
}
