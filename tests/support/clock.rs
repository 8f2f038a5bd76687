//! A clock that a test can move, for a server that is started with it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;

const SOURCE: &str = include_str!("clock.c");

/// The clock of a server, given to [`Builder::clock`](crate::server::Builder::clock).
///
/// It can be moved on Linux, where there is a C compiler, and by a server that is linked to
/// the system's C library.
#[derive(Debug)]
pub struct Clock {
    folder: TempDir,
    off_by: AtomicI64,
}

impl Clock {
    /// Returns a clock that goes right; nothing where a clock can't be moved.
    ///
    /// # Panics
    ///
    /// If the compiler refuses, or there is no room for a file.
    pub fn new() -> Option<Self> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("emq-clock-").tempdir().expect("a temporary folder");
        let source = folder.path().join("clock.c");
        fs::write(&source, SOURCE).expect("room for a file");
        let clock = Self { folder, off_by: AtomicI64::new(0) };
        fs::write(clock.file(), 0_i64.to_ne_bytes()).expect("room for a file");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(clock.library()).arg(source);
        match compiler.status() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            status => {
                let status = status.expect("the compiler starts");
                assert!(status.success(), "the compiler: {status}");
                Some(clock)
            }
        }
    }

    /// Moves the clock by so many seconds, on or back.
    ///
    /// # Panics
    ///
    /// If the file that tells the server is gone.
    pub fn jump(&self, seconds: i64) {
        let off_by = self.off_by.fetch_add(seconds, Ordering::SeqCst) + seconds;
        // In one write and without cutting the file off: the server has it in its memory.
        let file = File::options().write(true).open(self.file()).expect("the clock's file");
        file.write_all_at(&off_by.to_ne_bytes(), 0).expect("the clock's file can be written");
    }

    /// What a server needs in its environment.
    pub(crate) fn envs(&self) -> [(String, String); 2] {
        let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        [("LD_PRELOAD".to_owned(), text(&self.library())), ("EMQ_CLOCK".to_owned(), text(&self.file()))]
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("clock.so")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("off-by")
    }
}
