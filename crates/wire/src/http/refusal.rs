//! What the client is told when a request is refused.

use std::fmt::Write as _;

use allowlist::{HostName, Refusal};

/// The status code of the answer to a refusal.
#[must_use]
pub const fn status(refusal: Refusal) -> u16 {
    match refusal {
        Refusal::HostChanged => 421,
        Refusal::HeadTooLarge => 431,
        Refusal::ConnectMethod => 405,
        Refusal::HeadTimeout => 408,
        Refusal::UnsupportedTransferEncoding => 501,
        Refusal::CleartextHttp2 => 505,
        Refusal::ResolveFailed
        | Refusal::NoAddress
        | Refusal::UpstreamUnreachable
        | Refusal::MalformedResponse
        | Refusal::RouterUnreachable => 502,
        Refusal::UpstreamTimeout => 504,
        Refusal::Overloaded => 503,
        Refusal::MalformedRequest
        | Refusal::HeadIncomplete
        | Refusal::MissingHost
        | Refusal::DuplicateHost
        | Refusal::InvalidHost
        | Refusal::InvalidName
        | Refusal::HostMismatch
        | Refusal::AmbiguousFraming => 400,
        // The policy's: names and ports off the list, IP literals, denied addresses, revoked entries.
        _ => 403,
    }
}

/// The complete answer to a refusal, to be written before the connection is closed. `host` is the only thing from
/// outside in it, and a [`HostName`] has no character that a terminal or a parser could misread. `head_method` says
/// that the request was a HEAD, whose answer has no body.
#[must_use]
pub fn refusal_response(refusal: Refusal, host: Option<&HostName>, head_method: bool) -> Vec<u8> {
    let body = text(refusal, host);
    let status = status(refusal);
    let mut answer = String::with_capacity(1024);
    // Writing to a String cannot fail.
    let _ = write!(
        answer,
        "HTTP/1.1 {status} {reason}\r\n\
         Connection: close\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\n\
         Cache-Control: no-store\r\n\
         X-Sandbox-Refusal: {code}\r\n",
        reason = reason(status),
        length = body.len(),
        code = refusal.code(),
    );
    if status == 405 {
        // RFC 9110 section 15.5.6 asks for it.
        answer.push_str("Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
    }
    answer.push_str("\r\n");
    if !head_method {
        answer.push_str(&body);
    }
    answer.into_bytes()
}

const fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// What happened, to what, why, and what to do.
fn text(refusal: Refusal, host: Option<&HostName>) -> String {
    let subject = host.map_or_else(|| "This request".to_owned(), |host| format!("The request to {host}"));
    let code = refusal.code();
    let (why, advice) = explain(refusal);
    let mut text = format!("{subject} was stopped by the agent-sandbox router ({code}).\n{why}\n{advice}\n");
    if let (Refusal::NameNotAllowed, Some(host)) = (refusal, host) {
        let _ = write!(text, "\n    {host}\n");
    }
    text
}

/// Why, and what to do.
const fn explain(refusal: Refusal) -> (&'static str, &'static str) {
    const RETRY: &str = "The host is on the sandbox's allowlist: this is not a matter of policy. Try again later.";
    const CLIENT: &str = "The sandbox's allowlist works by host names, so the router passes on only requests that every \
                          server reads alike. Send the request with a current HTTP/1.1 client.";
    match refusal {
        Refusal::NameNotAllowed => (
            "No entry of the sandbox's allowlist covers this host.",
            "Trying again or going another way will not help. Whoever runs the sandbox can allow the host with a line \
             in the allowlist outside of it (allowed-hosts):",
        ),
        Refusal::PortNotAllowed => (
            "The sandbox's allowlist has this host, but not on port 80.",
            "Use https if the host has it. Whoever runs the sandbox can change the entry in the allowlist outside of it \
             (allowed-hosts).",
        ),
        Refusal::Revoked => (
            "The host was removed from the sandbox's allowlist.",
            "Trying again will not help. Whoever runs the sandbox can add the host again in the allowlist outside of \
             it (allowed-hosts).",
        ),
        Refusal::IpLiteral => (
            "The request names an IP address; the sandbox's allowlist has host names only.",
            "Use the name of the host, as it stands in the allowlist.",
        ),
        Refusal::AddressDenied => (
            "The host is on the sandbox's allowlist, but its name resolves to addresses that the sandbox must not \
             reach: loopback, link-local, cloud metadata or the router's own.",
            "Whoever runs the sandbox can open an exception with the router's --allow-address option.",
        ),
        Refusal::MissingHost => ("The request has no Host field.", CLIENT),
        Refusal::DuplicateHost => ("The request has more than one Host field.", CLIENT),
        Refusal::InvalidHost | Refusal::InvalidName => (
            "The Host field is not a host name, or has a port other than 80.",
            CLIENT,
        ),
        Refusal::HostMismatch => ("The request's target names another host than its Host field.", CLIENT),
        Refusal::HostChanged => (
            "The connection was opened for one host of the sandbox's allowlist, and this request is for another.",
            "Send it again on a connection of its own.",
        ),
        Refusal::AmbiguousFraming => (
            "The length of the request's body is not clear: its Content-Length, Transfer-Encoding or chunks are \
             contradictory or malformed.",
            CLIENT,
        ),
        Refusal::UnsupportedTransferEncoding => (
            "The request has a Transfer-Encoding other than exactly 'chunked' on HTTP/1.1.",
            CLIENT,
        ),
        Refusal::HeadTooLarge => (
            "The request's head is over 16 KiB or has over 100 fields.",
            "Send fewer or shorter fields (cookies, usually).",
        ),
        Refusal::ConnectMethod => (
            "CONNECT asks for a proxy, and the sandbox has none: hosts on its allowlist are reached directly.",
            "Unset the proxy settings (http_proxy, https_proxy, ALL_PROXY) and use the host's own URL.",
        ),
        Refusal::CleartextHttp2 => (
            "HTTP/2 without TLS is not passed on: the sandbox's allowlist is applied to every request, and the router \
             reads HTTP/1.1 only.",
            "Use https, or HTTP/1.1 (curl --http1.1; Java: HttpClient.Version.HTTP_1_1).",
        ),
        Refusal::HeadTimeout => ("The request's head did not arrive in time.", "Send the request again."),
        Refusal::HeadIncomplete => (
            "The connection ended within the request's head.",
            "Send the request again.",
        ),
        Refusal::ResolveFailed => ("The host's name could not be resolved.", RETRY),
        Refusal::NoAddress => ("The host's name has no address.", RETRY),
        Refusal::UpstreamUnreachable => ("No address of the host accepted a connection.", RETRY),
        Refusal::UpstreamTimeout => ("The host did not answer in time.", RETRY),
        Refusal::MalformedResponse => ("The host's answer is not HTTP/1, or does not say where it ends.", RETRY),
        Refusal::Overloaded => (
            "The sandbox's router is out of connections.",
            "Close some, then try again.",
        ),
        Refusal::RouterUnreachable => ("The sandbox's router does not answer.", "Try again later."),
        _ => ("It is not a request that RFC 9112 allows.", CLIENT),
    }
}
