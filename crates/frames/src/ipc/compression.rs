//! Decompression of lz4 and zstd buffers within limits.
//!
//! A buffer begins with its decompressed length (8 bytes, signed; −1 when it is not compressed). The claimed length is
//! checked and reserved before memory is allocated, and limits the bytes that are written.

use super::error::IpcError;
use super::limits::{IpcLimits, Reserve};
use arrow::buffer::Buffer;
use arrow::ipc::{BodyCompression, BodyCompressionMethod, CompressionType};
use std::fmt;
use std::io::Read;
use zstd::bulk;
use zstd::zstd_safe::get_frame_content_size;

const PREFIX_BYTES: usize = 8;
const NOT_COMPRESSED: i64 = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Lz4,
    Zstd,
}

impl Codec {
    pub(super) fn of(compression: BodyCompression<'_>) -> Result<Codec, IpcError> {
        match (compression.method(), compression.codec()) {
            (BodyCompressionMethod::BUFFER, CompressionType::LZ4_FRAME) => Ok(Codec::Lz4),
            (BodyCompressionMethod::BUFFER, CompressionType::ZSTD) => Ok(Codec::Zstd),
            (_, codec) => Err(IpcError::malformed(format!("compression {} is not supported", codec.0))),
        }
    }
}

/// Decompresses the buffers of a stream and counts the bytes.
pub(super) struct Decompressor {
    limits: IpcLimits,
    compressed: usize,
    decompressed: usize,
    zstd: Option<bulk::Decompressor<'static>>,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").field("decompressed", &self.decompressed).finish_non_exhaustive()
    }
}

impl Decompressor {
    pub(super) fn new(limits: IpcLimits) -> Decompressor {
        Decompressor { limits, compressed: 0, decompressed: 0, zstd: None }
    }

    /// Returns the content of a buffer that is not empty.
    pub(super) fn buffer<E: From<IpcError>>(
        &mut self,
        codec: Codec,
        buffer: &Buffer,
        reserve: Reserve<'_, E>,
    ) -> Result<Buffer, E> {
        let short = || IpcError::malformed("a compressed buffer is shorter than its length");
        let prefix = buffer.first_chunk::<PREFIX_BYTES>().ok_or_else(short)?;
        let bytes = &buffer[PREFIX_BYTES..];
        let claimed = match i64::from_le_bytes(*prefix) {
            NOT_COMPRESSED => return Ok(buffer.slice(PREFIX_BYTES)),
            0 => return Ok(Buffer::from_vec(Vec::<u8>::new())),
            claimed => usize::try_from(claimed)
                .map_err(|_| IpcError::malformed(format!("a compressed buffer has {claimed} bytes")))?,
        };
        self.count(bytes.len(), claimed)?;
        let is_claimed = |size: Option<u64>| size.is_none_or(|size| size == claimed as u64);
        if codec == Codec::Zstd && !get_frame_content_size(bytes).is_ok_and(is_claimed) {
            return Err(wrong_length(claimed).into());
        }
        reserve(claimed)?;
        let mut out = Vec::new();
        out.try_reserve_exact(claimed).map_err(|_| IpcError::TooLarge { limit: self.limits.decompressed_bytes_max })?;
        match codec {
            Codec::Lz4 => lz4(bytes, claimed, &mut out)?,
            Codec::Zstd => self.zstd(bytes, &mut out)?,
        }
        if out.len() != claimed {
            return Err(wrong_length(claimed).into());
        }
        Ok(Buffer::from_vec(out))
    }

    fn count(&mut self, compressed: usize, claimed: usize) -> Result<(), IpcError> {
        self.compressed = self.compressed.saturating_add(compressed);
        self.decompressed = self.decompressed.saturating_add(claimed);
        let by_ratio = self.compressed.saturating_mul(self.limits.ratio_max).max(IpcLimits::FREE_BYTES);
        let limit = self.limits.decompressed_bytes_max.min(by_ratio);
        if self.decompressed > limit { Err(IpcError::TooLarge { limit }) } else { Ok(()) }
    }

    /// Fills at most the capacity of `out`.
    fn zstd(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), IpcError> {
        let broken = |error: std::io::Error| IpcError::malformed(format!("a zstd buffer is broken: {error}"));
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(bulk::Decompressor::new().map_err(broken)?),
        };
        zstd.decompress_to_buffer(bytes, out).map(drop).map_err(broken)
    }
}

/// Reads at most one byte more than was claimed.
fn lz4(bytes: &[u8], claimed: usize, out: &mut Vec<u8>) -> Result<(), IpcError> {
    let decoder = lz4_flex::frame::FrameDecoder::new(bytes);
    let read = decoder.take((claimed as u64).saturating_add(1)).read_to_end(out);
    read.map(drop).map_err(|error| IpcError::malformed(format!("an lz4 buffer is broken: {error}")))
}

fn wrong_length(claimed: usize) -> IpcError {
    IpcError::malformed(format!("a compressed buffer does not have the claimed length of {claimed} bytes"))
}
