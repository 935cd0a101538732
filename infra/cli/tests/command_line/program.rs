//! Running the binary in a temporary folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The binary, with its own data directory.
pub(crate) struct Program {
    dir: TempDir,
    env: Vec<(String, String)>,
    /// Environment variables of this process that the program must not inherit.
    without: Vec<String>,
}

/// The result of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), env: Vec::new(), without: Vec::new() }
    }

    pub(crate) fn setting(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    #[cfg(feature = "services")]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.without.push(name.to_owned());
        self
    }

    /// Creates a file in the program's folder.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_search-import"));
        command.args(args).env("SEARCH_IMPORT_DATA_DIR", self.data()).env_remove("RUST_LOG");
        for name in &self.without {
            command.env_remove(name);
        }
        command.envs(self.env.iter().cloned()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    /// Runs the program with this standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Run {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that rejects its input does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(input);
        Run::of(child.wait_with_output().unwrap())
    }

    /// Starts the program without waiting for its end. The output of the program goes into a file.
    pub(crate) fn start_logging(&self, args: &[&str], log: &Path) -> Child {
        let log = std::fs::File::create(log).unwrap();
        self.command(args).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// Starts the program without waiting for its end.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts the program with this standard input, which ends after all of it was read.
    pub(crate) fn start_with_input(&self, args: &[&str], input: Vec<u8>) -> Child {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::spawn(move || stdin.write_all(&input));
        child
    }

    /// Starts the program with this on standard input, which stays open until the caller closes it.
    pub(crate) fn start_with_open_input(&self, args: &[&str], input: &[u8]) -> Child {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input).unwrap();
        child
    }

    /// Starts the program with a limit on the size of its files. Writes beyond it fail as on a full disk, until the
    /// limit is raised.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_with_space(&self, args: &[&str], bytes: u64) -> Child {
        let unlimited = self.command(args);
        let mut command = Command::new("sh");
        // A process that ignores the signal gets an error instead.
        command.args(["-c", "trap '' XFSZ && exec \"$@\"", "sh", "prlimit", &format!("--fsize={bytes}:")]);
        command.arg(unlimited.get_program()).args(unlimited.get_args());
        command
            .env_remove("RUST_LOG")
            .envs(unlimited.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the program as a user other than root, so that file permissions apply.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_by_permission(&self, args: &[&str]) -> Run {
        use std::os::unix::fs::MetadataExt;

        let free = self.command(args);
        let is_root = std::fs::metadata(self.folder()).unwrap().uid() == 0;
        let bound: &[&str] =
            if is_root { &["setpriv", "--bounding-set=-dac_override,-dac_read_search"] } else { &["env"] };
        let mut command = Command::new(bound[0]);
        command.args(&bound[1..]).arg(free.get_program()).args(free.get_args()).env_remove("RUST_LOG");
        command.envs(free.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Run::of(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Runs a shell script that may mount file systems, which are unmounted at its end. `$PROGRAM` is the binary.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_in_namespace(&self, script: &str) -> Run {
        let inner = self.command(&[]);
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]).env_remove("RUST_LOG");
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PROGRAM", inner.get_program());
        Run::of(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Runs the program at a terminal of 80 columns. The output of the program becomes standard output.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_at_terminal(&self, args: &[&str]) -> Run {
        let inner = self.command(args);
        let words = std::iter::once(inner.get_program()).chain(inner.get_args());
        let quoted = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect::<Vec<_>>().join(" ");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &format!("stty cols 80; {quoted}"), "/dev/null"]);
        command.env_remove("RUST_LOG");
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Run::of(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Imports files with additional arguments. Returns the report.
    pub(crate) fn import(&self, files: &[PathBuf], more: &[&str]) -> (Value, Run) {
        let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
        let run = self.run(&[&["import", "--json"], files.as_slice(), more].concat());
        (run.json(), run)
    }
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the only object on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Returns the objects on standard output, one per line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Returns the path of a bundled sample.
pub(crate) fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/samples").join(name)
}
