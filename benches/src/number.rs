//! What is made of many measurements.

/// The middle value, or the mean of the middle two; NaN of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The smallest value that at least `share` (0 to 1) of the values don't exceed; NaN of none.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    // Without the subtraction 0.07 of 100 would be the 8th value: 0.07 has no exact representation.
    let rank = (share * values.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// A number as a reader wants it: three significant digits, and blanks between thousands.
pub(crate) fn shown(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let digits = match value.abs() {
        // Rounded to what is shown, so that 9.996 has no third digit more than 10.0 has.
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    match rest {
        Some(rest) => format!("{sign}{}.{rest}", grouped(whole)),
        None => format!("{sign}{}", grouped(whole)),
    }
}

/// A count as a reader wants it: blanks between thousands.
pub(crate) fn counted(count: u64) -> String {
    grouped(&count.to_string())
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) && digits.len() > 4 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_in_whichever_order() {
        assert_eq!(median([9.0, 1.0, 3.0]), 3.0);
        assert_eq!(median([4.0, 1.0, 2.0, 100.0]), 3.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), 50.0);
        assert_eq!(percentile(&values, 0.07), 7.0);
        assert_eq!(percentile(&values, 0.99), 99.0);
        assert_eq!(percentile(&values, 0.999), 100.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&[7.0], 0.999), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_number_is_shown_with_the_digits_that_mean_something() {
        assert_eq!(shown(1_234_567.8), "1 234 568");
        assert_eq!(shown(54_155.0), "54 155");
        assert_eq!(shown(4_712.4), "4712");
        assert_eq!(shown(99.96), "100");
        assert_eq!(shown(12.34), "12.3");
        assert_eq!(shown(9.996), "10.0");
        assert_eq!(shown(0.0512), "0.05");
        assert_eq!(shown(-1.5), "-1.50");
        assert_eq!(shown(f64::NAN), "–");
        assert_eq!([10, 1_000, 1_000_000].map(counted), ["10", "1000", "1 000 000"]);
    }
}
