//! `chart`: throughput over concurrency beside the peers, as `docs/performance.svg`.

use std::{
    fmt::{self, Write as _},
    fs,
};

use emq::BoxError;

use crate::{
    meter::Sample,
    number::shown,
    peers::{self, Peer, Task},
    process::{self, CONCURRENCIES},
    settings::Settings,
    trial::{Measured, Trial, compared, in_turn},
};

const FILE: &str = "docs/performance.svg";

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let mut names = Vec::new();
    let mut trials = Vec::new();
    for (concurrency, jobs) in CONCURRENCIES {
        names.push(("emq", concurrency));
        trials.push(process::one(settings, concurrency, jobs));
    }
    for peer in Peer::present() {
        for (concurrency, _) in CONCURRENCIES {
            names.push((name(peer), concurrency));
            let jobs = settings.jobs(peer.jobs(concurrency));
            trials.push(peers::trial(settings, peer, Task::Process, concurrency, jobs));
        }
    }
    let measured = measure(settings, &trials).await;
    let mut lines: Vec<Line> = Vec::new();
    for ((name, concurrency), measured) in names.into_iter().zip(&measured) {
        let point = (concurrency as f64, measured.median(Sample::per_second));
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name: name.to_owned(), points: vec![point] }),
        }
    }
    let svg = Chart { title: "No-op jobs processed per second, by concurrency".into(), lines }.to_string();
    if settings.quick {
        println!("A smoke test leaves {FILE} as it is.");
    } else {
        fs::write(FILE, svg)?;
        println!("Written to {FILE}.");
    }
    Ok(())
}

async fn measure(settings: &Settings, trials: &[Trial<'_>]) -> Vec<Measured> {
    let measured = in_turn(settings, trials).await;
    println!("{}", compared(&measured));
    measured
}

fn name(peer: Peer) -> &'static str {
    match peer {
        Peer::Apalis => "apalis-redis, no locks",
        Peer::ApalisLocked => "apalis-redis, locks",
        Peer::BullmqRust => "bullmq-official (Rust)",
        Peer::Bullmq => "BullMQ (Node)",
    }
}

/// A line of the chart, with its points from left to right; one that isn't a number is left out.
#[derive(Debug)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// A chart with a logarithmic axis to the right; displayed as an SVG.
#[derive(Debug)]
struct Chart {
    title: String,
    lines: Vec<Line>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 48.0;

/// Colours that can be told apart by those who see red and green alike (Okabe and Ito).
const COLOURS: [&str; 6] = ["#d55e00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#000000"];

impl Chart {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(|line| &line.points).copied().filter(|(_, y)| y.is_finite())
    }

    /// The decades of the axis to the right.
    fn decades(&self) -> (i32, i32) {
        let (least, most) =
            self.points().fold((f64::INFINITY, 1.0_f64), |(least, most), (x, _)| (least.min(x), most.max(x)));
        let least = if least.is_finite() { least.log10().floor() as i32 } else { 0 };
        (least, (most.log10().ceil() as i32).max(least + 1))
    }

    fn x(&self, value: f64) -> f64 {
        let (least, most) = self.decades();
        LEFT + (value.log10() - f64::from(least)) / f64::from(most - least) * (WIDTH - LEFT - RIGHT)
    }

    /// The distance of the lines across, and how many there are.
    fn steps(&self) -> (f64, u32) {
        let most = self.points().map(|(_, y)| y).fold(1.0, f64::max);
        let rough = most / 6.0;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * unit);
        (step, (most / step).ceil() as u32)
    }

    fn y(&self, value: f64) -> f64 {
        let (step, count) = self.steps();
        HEIGHT - BOTTOM - value / (step * f64::from(count)) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self) -> String {
        let mut svg = String::new();
        let (step, count) = self.steps();
        let right = WIDTH - RIGHT;
        for n in 0..=count {
            let value = f64::from(n) * step;
            let (y, text) = (self.y(value), shown(value));
            let text = if n == 0 { "0" } else { &text };
            let _ = writeln!(svg, r##"<path d="M{LEFT} {y:.1}H{right}" stroke="#ddd"/>"##);
            let _ = writeln!(svg, r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#, LEFT - 8.0, y + 4.0);
        }
        let (least, most) = self.decades();
        for decade in least..=most {
            let value = 10_f64.powi(decade);
            let (x, y) = (self.x(value), HEIGHT - BOTTOM);
            let _ = writeln!(svg, r##"<path d="M{x:.1} {y}v6" stroke="#888"/>"##);
            let text = if value < 1e3 { format!("{value}") } else { shown(value) };
            let _ = writeln!(svg, r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#, y + 20.0);
        }
        let middle = f64::midpoint(LEFT, right);
        let _ = writeln!(svg, r#"<text x="{middle}" y="{}" text-anchor="middle">concurrency</text>"#, HEIGHT - 8.0);
        svg
    }

    fn line(&self, n: usize, line: &Line) -> String {
        let mut svg = String::new();
        let colour = COLOURS[n % COLOURS.len()];
        let points: Vec<_> = line.points.iter().filter(|(_, y)| y.is_finite()).collect();
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{:.1},{:.1}", self.x(*x), self.y(*y))).collect();
        let path = path.join(" ");
        let _ = writeln!(svg, r#"<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>"#);
        for (x, y) in points {
            let (at_x, at_y) = (self.x(*x), self.y(*y));
            let _ = writeln!(
                svg,
                r#"<circle cx="{at_x:.1}" cy="{at_y:.1}" r="3.5" fill="{colour}"><title>{}: {} jobs/s, {x} at once</title></circle>"#,
                escaped(&line.name),
                shown(*y),
            );
        }
        let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 14.0 + 22.0 * n as f64);
        let _ = writeln!(svg, r#"<path d="M{x} {y}h18" stroke="{colour}" stroke-width="2.5"/>"#);
        let _ = writeln!(svg, r#"<text x="{}" y="{}">{}</text>"#, x + 24.0, y + 4.0, escaped(&line.name));
        svg
    }
}

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">"#
        )?;
        // Its own ground, so that it can be read on a dark page.
        writeln!(f, r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>"##)?;
        writeln!(f, r#"<text x="{LEFT}" y="24" font-size="15">{}</text>"#, escaped(&self.title))?;
        f.write_str(&self.axes())?;
        for (n, line) in self.lines.iter().enumerate() {
            f.write_str(&self.line(n, line))?;
        }
        writeln!(f, "</svg>")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let line = |name: &str, points: &[(f64, f64)]| Line { name: name.into(), points: points.to_vec() };
        Chart {
            title: "a < b".into(),
            lines: vec![
                line("one", &[(1.0, 5_000.0), (100.0, 88_000.0)]),
                line("two", &[(1.0, f64::NAN), (10_000.0, 9_000.0)]),
            ],
        }
    }

    #[test]
    fn all_points_are_inside_of_the_axes() {
        let chart = chart();
        assert_eq!((chart.decades(), chart.steps()), ((0, 4), (20_000.0, 5)));
        for (x, y) in chart.points() {
            assert!((LEFT..=WIDTH - RIGHT).contains(&chart.x(x)), "{x}");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&chart.y(y)), "{y}");
        }
        assert_eq!(chart.x(100.0), f64::midpoint(LEFT, WIDTH - RIGHT));
        assert_eq!((chart.y(0.0), chart.y(100_000.0)), (HEIGHT - BOTTOM, TOP));
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let svg = chart().to_string();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(!svg.contains("NaN"), "{svg}");
        assert!(svg.contains("a &lt; b"), "{svg}");
    }

    #[test]
    fn a_chart_of_nothing_can_be_drawn() {
        let svg = Chart { title: String::new(), lines: Vec::new() }.to_string();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
