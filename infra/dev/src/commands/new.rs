//! A new project on the engine, from the template in `infra/template`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use local::output;
use rust_embed::RustEmbed;

use crate::args::New;

/// The files of the template. `cargo generate` reads the same folder.
#[derive(RustEmbed)]
#[folder = "../template"]
struct Template;

/// The settings of `cargo generate`, which are not part of a project.
const SETTINGS: &str = "cargo-generate.toml";

/// The façade crate of the workspace that this program was built in.
const ONCEWARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/engine/onceward");

/// Creates the project, and prints the next commands.
pub(crate) fn run(args: &New) -> anyhow::Result<bool> {
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    create(&folder, args)?;
    output::block(&format!("created {}\n\ncd {}\nmake test", folder.display(), folder.display()))?;
    Ok(true)
}

fn create(folder: &Path, args: &New) -> anyhow::Result<()> {
    let is_free = !folder.exists() || fs::read_dir(folder)?.next().is_none();
    ensure!(is_free, "{} exists and is not empty; give another folder with --path", folder.display());
    let onceward = args.onceward.as_deref().unwrap_or_else(|| Path::new(ONCEWARD));
    let onceward =
        onceward.canonicalize().with_context(|| format!("reading the folder {}", onceward.display()))?;
    ensure!(
        onceward.join("Cargo.toml").is_file(),
        "{} is not the folder of a crate: it has no Cargo.toml",
        onceward.display()
    );
    let onceward = onceward.display().to_string();
    let store = args.store.to_possible_value().context("a hidden store cannot be an argument")?;
    for file in Template::iter().filter(|file| file.as_ref() != SETTINGS) {
        let content = Template::get(&file).with_context(|| format!("the template has no {file}"))?;
        let text = str::from_utf8(&content.data).with_context(|| format!("{file} is not text"))?;
        let text = text
            .replace("{{project-name}}", &args.name)
            .replace("{{crate_name}}", &args.name.replace('-', "_"))
            .replace("{{onceward}}", &onceward)
            .replace("{{store}}", store.get_name());
        let path = folder.join(file.as_ref());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
