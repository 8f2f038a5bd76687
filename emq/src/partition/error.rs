use crate::store::CallError;

/// Why a limit of a partitioned queue wasn't set.
///
/// # Examples
///
/// ```
/// fn is_too_low(error: &emq::LimitError) -> bool {
///     matches!(error, emq::LimitError::TooLow { .. })
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// Some partition would be left without a share, and its jobs would never run.
    #[error(
        "a limit of {limit} can't be shared by {partitions} partitions: each needs 1 at least; set 0 to let nothing \
         start, or limit a lane, which is whole in one partition"
    )]
    TooLow {
        /// The limit.
        limit: u32,
        /// How many partitions the queue ever had.
        partitions: u32,
    },
    /// The server didn't carry it out in all partitions, or didn't say so.
    #[error(transparent)]
    Call(#[from] CallError),
}
