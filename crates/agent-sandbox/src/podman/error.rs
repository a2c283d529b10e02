//! What a call to podman can come back with instead of an answer.

/// A call that failed, with podman's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// Podman answered, and said no.
    #[error("podman: {message}")]
    Refused { status: u16, message: String },
    /// The connection failed.
    #[error("podman's service does not answer: {0}")]
    Unreachable(String),
    /// Podman answered something else than was asked for.
    #[error("podman answered something unexpected: {0}")]
    Unexpected(String),
}

impl ApiError {
    /// Whether podman said that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether podman said that the thing is there already, or in use.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }
}

impl From<podman_api::Error> for ApiError {
    fn from(error: podman_api::Error) -> Self {
        use podman_api::Error as E;
        match error {
            E::Fault { code, message } => Self::Refused {
                status: code.as_u16(),
                message: without_echo(&message),
            },
            E::Error(inner) => Self::Unreachable(chain(&inner)),
            E::IO(inner) => Self::Unreachable(inner.to_string()),
            other => Self::Unexpected(other.to_string()),
        }
    }
}

/// The crate joins podman's message and its cause, with which the message already ends: say it once.
fn without_echo(text: &str) -> String {
    let cut = text.match_indices(": ").find_map(|(at, separator)| {
        let (message, cause) = (text.get(..at)?, text.get(at + separator.len()..)?);
        message.ends_with(cause).then_some(message)
    });
    cut.unwrap_or(text).trim().to_owned()
}

/// An error with its causes, since "error trying to connect" alone helps nobody.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_is_quoted_once() {
        for (given, want) in [
            ("no such image: no such image", "no such image"),
            (
                "localhost/x:dev: image not known: image not known",
                "localhost/x:dev: image not known",
            ),
            ("unable to find x: no such pod", "unable to find x: no such pod"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_echo(given), want);
        }
    }
}
