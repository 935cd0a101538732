//! Checks of the deployment's template against the code that it deploys.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use dev::template::environments::{self, Values};
use dev::template::{Source, Template, check, check_deployed};
use local::output;

use crate::args::CheckTemplate;

/// Checks the template for each environment of the SAM configuration in its folder, and prints the findings.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(crate) fn run(args: &CheckTemplate) -> anyhow::Result<bool> {
    let source = Source::read(&text(&args.template)?)
        .with_context(|| format!("reading {}", args.template.display()))?;
    let environments = environments_beside(&args.template)?;
    let mut faults = 0;
    for (environment, mut values) in environments {
        values.extend(args.set.iter().cloned());
        let known = |name: &String| source.defaults().any(|(parameter, _)| parameter == name);
        for name in values.keys().filter(|name| !known(name)) {
            faults += 1;
            output::line(&format!("{environment}: {name} is not a parameter of the template"))?;
        }
        let template = Template::new(&source, &values);
        let findings = if args.deployed { check_deployed(&template) } else { check(&template) };
        for finding in findings {
            faults += 1;
            output::line(&format!("{environment}: {finding}"))?;
        }
    }
    if faults == 0 {
        output::line(&format!("{}: nothing is wrong with it", args.template.display()))?;
    }
    Ok(faults == 0)
}

/// Returns the environments of `samconfig.toml` in the template's folder, or the template's defaults if there is none.
fn environments_beside(template: &Path) -> anyhow::Result<BTreeMap<String, Values>> {
    let path = template.with_file_name("samconfig.toml");
    if path.exists() {
        environments::read(&text(&path)?).with_context(|| format!("reading {}", path.display()))
    } else {
        Ok(BTreeMap::from([("default".to_owned(), Values::new())]))
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}
