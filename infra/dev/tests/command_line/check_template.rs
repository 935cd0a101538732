//! The output and the exit code of `check-template`. The checks have their own tests.

use crate::program::Program;

const SHIPPED: &str = include_str!("../../../../template.yaml");

#[test]
fn finding_names_environment_and_resource() {
    let program = Program::new();
    let text = SHIPPED.replacen("maxReceiveCount: 20", "maxReceiveCount: 1", 1);
    let template = program.file("template.yaml", text.as_bytes());
    let run = program.run(&["check-template", template.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stdout.starts_with("default: UploadsQueue: gives a message up after 1 deliveries"),
        "{}",
        run.stdout
    );
    let good = program.file("good.yaml", SHIPPED.as_bytes());
    let run = program.run(&["check-template", good.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.contains("nothing is wrong")), (Some(0), true), "{}", run.stdout);
}

#[test]
fn environments_are_checked_and_set_known_parameters() {
    let program = Program::new();
    let template = program.file("template.yaml", SHIPPED.as_bytes());
    program.file(
        "samconfig.toml",
        b"[huge.deploy.parameters]\nparameter_overrides = 'SagaConcurrency=900 Colour=red'\n",
    );
    let run = program.run(&["check-template", template.to_str().unwrap()]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("huge: Colour is not a parameter"), "{}", run.stdout);
    assert!(run.stdout.contains("huge: MongoConnectionLimit: is 1500"), "{}", run.stdout);
}

#[test]
fn what_is_no_template_is_refused() {
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
