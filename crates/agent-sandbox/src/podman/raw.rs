//! JSON over podman's socket, for the calls that the `podman-api` crate (0.11.0) cannot make right. Each says why.

use std::path::PathBuf;

use hyper::{Body, Method, Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::error::{ApiError, chain};
use super::inspect::InspectedPod;
use super::spec::{ContainerSpec, PodSpec};

/// The oldest API this program speaks, and so the oldest podman it works with: keep-id with `uid=` and `gid=` came
/// with 4.3. Podman serves every version from 4.0.0 up to its own.
const VERSION: &str = "v4.3.1";

/// A connection to a container's standard streams.
pub(crate) struct Attached {
    /// Bytes in: standard input as it is. Bytes out: frames, or with a terminal the plain output.
    pub(crate) stream: UnixStream,
    /// Output that came together with podman's answer.
    pub(crate) early: Vec<u8>,
}

/// The socket.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) socket: PathBuf,
}

#[derive(serde::Deserialize)]
struct Created {
    #[serde(alias = "Id", alias = "ID")]
    id: String,
}

#[derive(serde::Deserialize)]
struct Fault {
    #[serde(default)]
    message: String,
    #[serde(default)]
    cause: String,
}

impl Raw {
    /// Asks for a sign of life without naming an API version, so that a podman that is too old can be told from one
    /// that does not answer. The crate's `ping` always names one.
    pub(super) async fn ping(&self) -> Result<String, ApiError> {
        let response = self
            .send(Method::GET, "/libpod/_ping".to_owned(), Body::empty())
            .await?;
        let version = response
            .headers()
            .get("Libpod-API-Version")
            .and_then(|value| value.to_str().ok());
        version
            .map(str::to_owned)
            .ok_or_else(|| ApiError::Unexpected("no Libpod-API-Version".to_owned()))
    }

    /// The crate's builder sends `no_new_privilages`, which podman does not know and so ignores (podman-api-rs #175),
    /// and has no `read_write_tmpfs` nor any way to give a container a static address.
    pub(super) async fn create_container(&self, spec: &ContainerSpec) -> Result<String, ApiError> {
        let created: Created = self.json(Method::POST, "containers/create", Some(spec)).await?;
        Ok(created.id)
    }

    /// The crate's builder knows only `cni_networks`, which podman 5 does not read any more.
    pub(super) async fn create_pod(&self, spec: &PodSpec) -> Result<String, ApiError> {
        let created: Created = self.json(Method::POST, "pods/create", Some(spec)).await?;
        Ok(created.id)
    }

    /// The crate's model takes `StopSignal` for a number; podman 5 sends a name (marhkb/pods #789).
    pub(super) async fn inspect_container<T: DeserializeOwned>(&self, id: &str) -> Result<T, ApiError> {
        self.json(Method::GET, &format!("containers/{id}/json"), None::<&()>)
            .await
    }

    /// As for containers: the model is podman 4.5's, and whole.
    pub(super) async fn inspect_pod(&self, id: &str) -> Result<InspectedPod, ApiError> {
        self.json(Method::GET, &format!("pods/{id}/json"), None::<&()>).await
    }

    /// The crate throws the exit code away. `interval` is how often podman looks where it has to look (250 ms if not
    /// given).
    pub(super) async fn wait(&self, id: &str) -> Result<i32, ApiError> {
        let path = format!("containers/{id}/wait?condition=stopped&condition=exited&interval=10ms");
        self.json(Method::POST, &path, None::<&()>).await
    }

    /// The crate's stream decoder panics on an unknown stream, allocates what a length field says, and its writer has
    /// no half-close, so that a command would never see the end of its input.
    ///
    /// An empty `detachKeys` means that there are none: Ctrl-P belongs to the program (podman #4208). Attaching to a
    /// container that was only created also prepares it, up to the point where its command would start.
    pub(super) async fn attach(&self, id: &str) -> Result<Attached, ApiError> {
        let path = format!(
            "/{VERSION}/libpod/containers/{id}/attach?stream=true&stdin=true&stdout=true&stderr=true&detachKeys="
        );
        let response = self.send(Method::POST, path, Body::empty()).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(ApiError::Unexpected(format!("{} to attach", response.status())));
        }
        let upgraded = hyper::upgrade::on(response)
            .await
            .map_err(|error| unreachable(&error))?;
        let parts = upgraded
            .downcast::<UnixStream>()
            .map_err(|_| ApiError::Unexpected("an upgraded connection of another kind".to_owned()))?;
        Ok(Attached {
            stream: parts.io,
            early: parts.read_buf.to_vec(),
        })
    }

    /// The crate refuses to resize a container that does not run yet, so that programs would see 80x24 first (podman
    /// #3946); `running=true` lifts that.
    pub(super) async fn resize(&self, id: &str, columns: u16, rows: u16) -> Result<(), ApiError> {
        let path = format!("/{VERSION}/libpod/containers/{id}/resize?w={columns}&h={rows}&running=true");
        self.send(Method::POST, path, Body::empty()).await.map(drop)
    }

    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ApiError> {
        let unexpected = |error: serde_json::Error| ApiError::Unexpected(format!("{path}: {error}"));
        let body = match body {
            Some(value) => Body::from(serde_json::to_vec(value).map_err(unexpected)?),
            None => Body::empty(),
        };
        let response = self.send(method, format!("/{VERSION}/libpod/{path}"), body).await?;
        let bytes = hyper::body::to_bytes(response.into_body())
            .await
            .map_err(|error| unreachable(&error))?;
        serde_json::from_slice(&bytes).map_err(unexpected)
    }

    async fn send(&self, method: Method, uri: String, body: Body) -> Result<Response<Body>, ApiError> {
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| unreachable(&error))?;
        let (mut sender, connection) = hyper::client::conn::handshake(stream)
            .await
            .map_err(|error| unreachable(&error))?;
        tokio::spawn(connection);
        let uri_is_attach = uri.contains("/attach?");
        let mut request = Request::builder().method(method).uri(uri).header("Host", "podman");
        request = request.header("Content-Type", "application/json");
        if uri_is_attach {
            // Podman hands the connection over with a 101 only when asked to.
            request = request.header("Connection", "Upgrade").header("Upgrade", "tcp");
        }
        let request = request
            .body(body)
            .map_err(|error| ApiError::Unexpected(error.to_string()))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| unreachable(&error))?;
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let bytes = hyper::body::to_bytes(response.into_body()).await.unwrap_or_default();
        let message = match serde_json::from_slice::<Fault>(&bytes) {
            Ok(Fault { message, .. }) if !message.is_empty() => message,
            Ok(Fault { cause, .. }) if !cause.is_empty() => cause,
            _ => format!("{status} {}", String::from_utf8_lossy(&bytes).trim()),
        };
        Err(ApiError::Refused {
            status: status.as_u16(),
            message,
        })
    }
}

fn unreachable(error: &dyn std::error::Error) -> ApiError {
    ApiError::Unreachable(chain(error))
}
