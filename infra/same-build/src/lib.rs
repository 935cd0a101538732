//! This crate contains only dependencies.
//!
//! Cargo compiles a crate once for each set of its features, and a build of one package has fewer features than a build
//! of the workspace. `cargo lambda watch` builds the functions alone. The functions' feature `embedded`, which no
//! deployment has, depends on this crate, so that such a build takes what `make test` has compiled.
//!
//! The feature `project` is for a project of `dev new` outside of the workspace, which the tests build with the target
//! folder of the workspace. No external dependency is then compiled again.
