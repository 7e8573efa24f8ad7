//! `cargo xtask test`: everything. The end-to-end tests need a JDK and Tomcat's libraries, and the tool's binary.

use crate::machine::{call, cargo, ensure, jdk};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    jdk()?;
    ensure("/usr/share/java/tomcat10-catalina.jar", "libtomcat10-java")?;
    call(cargo().args(["build", "--package", "headwater"]))?;
    call(cargo().args(["test", "--workspace"]).args(arguments))
}
