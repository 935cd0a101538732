//! `search-import`: the program that people and scripts use.
//!
//! - `args`: what can be asked for;
//! - `import`, `resume`, `serve`: run the whole pipeline in this process; `upload`: with files sent over HTTP;
//! - `watch`: waits for a search to end, with a bar for each file;
//! - `stdin`: a file from standard input; `interrupt`: Ctrl-C, and what to type then;
//! - `report`: what came of an import, as a table and as JSON;
//! - `searches`, `changes`, `show`, `studies`: look at what is stored; `find`: the search that is meant;
//! - `sources`, `flow_chart`: where the files come from, and what a review reports of that;
//! - `export`: writes studies for other programs;
//! - `quarantine`: exports the unreadable records, to be corrected and imported;
//! - `repair`: reads anew what of a search has failed;
//! - `migrate`: brings the database of the aws backend up to its indexes;
//! - `outbox`: effects that are not performed yet;
//! - `health`: what answers, what waits, and what to do something about;
//! - `manual`: completions for shells, and manual pages;
//! - `end`: cancels searches, and deletes them;
//! - `failures`: what was given up;
//! - `trials`: imports with faults that the HTTP API is asked for;
//! - `consent`: asks before something is deleted; `files`: what is written; `damaged`: what is skipped;
//! - `disk`: a disk that takes no more data;
//! - `workspace`: what is worked on;
//! - `table`, `words`: how it is put.

mod after_restore;
mod args;
mod changes;
mod consent;
mod damaged;
mod disk;
mod duplicates;
mod end;
mod export;
mod failures;
mod files;
mod find;
mod flow_chart;
mod health;
mod import;
mod interrupt;
mod manual;
#[cfg(feature = "services")]
mod migrate;
mod outbox;
mod page;
mod quarantine;
mod repair;
mod report;
mod resume;
mod searches;
mod serve;
mod show;
mod sources;
mod stdin;
mod studies;
mod table;
mod trials;
#[cfg(feature = "services")]
mod upload;
mod watch;
mod words;
mod workspace;

use std::process::ExitCode;

use clap::Parser;
use local::output;
use messages::store::chain;
use mimalloc::MiMalloc;

use crate::args::{Args, Command};
use crate::interrupt::Interrupted;

/// The exit code when the command is none.
const MISUSED: u8 = 2;
/// The exit code when the search did not complete, or the command failed.
const FAILED: u8 = 1;

/// A quarter of the work of reading is memory that is taken and given back.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    telemetry::start(telemetry::Audience::Person);
    let args = match Args::try_parse() {
        Ok(args) => args,
        // What was asked for has words of ours alone.
        Err(help) if !help.use_stderr() => help.exit(),
        Err(error) => {
            error.render().to_string().lines().for_each(output::remark);
            return ExitCode::from(MISUSED);
        }
    };
    let done = match args.command {
        Command::Import(args) => import::run(args).await,
        Command::Resume(args) => resume::run(&args).await,
        Command::Serve(args) => serve::run(&args).await,
        #[cfg(feature = "services")]
        Command::Migrate(args) => migrate::run(&args).await,
        Command::AfterRestore(args) => after_restore::run(&args).await,
        Command::Outbox(args) => outbox::run(args.command).await,
        Command::Failures(args) => failures::run(args.command).await,
        Command::Repair(args) => repair::run(&args).await,
        Command::Cancel(args) => end::cancel(&args).await,
        Command::Delete(args) => end::delete(&args).await,
        Command::Health(args) => health::run(&args).await,
        Command::Searches(args) => searches::run(&args).await,
        Command::Changes(args) => changes::run(&args).await,
        Command::Show(args) => show::run(&args).await,
        Command::Studies(args) => studies::run(&args).await,
        Command::Sources(args) => sources::run(&args).await,
        Command::Duplicates(args) => duplicates::run(&args).await,
        Command::Decide(args) => duplicates::decide(&args).await,
        Command::Prisma(args) => sources::prisma(&args).await,
        Command::Export(args) => export::run(&args).await,
        Command::Quarantine(args) => quarantine::run(&args).await,
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
            if error.is::<Interrupted>() {
                // What is still under way is not waited for: the next start repeats it.
                std::process::exit(interrupt::CODE);
            }
            ExitCode::from(if error.is::<stdin::Misuse>() { MISUSED } else { FAILED })
        }
    }
}
