//! Which version this is, and which images belong to it.

use crate::environment::Environment;

/// The version, given at build time. Without one this is a development build.
pub(crate) const VERSION: &str = match option_env!("AGENT_SANDBOX_VERSION") {
    Some(version) => version,
    None => DEVELOPMENT,
};

const DEVELOPMENT: &str = "dev";

/// Where the release pipeline publishes the images, given at build time.
const REGISTRY: &str = match option_env!("AGENT_SANDBOX_REGISTRY") {
    Some(registry) => registry,
    None => "artifactapi.k8s.syd1.au.unkin.net/docker-internal",
};

/// The images of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Images {
    /// What the command runs in.
    pub(crate) sandbox: String,
    /// Router and forwarder.
    pub(crate) router: String,
}

impl Images {
    /// A development build runs the local images, a release those of its own version. The environment overrides both.
    pub(crate) fn of(environment: &Environment) -> Self {
        let named = |name| default_image(name, VERSION, REGISTRY);
        Self {
            sandbox: environment.image.clone().unwrap_or_else(|| named("agent-sandbox")),
            router: environment
                .router_image
                .clone()
                .unwrap_or_else(|| named("agent-sandbox-router")),
        }
    }
}

fn default_image(name: &str, version: &str, registry: &str) -> String {
    let from = if version == DEVELOPMENT { "localhost" } else { registry };
    format!("{from}/{name}:{version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_pin_their_own_images() {
        assert_eq!(
            default_image("agent-sandbox", "dev", "r.example/x"),
            "localhost/agent-sandbox:dev"
        );
        assert_eq!(
            default_image("agent-sandbox", "1.2.3", "r.example/x"),
            "r.example/x/agent-sandbox:1.2.3"
        );
    }
}
