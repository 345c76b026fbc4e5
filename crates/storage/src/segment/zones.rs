//! Zones of many blocks, with one footer lookup per column.

use super::Segment;
use super::format::Footer;
use crate::{Result, Zone};
use tidalite_types::ColumnId;

/// The zones of a segment from its footer.
pub struct Zones<'a> {
    segment: &'a Segment,
    footer: Footer,
}

/// The zones of one column.
pub struct ColumnZones<'a> {
    zones: &'a Zones<'a>,
    column: ColumnId,
    /// Index of the column in the footer.
    index: Option<usize>,
}

impl Segment {
    /// Returns the zones, for callers that read more than one.
    pub fn zones(&self) -> Result<Zones<'_>> {
        Ok(Zones { segment: self, footer: self.footer()? })
    }
}

impl Zones<'_> {
    #[must_use]
    pub fn of(&self, column: ColumnId) -> ColumnZones<'_> {
        ColumnZones { zones: self, column, index: self.footer.find(column) }
    }
}

impl ColumnZones<'_> {
    /// Returns the zone of a block, like [`Segment::zone`].
    ///
    /// # Panics
    /// Panics if the block does not exist.
    pub fn block(&self, block: usize) -> Result<Option<Zone>> {
        let Some(index) = self.index else { return Ok(None) };
        let Zones { segment, footer } = self.zones;
        footer.zone(index, block).map(Some).map_err(|problem| segment.damaged(self.column, block, 0, &problem))
    }
}
