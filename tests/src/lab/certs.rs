//! A certificate authority that lives for one run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::run;
use super::sandbox::DIR;

/// The run's own CA.
#[derive(Clone, Debug)]
pub struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// Makes key and certificate (P-256: a millisecond's work, known to every client).
    #[must_use]
    pub fn new() -> Self {
        let directory = Path::new(DIR).join("ca");
        fs::create_dir_all(&directory).unwrap();
        let authority = Self { directory };
        authority.openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=lab CA",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
        ]);
        // What namespaces see as /etc/ssl/certs: the bundle (GnuTLS, curl) and a directory by hash (OpenSSL).
        fs::create_dir(authority.directory.join("trust")).unwrap();
        for name in ["ca-certificates.crt", "lab.pem"] {
            fs::copy(
                authority.directory.join("ca.pem"),
                authority.directory.join("trust").join(name),
            )
            .unwrap();
        }
        authority.openssl(&["rehash", "trust"]);
        authority
    }

    /// The certificate to trust.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.directory.join("ca.pem").display().to_string()
    }

    /// A server certificate for `names`; gives the paths of certificate and key, called after `file`.
    #[must_use]
    pub fn issue(&self, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        let names: Vec<_> = names.iter().map(|name| format!("DNS:{name}")).collect();
        let extensions = format!("subjectAltName={}\nextendedKeyUsage=serverAuth\n", names.join(","));
        fs::write(self.directory.join(format!("{file}.ext")), extensions).unwrap();
        self.openssl(&[
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=lab",
            "-keyout",
            &format!("{file}.key"),
            "-out",
            &format!("{file}.csr"),
        ]);
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &format!("{file}.csr"),
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-CAserial",
            &format!("{file}.srl"),
            "-days",
            "30",
            "-extfile",
            &format!("{file}.ext"),
            "-out",
            &format!("{file}.pem"),
        ]);
        (
            self.directory.join(format!("{file}.pem")),
            self.directory.join(format!("{file}.key")),
        )
    }

    fn openssl(&self, arguments: &[&str]) {
        run(Command::new("openssl").args(arguments).current_dir(&self.directory), 60).ok();
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
