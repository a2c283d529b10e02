//! The command line. Everything that is not ours goes to the agent, so almost nothing is ours.

use std::ffi::OsString;

/// What `--help` as the first argument prints.
pub(crate) const HELP: &str = "\
Runs Claude Code, or any command, in a rootless podman sandbox. The sandbox sees the current directory and nothing
else of this machine, and reaches the hosts on your allowlist and nothing else of the network.

Usage:
  agent-sandbox [CLAUDE ARGUMENTS...]   Claude Code, for example: agent-sandbox --continue
  agent-sandbox --exec COMMAND [ARGUMENTS...]
                                        any command instead, for example: agent-sandbox --exec bash
  agent-sandbox -- CLAUDE ARGUMENTS...  arguments that would otherwise be ours: agent-sandbox -- --help
  agent-sandbox version                 print the version
  agent-sandbox --help                  print this (only as the first argument)

Files (below $XDG_CONFIG_HOME, by default ~/.config):
  agent-sandbox/allowed-hosts           the hosts a sandbox may reach; created on the first run
  agent-sandbox/allowed-paths           the directories you may launch from below; without it, your home

Environment:
  AGENT_SANDBOX_IMAGE                   the sandbox's image
  AGENT_SANDBOX_ROUTER_IMAGE            the router's image
  AGENT_SANDBOX_ALLOWLIST               another allowlist file
  AGENT_SANDBOX_HOME_VOLUME             the volume that holds the agent's home (agent-sandbox-home)
  AGENT_SANDBOX_TRACE=1                 print how long each step took

Exit status: the command's own; 1 if the session was refused; 125 if podman failed; 130 if it was interrupted;
141 if nobody reads the output any more.
";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Run this command, which is never empty, in a sandbox.
    Run(Vec<String>),
}

/// A command line that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Usage {
    #[error("--exec needs a command, for example: agent-sandbox --exec bash")]
    NoCommand,
    #[error("the argument {0:?} is not valid UTF-8, which podman's API cannot carry")]
    NotUtf8(OsString),
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// What is missing, or cannot be passed on.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Usage> {
    let arguments: Vec<String> = arguments
        .into_iter()
        .map(|argument| argument.into_string().map_err(Usage::NotUtf8))
        .collect::<Result<_, _>>()?;
    let claude = |rest: &[String]| {
        let command = std::iter::once("claude".to_owned()).chain(rest.iter().cloned());
        Request::Run(command.collect())
    };
    Ok(match arguments.split_first() {
        Some((first, _)) if first == "--help" => Request::Help,
        // With anything behind it, it is the start of a prompt.
        Some((first, [])) if first == "version" => Request::Version,
        Some((first, [])) if first == "--exec" => return Err(Usage::NoCommand),
        Some((first, command)) if first == "--exec" => Request::Run(command.to_vec()),
        Some((first, rest)) if first == "--" => claude(rest),
        _ => claude(&arguments),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn what_is_ours_and_what_is_the_agents() {
        let run = |words: &[&str]| Ok(Request::Run(words.iter().map(|word| (*word).to_owned()).collect()));
        for (given, want) in [
            (&[][..], run(&["claude"])),
            (&["--continue"], run(&["claude", "--continue"])),
            (&["-p", "--help"], run(&["claude", "-p", "--help"])),
            (&["--help"], Ok(Request::Help)),
            (&["--", "--help"], run(&["claude", "--help"])),
            (&["-h"], run(&["claude", "-h"])),
            (&["--version"], run(&["claude", "--version"])),
            (&["version"], Ok(Request::Version)),
            (
                &["version", "2", "of", "it"],
                run(&["claude", "version", "2", "of", "it"]),
            ),
            (&["--", "version"], run(&["claude", "version"])),
            (&["--exec", "bash"], run(&["bash"])),
            (&["--exec", "sh", "-c", "--exec"], run(&["sh", "-c", "--exec"])),
            (&["--exec", "--help"], run(&["--help"])),
            (&["-p", "--exec", "bash"], run(&["claude", "-p", "--exec", "bash"])),
            (&["--exec"], Err(Usage::NoCommand)),
            (&[""], run(&["claude", ""])),
        ] {
            assert_eq!(parse(given.iter().map(OsString::from)), want, "{given:?}");
        }
    }

    #[test]
    fn an_argument_json_cannot_hold_is_refused() {
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        assert_eq!(parse([odd.clone()]), Err(Usage::NotUtf8(odd)));
    }
}
