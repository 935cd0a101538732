//! The table line by line, properties of arbitrary records, and groups.

mod faults;
mod groups;
mod lines;
mod properties;
mod records;
mod work;
