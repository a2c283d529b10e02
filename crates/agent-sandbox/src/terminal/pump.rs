//! Two threads that copy between podman's stream and ours.
//!
//! Threads, not the runtime: standard input and output may be anything (a file cannot be polled), and may be shared
//! with other processes, which a switch to non-blocking mode would surprise.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use tokio::sync::oneshot;

use crate::podman::{Attached, Decoder, Stream};

/// One read: what a pipe holds (pipe(7)).
const BUFFER: usize = 64 << 10;

/// How the command's output ended.
#[derive(Debug)]
pub(crate) enum PumpEnd {
    /// All of it was written.
    Whole,
    /// The connection ended in the middle of a frame, or was no such stream.
    Cut,
    /// Nobody reads our standard output any more.
    OutputClosed,
}

/// The copying.
#[derive(Debug)]
pub(crate) struct Pump {
    stream: UnixStream,
    end: oneshot::Receiver<PumpEnd>,
}

impl Pump {
    /// Begins to copy the command's output. With a `terminal` it is one plain stream.
    pub(crate) fn start(attached: Attached, terminal: bool) -> io::Result<Self> {
        let Attached { stream, early } = attached;
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        let (told, end) = oneshot::channel();
        let reader = stream.try_clone()?;
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            let _ = told.send(if terminal {
                copy_plain(reader, &early)
            } else {
                copy_frames(reader, &early)
            });
        })?;
        Ok(Self { stream, end })
    }

    /// Begins to copy our standard input to the command, whose input ends when ours does.
    pub(crate) fn feed(&self) -> io::Result<()> {
        let mut writer = self.stream.try_clone()?;
        // Never joined: a read from a terminal ends only with the process.
        thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut buffer = vec![0; BUFFER];
            let mut stdin = io::stdin().lock();
            loop {
                match stdin.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(count) if count > 0 => {
                        if writer.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
                            return;
                        }
                    }
                    // The end of a file, or of a terminal that is gone.
                    _ => break,
                }
            }
            let _ = writer.shutdown(Shutdown::Write);
        })?;
        Ok(())
    }

    /// Waits for the end of the command's output.
    pub(crate) async fn ended(&mut self) -> PumpEnd {
        (&mut self.end).await.unwrap_or(PumpEnd::Cut)
    }
}

fn copy_plain(mut reader: UnixStream, early: &[u8]) -> PumpEnd {
    let mut stdout = io::stdout().lock();
    if write(&mut stdout, early).is_err() {
        return PumpEnd::OutputClosed;
    }
    let mut buffer = vec![0; BUFFER];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return PumpEnd::Whole,
            Ok(count) => {
                if write(&mut stdout, buffer.get(..count).unwrap_or_default()).is_err() {
                    return PumpEnd::OutputClosed;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_end(&error) => return PumpEnd::Whole,
            Err(_) => return PumpEnd::Cut,
        }
    }
}

/// A command that ends without reading all of its input leaves it unread in podman, whose close is then a reset. What
/// was written before it has been read before it (unix_stream_read_generic in Linux, net/unix/af_unix.c).
fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}

fn copy_frames(mut reader: UnixStream, early: &[u8]) -> PumpEnd {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; BUFFER];
    let mut bytes = early;
    loop {
        let mut written = Ok(());
        let decoded = decoder.push(bytes, |stream, piece| {
            // A closed standard error takes nothing from anybody who reads standard output.
            match stream {
                Stream::Stdout if written.is_ok() => written = write(&mut io::stdout().lock(), piece),
                Stream::Stdout => {}
                Stream::Stderr => drop(write(&mut io::stderr().lock(), piece)),
            }
        });
        if written.is_err() {
            return PumpEnd::OutputClosed;
        }
        if decoded.is_err() {
            return PumpEnd::Cut;
        }
        let count = loop {
            match reader.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_end(&error) => break Ok(0),
                other => break other,
            }
        };
        match count {
            Ok(0) => {
                return if decoder.is_between_frames() {
                    PumpEnd::Whole
                } else {
                    PumpEnd::Cut
                };
            }
            Ok(count) => bytes = buffer.get(..count).unwrap_or_default(),
            Err(_) => return PumpEnd::Cut,
        }
    }
}

/// Writes at once: a prompt has no line end.
fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's behaviour that [`is_end`] relies on.
    #[test]
    fn output_comes_before_the_reset() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"input that nobody reads").unwrap();
        theirs.write_all(&[1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        drop(theirs);
        let mut bytes = [0; 64];
        assert_eq!(ours.read(&mut bytes).unwrap(), 8);
        assert!(is_end(&ours.read(&mut bytes).unwrap_err()));
    }

    #[test]
    fn a_reset_is_an_end_but_not_in_the_middle_of_a_frame() {
        for (sent, whole) in [
            (&[1, 0, 0, 0, 0, 0, 0, 0][..], true),
            (&[1, 0, 0, 0, 0, 0, 0, 9][..], false),
        ] {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            ours.write_all(b"unread").unwrap();
            theirs.write_all(sent).unwrap();
            drop(theirs);
            assert_eq!(matches!(copy_frames(ours, b""), PumpEnd::Whole), whole);
        }
    }
}
