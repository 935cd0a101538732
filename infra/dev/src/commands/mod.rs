//! The commands. Each command returns `true` on success.

pub(crate) mod bench;
pub(crate) mod check_template;
pub(crate) mod diagram;
pub(crate) mod new;
pub(crate) mod provision;
pub(crate) mod sample;
pub(crate) mod simulate;
