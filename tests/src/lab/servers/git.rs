//! A bare git repository with some history, served by nginx over https and by sshd.

use std::process::Command;

use super::directory;
use crate::lab::process::run;

pub(super) fn create() {
    let home = directory("home");
    let directory = directory("git");
    let script = "
        git init --quiet --bare --initial-branch=main demo.git
        git init --quiet --initial-branch=main work
        cd work
        for n in 1 2 3; do
            # Noise, so that a pack has some size.
            head -c 300000 /dev/urandom > file$n
            git add .
            git commit --quiet -m \"commit $n\"
        done
        git push --quiet ../demo.git main
    ";
    let identity = [("NAME", "lab"), ("EMAIL", "lab@example")];
    let mut command = Command::new("sh");
    command
        .args(["-ec", script])
        .current_dir(directory)
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for (key, value) in identity {
        command
            .env(format!("GIT_AUTHOR_{key}"), value)
            .env(format!("GIT_COMMITTER_{key}"), value);
    }
    run(&mut command, 60).ok();
}
