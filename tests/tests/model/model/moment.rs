use std::fmt;

/// A point in time that a verb has made, such as the end of a lease.
///
/// Two moments with one time on the model's clock are apart on a real one: there, what an earlier verb made comes before
/// what a later one made. The order of the fields says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// On the model's clock.
    pub(crate) at: i64,
    /// Of the verb that made it.
    pub(crate) step: u32,
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms (step {})", self.at, self.step)
    }
}
