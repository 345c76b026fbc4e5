//! Zones of many blocks, each column of the footer looked up once.

use super::Segment;
use super::format::Footer;
use crate::{Result, Zone};
use tidalite_types::ColumnId;

/// What the footer of a segment says of its blocks.
pub struct Zones<'a> {
    segment: &'a Segment,
    footer: Footer,
}

/// What it says of one column's.
pub struct ColumnZones<'a> {
    zones: &'a Zones<'a>,
    column: ColumnId,
    /// Where the footer has the column.
    index: Option<usize>,
}

impl Segment {
    /// For those who ask for more than one.
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
    /// As [`Segment::zone`].
    ///
    /// # Panics
    /// When there is no such block.
    pub fn block(&self, block: usize) -> Result<Option<Zone>> {
        let Some(index) = self.index else { return Ok(None) };
        let Zones { segment, footer } = self.zones;
        footer.zone(index, block).map(Some).map_err(|problem| segment.damaged(self.column, block, 0, &problem))
    }
}
