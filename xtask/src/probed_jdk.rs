//! A JDK, its instrumented modules, and JVMs that run with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_tests::Jdk;

use crate::class_tree;
use crate::machine::{call, root};

/// Everything is verified, the boot class path's classes as well (but for the four that HotSpot makes itself of). Same as
/// -Xverify:all, which JDK 13 has deprecated.
const OPTIONS: [&str; 5] = [
    "-Xshare:off",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+BytecodeVerificationLocal",
    "-XX:+BytecodeVerificationRemote",
    // A module that is not in the graph cannot be patched.
    "--add-modules=ALL-SYSTEM",
];

/// Which of the JDK's modules a JVM gets instrumented.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Modules<'m> {
    All,
    Only(&'m [&'m str]),
}

#[derive(Debug)]
pub(crate) struct ProbedJdk {
    pub(crate) jdk: Jdk,
    /// Where everything of this JDK is.
    pub(crate) work: PathBuf,
}

impl ProbedJdk {
    /// Compiles the probe and the harness for it.
    pub(crate) fn new(jdk: Jdk, work: PathBuf) -> Result<ProbedJdk, String> {
        class_tree::empty(&work)?;
        let probe = root().join("rewriter/tests/java");
        let javac = || jdk.javac();
        call(
            javac()
                .arg(format!("--patch-module=java.base={}", probe.display()))
                // The invokedynamic kind of concatenation calls java.base at its heart.
                .args(["-XDstringConcat=inline", "-d"])
                .arg(work.join("probe"))
                .arg(probe.join("java/lang/HwProbe.java")),
        )?;
        call(javac().arg("-d").arg(work.join("harness")).arg(root().join("xtask/java/VerifyAll.java")))?;
        Ok(ProbedJdk { jdk, work })
    }

    /// Where the instrumented modules are, a directory each.
    pub(crate) fn modules(&self) -> PathBuf {
        self.work.join("modules")
    }

    /// The harness's classes.
    pub(crate) fn harness(&self) -> PathBuf {
        self.work.join("harness")
    }

    /// A JVM, under full verification, with these of its modules instrumented.
    pub(crate) fn java(&self, instrumented: Modules<'_>) -> Result<Command, String> {
        let mut java = Command::new(self.jdk.program("java"));
        java.args(OPTIONS).current_dir(&self.work);
        let mut base = vec![self.work.join("probe")];
        for module in class_tree::children(&self.modules())? {
            let name = file_name(&module);
            match instrumented {
                Modules::Only(names) if !names.contains(&&*name) => {}
                _ if name == "java.base" => base.push(module),
                _ => {
                    java.arg(format!("--patch-module={name}={}", module.display()));
                }
            }
        }
        let base: Vec<String> = base.iter().map(|path| path.display().to_string()).collect();
        java.arg(format!("--patch-module=java.base={}", base.join(":")));
        Ok(java)
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
