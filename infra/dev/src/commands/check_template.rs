//! Checks of the deployment's templates against the code that they deploy.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use dev::template::environments::{self, Environment};
use dev::template::{Source, Template, check, check_deployed};
use local::output;

use crate::args::CheckTemplate;

/// Checks the templates for each environment, and prints the findings.
pub(crate) fn run(args: &CheckTemplate) -> anyhow::Result<bool> {
    let read = |path| Source::read(&text(path)?).with_context(|| format!("reading {}", path.display()));
    let sources: Vec<Source> = args.templates.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let defined = |name: &String| {
        sources.iter().any(|source| source.defaults().any(|(parameter, _)| parameter == name))
    };
    let environments = if args.deployed { of_defaults() } else { environments(&args.config)? };
    let mut faults = 0;
    for (environment, Environment { mut values, limits }) in environments {
        values.extend(args.set.iter().cloned());
        for name in values.keys().filter(|name| !defined(name)) {
            faults += 1;
            output::line(&format!("{environment}: {name} is not a parameter of a template"))?;
        }
        let template = Template::of_all(&sources, &values, limits)?;
        let findings = if args.deployed { check_deployed(&template) } else { check(&template) };
        for finding in findings {
            faults += 1;
            output::line(&format!("{environment}: {finding}"))?;
        }
    }
    if faults == 0 {
        let names: Vec<String> = args.templates.iter().map(|path| path.display().to_string()).collect();
        output::line(&format!("{}: nothing is wrong", names.join(", ")))?;
    }
    Ok(faults == 0)
}

/// Returns the environments of a folder by their names.
fn environments(folder: &Path) -> anyhow::Result<BTreeMap<String, Environment>> {
    let Ok(files) = std::fs::read_dir(folder) else { return Ok(of_defaults()) };
    let mut found = BTreeMap::new();
    for file in files {
        let path = file.with_context(|| format!("reading {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let environment = environments::read(&text(&path)?);
            found.insert(name, environment.with_context(|| format!("reading {}", path.display()))?);
        }
    }
    Ok(if found.is_empty() { of_defaults() } else { found })
}

fn of_defaults() -> BTreeMap<String, Environment> {
    BTreeMap::from([("default".to_owned(), Environment::default())])
}

fn text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}
