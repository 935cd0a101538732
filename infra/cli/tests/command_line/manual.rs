//! Shell completions and manual pages.

use crate::program::Program;

const COMMANDS: [&str; 4] = ["import", "searches", "outbox", "completions"];

#[test]
fn completions_name_the_commands() {
    let program = Program::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = program.run(&["completions", shell]);
        assert_eq!(run.code, Some(0), "{shell}: {}", run.stderr);
        assert!(COMMANDS.iter().all(|command| run.stdout.contains(command)), "{shell}");
    }
    assert_eq!(program.run(&["completions", "cobol"]).code, Some(2));
}

#[test]
fn man_writes_a_page_per_command() {
    let program = Program::new();
    let page = program.run(&["man"]).stdout;
    assert!(page.contains(".TH search-import 1") && page.contains("import\\-searches(1)"), "{page}");
    let out = program.folder().join("pages");
    let run = program.run(&["man", "--out", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for page in ["search-import.1", "search-import-import.1", "search-import-outbox-requeue.1"] {
        assert!(std::fs::read_to_string(out.join(page)).unwrap().contains(".SH OPTIONS"), "{page}");
    }
}
