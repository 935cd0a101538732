//! Tests on real servers that take minutes, for `make prove`.

mod outage;
mod replica_set;
