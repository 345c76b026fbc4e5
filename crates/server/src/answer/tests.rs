use super::*;
use arrow::array::{Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use futures::stream;
use std::sync::Arc;

fn column(name: &str, type_name: &str) -> OutputColumn {
    OutputColumn { name: name.to_owned(), type_name: type_name.to_owned(), ..OutputColumn::default() }
}

/// `batches` of `rows` rows; the last one an error if asked for.
fn rows(batches: usize, rows: usize, fail: bool) -> Rows {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let schema = Arc::new(Schema::new(vec![
        Field::new("s", DataType::Utf8View, true),
        Field::new("d", DataType::Float64, true),
        Field::new("n", DataType::Int64, true),
        Field::new("ts", utc, false),
    ]));
    let batch = |b: usize| {
        let at = |r: usize| (b * rows + r) as i64;
        RecordBatch::try_new(
            schema.clone(),
            vec![
                Arc::new((0..rows).map(|r| (r % 2 == 0).then_some("x\"y")).collect::<StringViewArray>()),
                Arc::new((0..rows).map(|r| (r % 2 == 0).then_some(1.5)).collect::<Float64Array>()),
                Arc::new((0..rows).map(|r| Some(at(r))).collect::<Int64Array>()),
                Arc::new((0..rows).map(|r| Some(at(r))).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
            ],
        )
        .unwrap()
    };
    let mut all: Vec<Result<RecordBatch>> = (0..batches).map(|b| Ok(batch(b))).collect();
    if fail {
        all.push(Err(Error::new(ErrorKind::Unavailable, "timed out")));
    }
    Rows {
        columns: vec![column("s", "SYMBOL"), column("d", "DOUBLE"), column("n", "LONG"), column("ts", "TIMESTAMP")],
        schema,
        timestamp: Some(3),
        compile_time: Duration::ZERO,
        // As most streams, this one does not like to be asked again after its end.
        stream: stream::unfold(all.into_iter(), |mut all| async { all.next().map(|next| (next, all)) }).boxed(),
    }
}

fn json() -> Form {
    Form::Json(JsonForm::default())
}

/// The text, and how the stream ended.
fn text(rows: Rows, form: Form, limit: Limit, columns: &[String]) -> (String, Result<()>) {
    futures::executor::block_on(async {
        let mut answer = Answer::start("q".to_owned(), rows, form, limit, columns).await.unwrap();
        let mut out = Vec::new();
        while let Some(chunk) = answer.next_chunk().await {
            match chunk {
                Ok(chunk) => out.extend_from_slice(&chunk),
                Err(error) => return (String::from_utf8(out).unwrap(), Err(error)),
            }
        }
        (String::from_utf8(out).unwrap(), Ok(()))
    })
}

#[test]
fn json_has_the_shape_rest_clients_expect() {
    let (text, _) = text(rows(1, 2, false), json(), Limit::ALL, &[]);
    assert_eq!(
        text,
        "{\"query\":\"q\",\"columns\":[{\"name\":\"s\",\"type\":\"SYMBOL\"},{\"name\":\"d\",\"type\":\"DOUBLE\"},\
         {\"name\":\"n\",\"type\":\"LONG\"},{\"name\":\"ts\",\"type\":\"TIMESTAMP\"}],\"timestamp\":3,\"dataset\":[\
         [\"x\\\"y\",1.5,0,\"1970-01-01T00:00:00.000000Z\"],[null,null,1,\"1970-01-01T00:00:00.000001Z\"]],\"count\":2}"
    );
}

#[test]
fn csv_has_a_header_and_lines_that_end_in_crlf() {
    let (text, _) = text(rows(1, 2, false), Form::Csv { delimiter: b',', header: true }, Limit::ALL, &[]);
    assert_eq!(
        text,
        "\"s\",\"d\",\"n\",\"ts\"\r\n\"x\"\"y\",1.5,0,\"1970-01-01T00:00:00.000000Z\"\r\n,,1,\"1970-01-01T00:00:00.000001Z\"\r\n"
    );
}

#[test]
fn limits_cut_across_batches_and_count_tells_how_many_there_were() {
    let numbers = |limit: &str, count: bool| {
        let form = Form::Json(JsonForm { no_metadata: true, count, ..JsonForm::default() });
        text(rows(3, 2, false), form, Limit::parse(limit).unwrap(), &["n".to_owned()]).0
    };
    assert_eq!(numbers("1", false), "{\"dataset\":[[0]],\"count\":1}");
    assert_eq!(numbers("0", false), "{\"dataset\":[],\"count\":0}");
    assert_eq!(numbers("2,5", false), "{\"dataset\":[[1],[2],[3],[4]],\"count\":4}");
    assert_eq!(numbers("5,100", false), "{\"dataset\":[[4],[5]],\"count\":2}");
    assert_eq!(numbers("3", true), "{\"dataset\":[[0],[1],[2]],\"count\":6}");
    assert_eq!(numbers("100,200", true), "{\"dataset\":[],\"count\":6}");
    assert_eq!(Limit::parse("abc"), None);
}

#[test]
fn many_rows_come_in_many_chunks_and_are_all_there() {
    let form = Form::Json(JsonForm::default());
    let (text, end) = text(rows(40, 1000, false), form, Limit::ALL, &[]);
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let dataset = parsed["dataset"].as_array().unwrap();
    assert_eq!((dataset.len(), parsed["count"].as_u64()), (40_000, Some(40_000)));
    assert!(dataset.iter().enumerate().all(|(i, row)| row[2].as_u64() == Some(i as u64)));
    assert!(end.is_ok());
}

#[test]
fn two_threads_write_what_one_does() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let csv = Form::Csv { delimiter: b';', header: true };
    let limits = ["100000", "1025", "4096", "777,26123"];
    for (form, limit) in [json(), csv].iter().flat_map(|form| limits.map(|limit| (form, limit))) {
        let limit = Limit::parse(limit).unwrap();
        let (alone, end) = text(rows(3, 10_000, true), form.clone(), limit, &[]);
        let chunks = runtime.block_on(runtime.spawn({
            let form = form.clone();
            async move {
                let mut answer = Answer::start("q".to_owned(), rows(3, 10_000, true), form, limit, &[]).await.unwrap();
                let mut chunks = Vec::new();
                while let Some(chunk) = answer.next_chunk().await {
                    chunks.push(chunk);
                }
                chunks
            }
        }));
        let (chunks, errors): (Vec<_>, Vec<_>) = chunks.unwrap().into_iter().partition(Result::is_ok);
        assert_eq!(errors.len(), usize::from(end.is_err()));
        assert!(chunks.into_iter().flat_map(Result::unwrap).eq(alone.into_bytes()), "{form:?} {limit:?}");
    }
}

#[test]
fn chosen_columns_move_the_timestamp() {
    let names = ["ts".to_owned(), "S".to_owned()];
    let (text, _) = text(rows(1, 1, false), json(), Limit::ALL, &names);
    assert!(text.contains("\"timestamp\":0,\"dataset\":[[\"1970-01-01T00:00:00.000000Z\",\"x\\\"y\"]]"), "{text}");
}

#[test]
fn a_late_error_is_in_the_text_and_in_the_stream() {
    let (text, end) = text(rows(2, 2, true), json(), Limit::ALL, &[]);
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((parsed["error"].as_str(), parsed["count"].as_u64()), (Some("timed out"), Some(4)));
    assert!(parsed["position"].is_u64() && end.is_ok());
}

#[test]
fn an_early_error_is_one_of_the_request() {
    let started = futures::executor::block_on(Answer::start("q".to_owned(), rows(0, 0, true), json(), Limit::ALL, &[]));
    assert_eq!(started.err().unwrap().message, "timed out");
}

#[test]
fn an_empty_result_is_whole() {
    let (text, _) = text(rows(0, 0, false), json(), Limit::ALL, &["n".to_owned()]);
    assert!(text.ends_with("\"timestamp\":-1,\"dataset\":[],\"count\":0}"), "{text}");
}

#[test]
fn arrays_and_addresses_have_their_own_type_names() {
    let mut out = Vec::new();
    push_column(&mut out, &column("a", "DOUBLE[][]"));
    push_column(&mut out, &column("i", "IPV4"));
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        "{\"name\":\"a\",\"type\":\"ARRAY\",\"dim\":2,\"elemType\":\"DOUBLE\"}{\"name\":\"i\",\"type\":\"IPv4\"}"
    );
}
