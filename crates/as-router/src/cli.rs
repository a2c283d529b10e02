//! The command line: raw flags in, typed options out.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use allowlist::Network;
use clap::{Args, Parser, Subcommand};

use crate::dns::Answer;
use crate::event::Format;

/// Where the image has its allowlist.
pub(crate) const DEFAULT_ALLOWLIST: &str = "/etc/as-router/allowed-hosts";

const EXAMPLES: &str = "\
Examples:
  as-router --allowlist allowed-hosts                     the router of a sandbox
  as-router forward --router 10.89.1.2                    the forwarder inside the sandbox
  as-router --check allowed-hosts                         is the file right, and what does it mean?
  as-router --check allowed-hosts github.com:22 evil.test which line allows these, or what denies them?

An allowlist has one entry a line:
  api.anthropic.com      # exactly this host (ports 80 and 443)
  .example.com           # example.com and every subdomain (ports 80 and 443)
  db.example.com:5432    # this exact host on TCP 5432 too

Signals: HUP reads the allowlist again, TERM ends within 2 seconds.
Every option can also be set by the variable shown with it.";

/// A sandbox's only way out: DNS that answers for allowed names only and never forwards, TLS routed by server name
/// without interception, HTTP routed by Host with every request checked, and one TCP port per `host:port` entry.
#[derive(Debug, Parser)]
#[command(name = "as-router", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) check: CheckArgs,
    #[command(flatten)]
    pub(crate) router: RouterArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Inside the sandbox: listen on the loopback addresses of the plan and pass everything to the router.
    Forward(ForwarderArgs),
    /// Exit with 0 if the listeners of a running router or forwarder answer (for health checks).
    Probe(ProbeArgs),
}

/// Options of `--check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Check an allowlist ("-" for standard input) and print what it means, or what allows or denies each NAME.
    /// Exit status: 0 valid and all names allowed, 1 not, 2 usage error.
    #[arg(long, value_name = "FILE")]
    pub(crate) check: Option<PathBuf>,
    /// Output of --check: text for people, json for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "check")]
    pub(crate) format: CheckFormat,
    /// With --check: names to explain.
    #[arg(value_name = "NAME[:PORT]", requires = "check")]
    pub(crate) names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CheckFormat {
    Text,
    Json,
}

/// Options that router and forwarder share.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArgs {
    /// The allowlist.
    #[arg(long, value_name = "FILE", env = "AS_ROUTER_ALLOWLIST", default_value = DEFAULT_ALLOWLIST)]
    pub(crate) allowlist: PathBuf,
    /// Port for TLS.
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_TLS_PORT", default_value_t = 443)]
    pub(crate) tls_port: u16,
    /// Port for HTTP.
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_HTTP_PORT", default_value_t = 80)]
    pub(crate) http_port: u16,
    /// How events are written to standard output.
    #[arg(long, value_name = "FORMAT", env = "AS_ROUTER_LOG", default_value = "json")]
    pub(crate) log: Format,
    /// Seconds for which a connection may stay silent after one side has finished. Connections that are open both ways
    /// are never cut for being idle.
    #[arg(long, value_name = "SECONDS", env = "AS_ROUTER_HALF_CLOSE_LIMIT", default_value = "300", value_parser = seconds)]
    pub(crate) half_close_limit: Duration,
    /// Diagnostics on standard error, e.g. "debug" or "as_router=trace".
    #[arg(long, value_name = "FILTER", env = "AS_ROUTER_DEBUG")]
    pub(crate) debug: Option<String>,
}

/// Options of router mode.
#[derive(Clone, Debug, Args)]
pub(crate) struct RouterArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Address to listen on. Give the address inside the sandbox's network, so that no other network can use this
    /// router.
    #[arg(long, value_name = "IP", env = "AS_ROUTER_LISTEN", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub(crate) listen: IpAddr,
    /// Port for DNS (UDP and TCP).
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_DNS_PORT", default_value_t = 53)]
    pub(crate) dns_port: u16,
    /// What DNS answers for allowed names: "loopback" for the name's own loopback address, where a forwarder listens,
    /// or an IPv4 address (the router's own) for a sandbox without a forwarder.
    #[arg(long, value_name = "loopback|IP", env = "AS_ROUTER_ANSWER", default_value = "loopback", value_parser = answer)]
    pub(crate) answer: Answer,
    /// Never connect to private address ranges (RFC 1918, RFC 6598, RFC 4193).
    #[arg(long, env = "AS_ROUTER_DENY_PRIVATE")]
    pub(crate) deny_private: bool,
    /// Let allowed names resolve to addresses that are otherwise refused (may be repeated). The router's own addresses
    /// must be named one by one, except loopback.
    #[arg(long, value_name = "CIDR", env = "AS_ROUTER_ALLOW_ADDRESS", value_delimiter = ',')]
    pub(crate) allow_address: Vec<Network>,
}

/// Options of forwarder mode.
#[derive(Clone, Debug, Args)]
pub(crate) struct ForwarderArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Address of the router.
    #[arg(long, value_name = "IP", env = "AS_ROUTER_ROUTER")]
    pub(crate) router: IpAddr,
    /// The router's port for TLS.
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_ROUTER_TLS_PORT", default_value_t = 443)]
    pub(crate) router_tls_port: u16,
    /// The router's port for HTTP.
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_ROUTER_HTTP_PORT", default_value_t = 80)]
    pub(crate) router_http_port: u16,
    /// Before reporting "ready", show that from here a name and an address off the list both fail, and that the router
    /// is the only name server; end with an error otherwise.
    #[arg(long, env = "AS_ROUTER_VERIFY_CLOSED")]
    pub(crate) verify_closed: bool,
}

/// Options of `probe`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Address to ask.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) address: IpAddr,
    /// A forwarder is asked, which has no DNS.
    #[arg(long)]
    pub(crate) forwarder: bool,
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_DNS_PORT", default_value_t = 53)]
    pub(crate) dns_port: u16,
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_TLS_PORT", default_value_t = 443)]
    pub(crate) tls_port: u16,
    #[arg(long, value_name = "PORT", env = "AS_ROUTER_HTTP_PORT", default_value_t = 80)]
    pub(crate) http_port: u16,
    /// Seconds to wait for all answers together.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) timeout: Duration,
}

fn answer(text: &str) -> Result<Answer, String> {
    if text == "loopback" {
        return Ok(Answer::Loopback);
    }
    match text.parse() {
        Ok(address) => Ok(Answer::Fixed(address)),
        Err(_) => Err("write \"loopback\" or an IPv4 address".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err("write a number of seconds from 1 to 86400".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_image_needs_no_option() {
        let cli = Cli::try_parse_from(["as-router"]).unwrap();
        assert!(cli.command.is_none() && cli.check.check.is_none());
        assert_eq!(cli.router.answer, Answer::Loopback);
        assert_eq!(cli.router.dns_port, 53);
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for line in [
            "as-router --answer ::1",
            "as-router --allow-address 10/8",
            "as-router --half-close-limit 0",
            "as-router name.example",
            "as-router --format json",
            "as-router forward",
            "as-router --tls-port 65536",
            "as-router --listen 1.2.3",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
