//! LATEST ON.

use super::{Parser, Result};
use crate::Keyword;
use crate::ast::LatestOn;
use Keyword as K;

impl Parser<'_> {
    /// Parses `LATEST ON timestamp PARTITION BY keys`, and the older `LATEST BY keys`.
    #[inline(never)]
    pub(super) fn latest_on(&mut self) -> Result<LatestOn> {
        let start = self.start();
        self.expect(K::Latest)?;
        let timestamp = if self.eat(K::On) {
            let timestamp = self.expr()?;
            self.expect_all(&[K::Partition, K::By])?;
            Some(timestamp)
        } else {
            self.expect(K::By)?;
            None
        };
        let keys = self.list(Self::expr)?;
        if self.keyword(0) == Some(K::Where) {
            let error = self.misplaced("LATEST ON comes after WHERE");
            let hint = "to filter the latest rows, put the query in parentheses: SELECT * FROM (…) WHERE";
            return Err(Box::new(error.with_hint(hint)));
        }
        Ok(LatestOn { timestamp, keys, span: self.since(start) })
    }
}
