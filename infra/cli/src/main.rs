//! `search-import`, the program for users and their scripts.
//!
//! - `args`: the command-line arguments;
//! - `import`, `resume`, `serve`: run the whole pipeline in this process; `upload`: sends files over HTTP;
//! - `watch`: waits for an import to end, with a progress bar for each file;
//! - `stdin`: a file from standard input; `interrupt`: Ctrl-C, and the command that resumes;
//! - `report`: the result of an import, as a table and as JSON;
//! - `searches`, `changes`, `show`, `studies`: print stored data; `find`: looks up an import by id or name;
//! - `reviews`: lists and changes reviews;
//! - `sources`, `flow_chart`: the sources of files, and the PRISMA counts;
//! - `duplicates`: lists duplicates and records decisions about them;
//! - `export`: writes studies for other programs;
//! - `quarantine`: exports the records not imported, to be corrected and imported;
//! - `repair`: reads failed files of an import again;
//! - `migrate`: creates the database indexes of the aws backend;
//! - `outbox`: effects that are not performed yet;
//! - `health`: the state of services and backlogs, and open problems;
//! - `manual`: shell completions and manual pages;
//! - `cancel`: cancels and deletes imports;
//! - `failures`: dead-lettered messages and exhausted outbox entries;
//! - `after_restore`: settles imports after a database restore;
//! - `fault_trials`: imports with injected faults, requested over the HTTP API;
//! - `consent`: asks before a deletion; `files`: files named on the command line; `damaged`: skipped studies;
//! - `disk`: a disk that rejects writes;
//! - `workspace`: a data directory, or the configured services;
//! - `table`, `humanize`: tables, and counts and times for readers.

mod after_restore;
mod args;
mod cancel;
mod changes;
mod check;
mod consent;
mod damaged;
mod disk;
mod duplicates;
mod export;
mod failures;
mod fault_trials;
mod files;
mod find;
mod flow_chart;
mod health;
mod humanize;
mod import;
mod interrupt;
mod manual;
#[cfg(feature = "services")]
mod migrate;
mod outbox;
mod page;
mod quarantine;
mod record_numbers;
mod repair;
mod report;
mod resume;
mod reviews;
mod searches;
mod serve;
mod show;
mod sources;
mod stdin;
mod studies;
mod table;
#[cfg(feature = "services")]
mod upload;
mod watch;
mod workspace;

use std::process::ExitCode;

use clap::Parser;
use local::output;
use messages::store::chain;
use mimalloc::MiMalloc;

use crate::args::{Args, Command};
use crate::interrupt::Interruption;

/// The exit code for wrong usage.
const MISUSED: u8 = 2;
/// The exit code for an import that did not complete, or a command that failed.
const FAILED: u8 = 1;

/// Parsing spends a quarter of its time on allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    telemetry::start(telemetry::LogFormat::Human);
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Requested help contains only our own text, so it needs no escaping.
        Err(help) if !help.use_stderr() => help.exit(),
        Err(error) => {
            error.render().to_string().lines().for_each(output::remark);
            return ExitCode::from(MISUSED);
        }
    };
    let incomplete = || "the incomplete file is deleted; repeat the command".to_owned();
    let done = match args.command {
        Command::Import(args) => import::run(args).await,
        Command::Resume(args) => resume::run(&args).await,
        Command::Serve(args) => serve::run(&args).await,
        #[cfg(feature = "services")]
        Command::Migrate(args) => migrate::run(&args).await,
        Command::AfterRestore(args) => after_restore::run(&args).await,
        Command::Check(args) => check::run(&args).await,
        Command::Outbox(args) => outbox::run(args.command).await,
        Command::Failures(args) => failures::run(args.command).await,
        Command::Repair(args) => repair::run(&args).await,
        Command::Cancel(args) => cancel::cancel(&args).await,
        Command::Delete(args) => cancel::delete(&args).await,
        Command::Health(args) => health::run(&args).await,
        Command::Searches(args) => searches::run(&args).await,
        Command::Changes(args) => changes::run(&args).await,
        Command::Reviews(args) => reviews::run(args.command).await,
        Command::Show(args) => show::run(&args).await,
        Command::Studies(args) => studies::run(&args).await,
        Command::Sources(args) => sources::run(&args).await,
        Command::Duplicates(args) => duplicates::run(&args).await,
        Command::Decide(args) => duplicates::decide(&args).await,
        Command::Prisma(args) => sources::prisma(&args).await,
        Command::Export(args) => interrupt::unless_interrupted(export::run(&args), incomplete).await,
        Command::Quarantine(args) => interrupt::unless_interrupted(quarantine::run(&args), incomplete).await,
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            let why = chain(error.as_ref());
            if messages::store::is_refused_by_disk(error.as_ref()) {
                output::complain(&format!("{why}; free some space on the disk, then repeat the command"));
            } else {
                output::complain(&why);
            }
            if error.is::<Interruption>() {
                // Do not wait for operations in flight. The next start repeats them.
                std::process::exit(interrupt::CODE);
            }
            ExitCode::from(if error.is::<stdin::Misuse>() { MISUSED } else { FAILED })
        }
    }
}
