//! Archives: what goes in comes out, and nothing else gets in.

mod forge;
mod hostile;
mod round_trip;
mod trees;
