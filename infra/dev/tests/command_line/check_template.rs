//! The output and the exit code of `check-template`. The checks have their own tests.

use crate::program::Program;

const SHIPPED: &str = include_str!("../../../../template.yaml");
const MONITORING: &str = include_str!("../../../../infra/templates/monitoring.yaml");

/// Runs the check of an application and its monitoring, in an environment with this text.
fn check(program: &Program, application: &str, environment: &str) -> crate::program::Run {
    let template = program.file("template.yaml", application.as_bytes());
    let monitoring = program.file("monitoring.yaml", MONITORING.as_bytes());
    let config = program.folder().join("config");
    std::fs::create_dir_all(&config).unwrap();
    program.file("config/small.toml", environment.as_bytes());
    let [template, monitoring, config] = [&template, &monitoring, &config].map(|path| path.to_str().unwrap());
    program.run(&["check-template", template, monitoring, "--config", config])
}

#[test]
fn finding_names_environment_and_resource() {
    let program = Program::new();
    let faulty = SHIPPED.replacen("maxReceiveCount: 20", "maxReceiveCount: 1", 1);
    let small = "[limits]\naccount_concurrency = 10\n";
    let run = check(&program, &faulty, small);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stdout.starts_with("small: UploadsQueue: gives a message up after 1 deliveries"),
        "{}",
        run.stdout
    );
    let run = check(&program, SHIPPED, small);
    assert_eq!((run.code, run.stdout.contains("nothing is wrong")), (Some(0), true), "{}", run.stdout);
}

#[test]
fn environments_are_checked_and_set_known_parameters() {
    let program = Program::new();
    let huge = "[parameters]\nSagaConcurrency = 900\nAgeAlarmSeconds = 60\nColour = 'red'\n";
    let run = check(&program, SHIPPED, huge);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("small: Colour is not a parameter"), "{}", run.stdout);
    assert!(run.stdout.contains("small: mongodb_connections: is 1500"), "{}", run.stdout);
    assert!(!run.stdout.contains("AgeAlarmSeconds"), "{}", run.stdout);
    let odd = check(&program, SHIPPED, "[parameter]\nColour = 'red'\n");
    assert!(odd.stderr.contains("small.toml"), "{}", odd.stderr);
}

#[test]
fn other_documents_are_refused() {
    let program = Program::new();
    for (content, reason) in [("a: [1", "not YAML"), ("a: 1", "no Resources")] {
        let path = program.file("odd.yaml", content.as_bytes());
        let run = program.run(&["check-template", path.to_str().unwrap()]);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains(reason) && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
    let run = program.run(&["check-template", "nowhere/template.yaml"]);
    assert_eq!((run.code, run.stderr.contains("nowhere/template.yaml")), (Some(1), true), "{}", run.stderr);
}
