//! Every reason to refuse, in one place.

/// Why a request did not get through.
///
/// The [`code`](Self::code) is stable: the event log, the HTTP answer, the tests and users' scripts rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    // --- policy
    /// No entry of the allowlist covers the name.
    NameNotAllowed,
    /// The name is allowed, but not on this port.
    PortNotAllowed,
    /// What stands in the place of a name is not a host name.
    InvalidName,
    /// An IP address where a name belongs.
    IpLiteral,
    // --- TLS
    /// The first byte on port 443 is not a TLS handshake record.
    NotTls,
    /// An SSLv2 ClientHello.
    SslV2,
    /// A ClientHello without a server_name extension.
    MissingSni,
    /// A server_name extension without a name in it.
    EmptySni,
    /// Two server_name extensions, or two names in one.
    DuplicateSni,
    /// A server_name list that breaks RFC 6066 section 3.
    MalformedSni,
    /// A trailing dot in the server_name (RFC 6066 section 3 forbids it).
    SniTrailingDot,
    /// A handshake message that is not a well-formed ClientHello.
    MalformedHello,
    /// A record of another type between the records of a ClientHello.
    InterleavedRecord,
    /// A record longer than RFC 8446 section 5.1 allows.
    RecordOverflow,
    /// A ClientHello over 64 KiB.
    HelloTooLarge,
    // --- HTTP
    /// Not a request that RFC 9112 allows.
    MalformedRequest,
    /// A request head over 16 KiB or with over 100 fields.
    HeadTooLarge,
    /// No Host field.
    MissingHost,
    /// More than one Host field.
    DuplicateHost,
    /// A Host that is no host name, or one with another port.
    InvalidHost,
    /// An absolute-form target that names another host than the Host field.
    HostMismatch,
    /// A later request of the connection for another host.
    HostChanged,
    /// Content-Length and Transfer-Encoding that do not give one clear body length.
    AmbiguousFraming,
    /// A Transfer-Encoding other than exactly `chunked` on HTTP/1.1.
    UnsupportedTransferEncoding,
    /// The CONNECT method.
    ConnectMethod,
    /// HTTP/2 without TLS, by preface or by upgrade.
    CleartextHttp2,
    // --- both
    /// The ClientHello or the request head did not arrive in time.
    HeadTimeout,
    /// The client closed before its ClientHello or request head was complete.
    HeadIncomplete,
    // --- upstream
    /// The allowed name could not be resolved (server failure or no answer).
    ResolveFailed,
    /// The allowed name has no address.
    NoAddress,
    /// Every address of the allowed name is one the router must not dial (loopback, link-local, its own, ...).
    AddressDenied,
    /// No address of the upstream could be connected to.
    UpstreamUnreachable,
    /// The upstream did not answer within the limit.
    UpstreamTimeout,
    /// The upstream's answer is not HTTP/1.
    MalformedResponse,
    // --- the router's own limits
    /// Out of connections or descriptors.
    Overloaded,
    /// The forwarder's router does not answer.
    RouterUnreachable,
    /// The entry was removed from the allowlist while the connection was open.
    Revoked,
    /// A client outside the pod connected to a forwarder.
    ClientNotLocal,
}

impl Refusal {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NameNotAllowed => "name-not-allowed",
            Self::PortNotAllowed => "port-not-allowed",
            Self::InvalidName => "invalid-name",
            Self::IpLiteral => "ip-literal",
            Self::NotTls => "not-tls",
            Self::SslV2 => "sslv2",
            Self::MissingSni => "missing-sni",
            Self::EmptySni => "empty-sni",
            Self::DuplicateSni => "duplicate-sni",
            Self::MalformedSni => "malformed-sni",
            Self::SniTrailingDot => "sni-trailing-dot",
            Self::MalformedHello => "malformed-hello",
            Self::InterleavedRecord => "interleaved-record",
            Self::RecordOverflow => "record-overflow",
            Self::HelloTooLarge => "hello-too-large",
            Self::MalformedRequest => "malformed-request",
            Self::HeadTooLarge => "head-too-large",
            Self::MissingHost => "missing-host",
            Self::DuplicateHost => "duplicate-host",
            Self::InvalidHost => "invalid-host",
            Self::HostMismatch => "host-mismatch",
            Self::HostChanged => "host-changed",
            Self::AmbiguousFraming => "ambiguous-framing",
            Self::UnsupportedTransferEncoding => "unsupported-transfer-encoding",
            Self::ConnectMethod => "connect-method",
            Self::CleartextHttp2 => "cleartext-http2",
            Self::HeadTimeout => "head-timeout",
            Self::HeadIncomplete => "head-incomplete",
            Self::ResolveFailed => "resolve-failed",
            Self::NoAddress => "no-address",
            Self::AddressDenied => "address-denied",
            Self::UpstreamUnreachable => "upstream-unreachable",
            Self::UpstreamTimeout => "upstream-timeout",
            Self::MalformedResponse => "malformed-response",
            Self::Overloaded => "overloaded",
            Self::RouterUnreachable => "router-unreachable",
            Self::Revoked => "revoked",
            Self::ClientNotLocal => "client-not-local",
        }
    }
}
