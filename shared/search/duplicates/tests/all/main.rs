//! The table line by line, what holds for any two records, and groups.

mod groups;
mod lines;
mod properties;
mod records;
mod work;
