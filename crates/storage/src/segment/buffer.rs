//! Memory for file bytes or decoded values, aligned for values of any width.

use crate::segment::format::ALIGNMENT;
use bytes::Bytes;
use std::borrow::Cow;

/// Zeroed bytes that start at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Vec<u128>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    #[must_use]
    pub fn zeroed(len: usize) -> AlignedBuffer {
        // Safe code cannot request an alignment above the 16 bytes of u128, so one more line is allocated.
        let memory = vec![0u128; (len + ALIGNMENT).div_ceil(16)];
        let start = memory.as_ptr().align_offset(ALIGNMENT) * 16;
        AlignedBuffer { memory, start, len }
    }

    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.memory)[self.start..self.start + self.len]
    }

    /// Converts the buffer to shared bytes.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.memory)[self.start..self.start + self.len]
    }
}

struct Owned<T>(Vec<T>);

impl<T: bytemuck::NoUninit> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Converts values to shared bytes without a copy.
#[must_use]
pub fn share<T: bytemuck::NoUninit + Send + 'static>(values: Vec<T>) -> Bytes {
    Bytes::from_owner(Owned(values))
}

/// Copies `bytes` to values; any alignment is allowed. Bytes past the last complete value are ignored.
#[must_use]
pub fn collect<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    let whole = values.len() * size_of::<T>();
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(&bytes[..whole]);
    values
}

/// Returns `bytes` as values, copied if they are not aligned. Bytes past the last complete value are ignored.
#[must_use]
pub fn values_in<T: bytemuck::Pod>(bytes: &[u8]) -> Cow<'_, [T]> {
    let whole = &bytes[..bytes.len() / size_of::<T>() * size_of::<T>()];
    bytemuck::try_cast_slice(whole).map_or_else(|_| Cow::Owned(collect(whole)), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_at_a_line() {
        for len in [0, 1, 15, 16, 63, 64, 65, 1000] {
            let mut buffer = AlignedBuffer::zeroed(len);
            assert_eq!(buffer.as_mut_slice().len(), len);
            let bytes = buffer.freeze();
            assert_eq!((bytes.as_ptr() as usize % ALIGNMENT, bytes.len()), (0, len));
        }
    }
}
