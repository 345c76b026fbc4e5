//! Bodies: of requests read in pieces and decompressed on the way, of responses whole or as they are computed.

use super::once::KeyError;
use super::response::Body;
use super::wire::Wire;
use crate::answer::Answer;
use crate::budget::Watch;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_ENCODING;
use hyper::{HeaderMap, StatusCode};
use std::io::Write;
use std::time::{Duration, Instant};
use tidalite::{Error, ErrorKind};
use tidalite_frames::IpcLimits;

/// Returns the answer as a body; hyper requests the next chunk after the last one is written. `done` receives the
/// number of rows when the body ends or is dropped.
///
/// If a query fails after its first chunk, JSON ends with the error as a complete document. CSV has no field for an error:
/// the response is aborted after the preceding rows have been written.
pub fn answer_body(answer: Answer, wire: Option<Wire>, done: impl FnOnce(u64) + Send + 'static) -> Body {
    struct Ending<F: FnOnce(u64)>(Answer, Option<Wire>, Option<F>);
    impl<F: FnOnce(u64)> Drop for Ending<F> {
        fn drop(&mut self) {
            if let Some(done) = self.2.take() {
                done(self.0.written());
            }
        }
    }
    let chunks = stream::unfold(Ending(answer, wire, Some(done)), |mut ending| async {
        let chunk = ending.0.next_chunk().await?;
        if chunk.is_err()
            && let Some(wire) = &ending.1
        {
            wire.flushed().await;
        }
        Some((chunk.map(Frame::data), ending))
    });
    BodyExt::boxed_unsync(StreamBody::new(chunks))
}

/// Limits of request bodies.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Size after decompression.
    pub bytes_max: usize,
    /// Maximum time between two bytes; zero is no limit.
    pub idle_max: Duration,
    /// Minimum mean rate in bytes per second after [`SLOW_START`]; zero is no limit.
    pub rate_min: usize,
}

impl BodyLimits {
    /// Returns the limits for Arrow IPC streams with compressed columns.
    #[must_use]
    pub fn ipc(self) -> IpcLimits {
        IpcLimits { decompressed_bytes_max: self.bytes_max, ratio_max: IpcLimits::RATIO_MAX }
    }
}

/// Time in which a sender may be slower than [`BodyLimits::rate_min`], for example to establish its TCP window.
const SLOW_START: Duration = Duration::from_secs(10);

/// Why a body could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// Larger than allowed, compressed or decompressed.
    TooLarge {
        bytes_max: usize,
    },
    /// The encoding's name.
    Encoding(String),
    Gzip(String),
    /// No byte arrived for this time.
    Stalled(Duration),
    /// The mean rate was less than this number of bytes per second.
    Slow(usize),
    /// The memory of the body was revoked for other requests because the rest was late.
    GaveWay,
    /// The connection broke; there is nobody to tell.
    Gone(String),
    /// What the receiver of the pieces said.
    Refused(Error),
    /// The idempotency key is malformed, or belongs to a different request.
    Key(KeyError),
}

impl From<KeyError> for BodyError {
    fn from(error: KeyError) -> BodyError {
        BodyError::Key(error)
    }
}

impl BodyError {
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Stalled(_) | BodyError::Slow(_) | BodyError::GaveWay => StatusCode::REQUEST_TIMEOUT,
            BodyError::Encoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            BodyError::Gzip(_) | BodyError::Gone(_) => StatusCode::BAD_REQUEST,
            BodyError::Refused(error) => crate::errors::status(error),
            BodyError::Key(error) => error.status(),
        }
    }

    #[must_use]
    pub fn into_error(self) -> Error {
        Error::new(
            ErrorKind::Invalid,
            match self {
                BodyError::TooLarge { bytes_max } => {
                    format!("the request body is larger than {bytes_max} bytes, the setting http.body_bytes_max")
                }
                BodyError::Stalled(idle) => format!(
                    "nothing of the request body came for {} ms, the setting http.body_timeout",
                    idle.as_millis()
                ),
                BodyError::Slow(rate) => {
                    format!(
                        "the request body arrived at fewer than {rate} bytes per second, the setting http.body_rate_min"
                    )
                }
                BodyError::GaveWay => {
                    "the rest of the request body did not come, and other requests needed its memory \
                                       (setting http.bodies_bytes_max)"
                        .to_owned()
                }
                BodyError::Encoding(name) => format!("content encoding {name:?} is not supported; gzip and none are"),
                BodyError::Gzip(problem) => format!("the gzip stream is broken: {problem}"),
                BodyError::Gone(problem) => format!("the request body ended early: {problem}"),
                BodyError::Refused(error) => return error,
                BodyError::Key(error) => return error.into_error(),
            },
        )
    }
}

/// Hands the body to `take` piece by piece, decompressed, as it arrives.
///
/// After an error the rest of the body is read and dropped, up to the limit: a client that is still sending would
/// otherwise see a broken connection instead of the answer.
///
/// # Errors
/// The first of: the encoding is unknown, the body is too large or broken, or `take` refuses a piece.
pub async fn read(
    headers: &HeaderMap,
    body: Incoming,
    limits: BodyLimits,
    watch: Watch,
    take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), BodyError> {
    let mut body = Arriving { body, limits, watch, waited: Duration::ZERO, bytes: 0 };
    let result = read_pieces(headers, &mut body, limits, take).await;
    if let Err(error) = &result
        && !matches!(error, BodyError::Gone(_) | BodyError::Stalled(_) | BodyError::Slow(_) | BodyError::GaveWay)
    {
        body.drain().await;
    }
    result
}

/// A sender that is never slower than the parser would keep its thread from everyone else: it is left at least once
/// in so many bytes.
const YIELD_BYTES: usize = 256 << 10;

async fn read_pieces(
    headers: &HeaderMap,
    body: &mut Arriving,
    limits: BodyLimits,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), BodyError> {
    let mut gzip = match encoding(headers).as_str() {
        "" | "identity" => None,
        "gzip" | "x-gzip" => Some(MultiGzDecoder::new(Vec::new())),
        other => return Err(BodyError::Encoding(other.to_owned())),
    };
    let BodyLimits { bytes_max, .. } = limits;
    let mut total = 0;
    let mut bounded = |piece: &[u8]| {
        total += piece.len();
        if total > bytes_max {
            return Err(BodyError::TooLarge { bytes_max });
        }
        take(piece).map_err(BodyError::Refused)
    };
    let mut compressed = 0;
    let mut since_yield = 0;
    while let Some(frame) = body.next().await? {
        let Ok(data) = frame.into_data() else { continue };
        since_yield += data.len();
        if since_yield >= YIELD_BYTES {
            since_yield = 0;
            tokio::task::yield_now().await;
        }
        match &mut gzip {
            None => bounded(&data)?,
            Some(decoder) => {
                compressed += data.len();
                if compressed > bytes_max {
                    return Err(BodyError::TooLarge { bytes_max });
                }
                inflate(decoder, &data, &mut bounded)?;
            }
        }
    }
    if let Some(decoder) = &mut gzip
        && compressed > 0
    {
        decoder.try_finish().map_err(|e| BodyError::Gzip(e.to_string()))?;
        bounded(decoder.get_ref())?;
    }
    Ok(())
}

/// Gzip expands a thousandfold at most, so that one step of input makes at most 4 MB of output.
const INFLATE_STEP: usize = 4 << 10;

fn inflate(
    decoder: &mut MultiGzDecoder<Vec<u8>>,
    data: &[u8],
    bounded: &mut impl FnMut(&[u8]) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    for step in data.chunks(INFLATE_STEP) {
        decoder.write_all(step).map_err(|e| BodyError::Gzip(e.to_string()))?;
        bounded(decoder.get_ref())?;
        decoder.get_mut().clear();
    }
    Ok(())
}

fn encoding(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_ENCODING).map_or(&b""[..], |v| v.as_bytes());
    String::from_utf8_lossy(value).trim().to_ascii_lowercase()
}

/// A request body that is being received, and its rate.
struct Arriving {
    body: Incoming,
    limits: BodyLimits,
    watch: Watch,
    /// Total time spent waiting for bytes.
    waited: Duration,
    bytes: usize,
}

impl Arriving {
    /// Receives the next frame within the limits.
    async fn next(&mut self) -> Result<Option<Frame<Bytes>>, BodyError> {
        let (patience, late) = patience(self.limits, self.bytes, self.waited);
        let began = Instant::now();
        let next = crate::accept::in_time(patience, self.body.frame());
        let Some(frame) = self.watch.unless_revoked(next).await else { return Err(BodyError::GaveWay) };
        let frame = frame.ok_or(late)?;
        self.waited += began.elapsed();
        let frame = frame.transpose().map_err(|e| BodyError::Gone(e.to_string()))?;
        self.bytes += frame.as_ref().and_then(Frame::data_ref).map_or(0, Bytes::len);
        Ok(frame)
    }

    async fn drain(&mut self) {
        let mut left = self.limits.bytes_max;
        while let Ok(Some(frame)) = self.next().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if bytes > left {
                return;
            }
            left -= bytes;
        }
    }
}

/// Returns the time limit for the next frame (zero is no limit) and the error after that time. The `bytes` so far took
/// the time `waited`.
fn patience(limits: BodyLimits, bytes: usize, waited: Duration) -> (Duration, BodyError) {
    let BodyLimits { idle_max, rate_min, .. } = limits;
    let stalled = (idle_max, BodyError::Stalled(idle_max));
    if rate_min == 0 {
        return stalled;
    }
    let due = SLOW_START + Duration::from_secs_f64(bytes as f64 / rate_min as f64);
    // Zero would be no limit.
    let left = due.saturating_sub(waited).max(Duration::from_millis(1));
    if idle_max.is_zero() || left < idle_max { (left, BodyError::Slow(rate_min)) } else { stalled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_of_bodies() {
        let second = Duration::from_secs(1);
        let limits = |idle, rate_min| BodyLimits { bytes_max: 1 << 20, idle_max: idle * second, rate_min };
        let left = |limits, bytes, waited| {
            let (left, error) = patience(limits, bytes, waited * second);
            (left, matches!(error, BodyError::Slow(_)))
        };
        assert_eq!(left(limits(60, 256), 0, 0), (SLOW_START, true));
        assert_eq!(left(limits(60, 256), 256 * 5, 12), (3 * second, true));
        assert_eq!(left(limits(60, 256), 256 * 5, 20), (Duration::from_millis(1), true));
        assert_eq!(left(limits(5, 256), 0, 0), (5 * second, false));
        assert_eq!(left(limits(60, 256), 1 << 20, 10), (60 * second, false));
        assert_eq!(left(limits(60, 0), 0, 1000), (60 * second, false));
        assert_eq!(left(limits(0, 0), 0, 1000), (Duration::ZERO, false));
        assert_eq!(left(limits(0, 1), 0, 5), (5 * second, true));
    }
}
