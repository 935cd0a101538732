//! Tables: the meaning of their columns, and the cells of their rows.

pub(crate) mod cells;
pub(crate) mod header;
pub(crate) mod joined;
