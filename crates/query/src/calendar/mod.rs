//! Time as calendars and clocks have it: strides, time zones, buckets, intervals.
//!
//! In: timestamps as counts of a unit since 1970, UTC. Nothing here asks the time: what "now" is comes as an argument.
//!
//! Reading order: [`stride`] lengths such as `5m`; [`zone`] offsets from UTC; [`civil`] calendar fields of a timestamp;
//! [`buckets`] the time slice of a timestamp; [`interval`] the texts after `IN`.

mod abbreviations;
pub(crate) mod buckets;
pub(crate) mod civil;
pub(crate) mod interval;
pub(crate) mod stride;
pub(crate) mod zone;

pub(crate) use buckets::Buckets;
pub(crate) use civil::{Civil, week_of};
pub(crate) use stride::{Stride, Unit};
pub(crate) use zone::Zone;
