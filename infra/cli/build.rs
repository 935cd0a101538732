//! Checks that the page is built, which this program embeds.

use std::path::Path;

const INDEX: &str = "../page/dist/index.html";

fn main() {
    println!("cargo::rerun-if-changed=../page/dist");
    // Without a built page, the program shows a placeholder, which a release must not contain.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && !Path::new(INDEX).is_file() {
        println!("cargo::error=the page is not built, and a release needs it: run `make page`");
    }
}
