use bytes::Bytes;
use serde::Serialize;

use super::error::JobError;

/// What a successful run leaves behind: its result, encoded, if it has one.
///
/// # Examples
///
/// ```
/// use emq::Completion;
///
/// assert!(Completion::empty().result().is_none());
/// assert_eq!(Completion::of(&7).unwrap().result().unwrap(), &b"7"[..]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    result: Option<Bytes>,
}

impl Completion {
    /// A success without a result.
    ///
    /// ```
    /// assert_eq!(emq::Completion::empty(), emq::Completion::default());
    /// ```
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A success with `value` as its result. A value that is `null` in JSON, as `()` and `None` are, takes no room and
    /// is kept as no result.
    ///
    /// # Errors
    ///
    /// A permanent [`JobError`] if the value can't be encoded as JSON.
    ///
    /// ```
    /// assert!(emq::Completion::of(&()).unwrap().result().is_none());
    /// ```
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, JobError> {
        let encoded = serde_json::to_vec(value).map_err(|error| {
            JobError::permanent(format!("the job ran, but its result can't be encoded as JSON: {error}"))
        })?;
        let result = (encoded != b"null").then(|| encoded.into());
        Ok(Self { result })
    }

    /// The encoded result.
    ///
    /// ```
    /// let completion = emq::Completion::of("done").unwrap();
    /// assert_eq!(completion.result().unwrap(), &b"\"done\""[..]);
    /// ```
    #[must_use]
    pub fn result(&self) -> Option<&Bytes> {
        self.result.as_ref()
    }

    /// The encoded result, taken out.
    ///
    /// ```
    /// assert_eq!(emq::Completion::empty().into_result(), None);
    /// ```
    #[must_use]
    pub fn into_result(self) -> Option<Bytes> {
        self.result
    }
}

/// What a job function may return: `()`, or `Result<T, E>` with a result that can be stored and an error that converts
/// into [`JobError`].
///
/// # Examples
///
/// ```
/// use emq::IntoOutcome;
///
/// assert!(().into_outcome().is_ok());
/// assert!(Err::<(), _>(std::io::Error::other("reset")).into_outcome().is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "a job returns `()` or `Result<T, E>`, where `T` implements `Serialize` and `E` converts into `JobError`",
    label = "a job can't return this",
    note = "every error type converts into `JobError`; to return text as an error, use `JobError::new(\"…\")`"
)]
pub trait IntoOutcome {
    /// Converts what the function returned.
    ///
    /// # Errors
    ///
    /// The function's own error, or a permanent one if the result can't be encoded.
    fn into_outcome(self) -> Result<Completion, JobError>;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Result<Completion, JobError> {
        Ok(Completion::empty())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize, E: Into<JobError>> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Result<Completion, JobError> {
        Completion::of(&self.map_err(Into::into)?)
    }
}
