//! A child process that ends when this process does, even if that one is killed.
//!
//! The child runs under a small shell that waits on a pipe from this process. When
//! the pipe closes, for whichever reason, the shell ends its own child by its process
//! id. A `static` is never dropped and a killed process drops nothing, so a guard in
//! this process alone would leave servers behind.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// `$1` is a folder to remove at the end (or empty), the rest is the command.
/// A second shell prints the process id before it becomes the command, so that the id
/// always comes before the command's own output. The traps are set after the start:
/// an ignored signal would be inherited.
const WRAPPER: &str = r#"
folder=$1; shift
sh -c 'echo "$$"; exec "$@"' sh "$@" </dev/null &
child=$!; alive=yes
trap '' HUP INT TERM
exec >/dev/null 2>&1
while read -r word; do
    case $word in
        keep) folder= ;;
        gone) alive= ;;
    esac
done
if [ -n "$alive" ]; then kill -KILL "$child"; fi
wait "$child"; status=$?
if [ -n "$folder" ]; then rm -rf -- "$folder"; fi
exit "$status"
"#;

/// What to run.
pub(crate) struct Spawn<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: Vec<OsString>,
    pub(crate) envs: Vec<(String, String)>,
    pub(crate) stderr: Stdio,
    /// Removed by the shell once the process has ended.
    pub(crate) folder: Option<&'a Path>,
}

/// A running child; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Guarded {
    wrapper: Child,
    pid: Pid,
    gone: Arc<AtomicBool>,
    status: Option<ExitStatus>,
}

impl Guarded {
    /// Starts the command; `on_line` gets each line it prints, and is dropped when its
    /// output ends, which is when the process has ended.
    pub(crate) fn spawn(spawn: Spawn<'_>, mut on_line: impl FnMut(String) + Send + 'static) -> io::Result<Self> {
        let mut wrapper = Command::new("sh")
            .args(["-c", WRAPPER, "sh"])
            .arg(spawn.folder.map_or(OsStr::new(""), Path::as_os_str))
            .arg(spawn.program)
            .args(spawn.args)
            .envs(spawn.envs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(spawn.stderr)
            .spawn()?;
        let stdout = wrapper.stdout.take().expect("stdout is piped");
        let mut stdout = BufReader::new(stdout);
        let pid = read_pid(&mut stdout)?;
        let gone = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&gone);
        thread::spawn(move || {
            for line in stdout.split(b'\n') {
                let Ok(line) = line else { break };
                on_line(String::from_utf8_lossy(&line).into_owned());
            }
            ended.store(true, Ordering::SeqCst);
        });
        Ok(Self { wrapper, pid, gone, status: None })
    }

    /// Returns the process id of the command itself.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal to the command itself.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.gone.load(Ordering::SeqCst) {
            return Err(io::Error::other("the process has ended"));
        }
        Ok(kill_process(self.pid, signal)?)
    }

    /// Stops the command without ending it. On Linux it does nothing more once this has
    /// returned; elsewhere there is no way to see when the signal has taken effect.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while cfg!(target_os = "linux") && !self.is_stopped()? {
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Looks at every thread: each stops by itself.
    fn is_stopped(&self) -> io::Result<bool> {
        for task in fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            let Ok(stat) = fs::read_to_string(task?.path().join("stat")) else {
                // A thread that ended meanwhile: the process was still running.
                return Ok(false);
            };
            // The name before it may contain anything, brackets too.
            let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
            if !state.is_some_and(|state| state.starts_with('T')) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Kills the command unless it has ended, and waits until it is gone. A command that
    /// was ended by a signal has the status of a shell: 128 and the signal's number.
    pub(crate) fn end(&mut self, keep_folder: bool) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if let Some(mut stdin) = self.wrapper.stdin.take() {
            let mut words = String::new();
            if keep_folder {
                words.push_str("keep\n");
            }
            if self.gone.load(Ordering::SeqCst) {
                words.push_str("gone\n");
            }
            stdin.write_all(words.as_bytes())?;
        }
        let status = self.wrapper.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Err(error) = self.end(false) {
            eprintln!("a child process may be left: {error}");
        }
    }
}

fn read_pid(stdout: &mut impl BufRead) -> io::Result<Pid> {
    let mut line = String::new();
    // A limit, so that something unexpected can't fill the memory.
    stdout.take(32).read_line(&mut line)?;
    line.trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other(format!("no process id but {line:?}")))
}
