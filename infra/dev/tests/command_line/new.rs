//! A project from the template.

use std::fs;
use std::path::Path;

use crate::program::Program;

/// The façade crate of this workspace.
fn onceward() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/engine/onceward").display().to_string()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn project_has_every_file_and_no_placeholder() {
    let program = Program::new();
    let folder = program.folder().join("web-shop");
    let run = program.run(&["new", "web-shop", "--path", text(&folder), "--onceward", &onceward()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let files = [
        "Cargo.toml",
        "Makefile",
        "README.md",
        "src/lib.rs",
        "src/main.rs",
        "src/http.rs",
        "src/lambda.rs",
        "src/tools.rs",
        "tests/simulation.rs",
    ];
    for file in files {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(!text.contains("{{"), "{file} has a placeholder");
    }
    assert!(!folder.join("cargo-generate.toml").exists());
    assert!(fs::read_to_string(folder.join("src/lib.rs")).unwrap().contains(r#"of "web-shop" to SAGA"#));
}

#[test]
fn project_has_its_database() {
    for (args, store) in [(&[][..], "mongodb"), (&["--store", "dynamodb"], "dynamodb")] {
        let program = Program::new();
        let folder = program.folder().join("web-shop");
        let run = program.run(&[&["new", "web-shop", "--path", text(&folder)], args].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let makefile = fs::read_to_string(folder.join("Makefile")).unwrap();
        assert!(makefile.contains(&format!("STORE := {store}\n")), "{makefile}");
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("\"onceward/env-{store}\"")), "{manifest}");
    }
}

#[test]
fn existing_project_is_kept() {
    let program = Program::new();
    let folder = program.folder().join("shop");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes"), "mine").unwrap();
    let run = program.run(&["new", "shop", "--path", text(&folder)]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.contains("shop exists and is not empty; give another folder with --path"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn folder_without_crate_is_refused() {
    let program = Program::new();
    let folder = program.folder().join("shop");
    let run = program.run(&["new", "shop", "--path", text(&folder), "--onceward", text(program.folder())]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("it has no Cargo.toml"), "{}", run.stderr);
    assert!(!folder.exists());
}

#[test]
fn name_fits_cargo_and_the_services() {
    let program = Program::new();
    let folder = program.folder().join("project");
    let dependencies = include_str!("../../../template/Cargo.toml").split("dependencies]").skip(1);
    let dependencies = dependencies
        .filter_map(|rest| rest.split("\n[").next())
        .flat_map(str::lines)
        .filter_map(|line| line.split_once(" = "));
    let facade = include_str!("../../../../shared/engine/onceward/Cargo.toml");
    let crates = facade.split("\n[").find_map(|part| part.strip_prefix("dependencies]")).unwrap().lines();
    let crates =
        crates.filter_map(|line| line.split_once(" = { workspace").or(line.split_once(".workspace")));
    let names = dependencies.chain(crates).map(|(name, _)| name.replace('_', "-"));
    let others = ["", "Shop", "2shop", "shop-", "shop_a", "../shop", "type", "std", &"s".repeat(41)];
    for refused in names.chain(others.map(str::to_owned)) {
        let refused = refused.as_str();
        let run = program.run(&["new", refused, "--path", text(&folder)]);
        assert_eq!(run.code, Some(2), "{refused}: {}", run.stderr);
        assert!(!folder.exists(), "{refused}");
    }
    let run = program.run(&["new", "web-shop2", "--path", text(&folder)]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
