//! `cargo xtask web`: the HTML report's page, built again from `tool/profile/web/src`.

use std::path::PathBuf;
use std::process::Command;

use crate::machine::{call, ensure, root};
use crate::pinned;

/// Sees to it that the tools that build the page are there, as `tool/profile/web/package-lock.json` pins them.
pub(crate) fn ensure_installed() -> Result<(), String> {
    pinned::npm(&root().join("tool/profile/web"), &tools()?)
}

/// Where they are: the test of the committed page looks there too.
fn tools() -> Result<PathBuf, String> {
    Ok(pinned::target()?.join("web"))
}

pub(crate) fn run() -> Result<(), String> {
    ensure("/usr/bin/npm", "npm")?;
    ensure_installed()?;
    let modules = tools()?.join("node_modules");
    let web = root().join("tool/profile/web");
    call(Command::new("node").arg(modules.join("typescript/bin/tsc")).arg("--project").arg(&web))?;
    let page = web.join("dist/page.html");
    call(Command::new("node").arg(web.join("build.mjs")).arg(modules).arg(page))
}
