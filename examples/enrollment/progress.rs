//! How far the run is: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

const BETWEEN_LINES: Duration = Duration::from_secs(3);

pub(crate) struct Progress {
    shown: Shown,
    total: u64,
}

enum Shown {
    Bar(ProgressBar),
    Lines { next: Instant },
}

impl Progress {
    pub(crate) fn new(total: u64) -> Self {
        let shown = if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:40.green} {pos}/{len} done, {msg} ({elapsed})");
            Shown::Bar(ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
        } else {
            Shown::Lines { next: Instant::now() + BETWEEN_LINES }
        };
        Self { shown, total }
    }

    pub(crate) fn show(&mut self, done: u64, message: String) {
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(message);
            }
            Shown::Lines { next } => {
                if Instant::now() >= *next {
                    println!("{done:>5} of {} done, {message}", self.total);
                    *next += BETWEEN_LINES;
                }
            }
        }
    }

    pub(crate) fn finish(self) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}
