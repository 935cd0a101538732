//! The page, which `make page` builds (`infra/page`) and this program embeds.

use std::borrow::Cow;

use local::http::PageFile;
use rust_embed::RustEmbed;

const INDEX: &str = "index.html";
/// The page of a program that was built without it. `build.rs` rejects this for release builds.
const NOTE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Search import</title>\
    <h1>The page is not built</h1><p>This program was built without its page. Run <code>make page</code> and build the \
    program again, or <code>make serve</code>, which does both. The HTTP API is available: \
    <a href=\"openapi.json\">its description</a>.</html>\n";

#[derive(RustEmbed)]
#[folder = "../page/dist"]
struct PageAssets;

pub(crate) fn files() -> Vec<PageFile> {
    if PageAssets::get(INDEX).is_none() {
        let note = Cow::Borrowed(NOTE.as_bytes());
        return vec![PageFile { path: INDEX.into(), bytes: note, is_gzip: false, tag: "note".into() }];
    }
    // Skip `.gitkeep`, which keeps the folder in the repository.
    let built = PageAssets::iter().filter(|path| !path.starts_with('.'));
    let files = built.filter_map(|path| Some((PageAssets::get(&path)?, path)));
    let files = files.map(|(file, path)| PageFile {
        path: path.strip_suffix(".gz").unwrap_or(&path).to_owned(),
        is_gzip: path.ends_with(".gz"),
        tag: file.metadata.sha256_hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect(),
        bytes: file.data,
    });
    files.collect()
}
