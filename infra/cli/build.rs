//! Looks whether the page is built that this program embeds.

use std::path::Path;

const INDEX: &str = "../page/dist/index.html";

fn main() {
    println!("cargo::rerun-if-changed=../page/dist");
    // A release is not shipped with a note in the place of its page.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && !Path::new(INDEX).is_file() {
        println!("cargo::error=the page is not built, and a release is not made without it: run `make page`");
    }
}
