//! What a `java` command line starts: the launcher's argument rules (java(1)), for JVMs whose performance data we cannot
//! read, and for main jars with spaces in their path, which performance data cannot show.

/// The program that a command line starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The main class, the jar as given, `module/class`, or the source file.
    pub(crate) main: String,
    pub(crate) arguments: Vec<String>,
}

/// The launcher's options whose value is the next argument.
const OPTIONS_WITH_VALUE: &[&str] = &[
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--limit-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--patch-module",
    "--enable-native-access",
    "--source",
    "-d",
    "--describe-module",
];

/// The classes that run a program given as a source file, as `sun.rt.javaCommand` shows them.
const SOURCE_LAUNCHERS: &[&str] =
    &["jdk.compiler/com.sun.tools.javac.launcher.Main ", "jdk.compiler/com.sun.tools.javac.launcher.SourceLauncher "];

/// Finds the program in a command line. `read_file` gives the text of an `@argfile`, or nothing if it cannot be read.
pub(crate) fn parse(command_line: &[String], read_file: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    let (program, rest) = command_line.split_first()?;
    let file_name = program.rsplit('/').next().unwrap_or(program);
    if !file_name.starts_with("java") {
        // A launcher of its own, such as jsvc or an application's: its options are not java's.
        return Some(Launch { main: file_name.to_owned(), arguments: rest.to_vec() });
    }
    let mut arguments = expand(rest, read_file).into_iter();
    while let Some(argument) = arguments.next() {
        let main = match argument.as_str() {
            "-jar" | "-m" | "--module" => arguments.next()?,
            option if OPTIONS_WITH_VALUE.contains(&option) => {
                arguments.next();
                continue;
            }
            option if option.starts_with('-') => match option.strip_prefix("--module=") {
                Some(module) => module.to_owned(),
                None => continue,
            },
            _ => argument,
        };
        return Some(Launch { main, arguments: arguments.collect() });
    }
    None
}

/// Replaces argument files by their words. The launcher expands them only up to the main class; after it they are the
/// program's own arguments, but expanding those too can change nothing about the main class.
fn expand(arguments: &[String], read_file: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut expanded = Vec::new();
    let mut enabled = true;
    for argument in arguments {
        enabled &= argument != "--disable-@files";
        match argument.strip_prefix('@') {
            Some(escaped) if escaped.starts_with('@') => expanded.push(escaped.to_owned()),
            Some(path) if enabled => expanded.extend(read_file(path).iter().flat_map(|text| words(text))),
            _ => expanded.push(argument.clone()),
        }
    }
    expanded
}

/// The words of an argument file: separated by white space, quoted with ' or ", `#` starts a comment, a backslash in
/// quotes escapes (java(1), "java Command-Line Argument Files").
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (Some(_), '\\') => {
                let word = word.get_or_insert_default();
                match characters.next() {
                    Some('n') => word.push('\n'),
                    Some('t') => word.push('\t'),
                    Some('r') => word.push('\r'),
                    Some('f') => word.push('\u{c}'),
                    Some(other) => word.push(other),
                    None => {}
                }
            }
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => while characters.next().is_some_and(|skipped| skipped != '\n') {},
            (None, space) if space.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// Main and arguments as the user knows them, from the JVM's `sun.rt.javaCommand` and the command line where they exist.
pub(crate) fn program(java_command: Option<&str>, launch: Option<Launch>) -> (String, String) {
    let java_command = java_command.map(str::trim).filter(|command| !command.is_empty());
    let Some(command) = java_command else {
        return launch.map_or_else(Default::default, |launch| (launch.main, launch.arguments.join(" ")));
    };
    let command = SOURCE_LAUNCHERS.iter().find_map(|launcher| command.strip_prefix(launcher)).unwrap_or(command);
    // Performance data joins everything with spaces; the command line knows where the jar's path ends.
    if let Some(launch) = launch
        && let Some(rest) = command.strip_prefix(launch.main.as_str())
        && (rest.is_empty() || rest.starts_with(' '))
    {
        return (launch.main, rest.trim_start().to_owned());
    }
    let (main, arguments) = command.split_once(' ').unwrap_or((command, ""));
    (main.to_owned(), arguments.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(command_line: &str) -> Option<(String, String)> {
        let arguments: Vec<String> = command_line.split('|').map(str::to_owned).collect();
        let files = |path: &str| match path {
            "args" => Some("-Xmx1g -cp \"a b:c\" # -jar no.jar\n 'com.acme.Main' first".to_owned()),
            "options" => Some("-cp\n x.jar".to_owned()),
            _ => None,
        };
        parse(&arguments, files).map(|launch| (launch.main, launch.arguments.join(",")))
    }

    #[test]
    fn the_main_class_or_jar_is_found_behind_the_options() {
        let cases = [
            ("java|Main", "Main", ""),
            ("/usr/bin/java|-Xmx1g|-cp|a:b|com.acme.Main|x|-y", "com.acme.Main", "x,-y"),
            ("java|-Dfoo=bar|-jar|/opt/my app/app.jar|--port|80", "/opt/my app/app.jar", "--port,80"),
            ("java|-classpath|-jar|Main", "Main", ""),
            ("java|--class-path=x|--add-opens|java.base/java.lang=ALL-UNNAMED|Main|a", "Main", "a"),
            ("java|-p|mods|-m|app/com.acme.Main|1", "app/com.acme.Main", "1"),
            ("java|--module=app/com.acme.Main", "app/com.acme.Main", ""),
            ("java|--source|17|Tool.txt|z", "Tool.txt", "z"),
            ("java|@args|second", "com.acme.Main", "first,second"),
            ("java|@options|Main", "Main", ""),
            ("java|@missing|Main", "Main", ""),
            ("java|--disable-@files|@args", "@args", ""),
            ("java|-javaagent:a.jar|-XX:+UseZGC|Main|-jar|b.jar", "Main", "-jar,b.jar"),
            ("/opt/acme/bin/acmed|--port|80", "acmed", "--port,80"),
        ];
        for (command_line, main, arguments) in cases {
            assert_eq!(parsed(command_line), Some((main.to_owned(), arguments.to_owned())), "{command_line}");
        }
        assert_eq!(parsed("java|-version"), None);
        assert_eq!(parsed("java|-jar"), None);
        assert_eq!(parse(&[], |_| None), None);
    }

    #[test]
    fn argument_files_follow_the_launchers_quoting() {
        let cases: &[(&str, &[&str])] = &[
            ("a b\tc\n", &["a", "b", "c"]),
            (r#""a b"c 'd "e"'"#, &["a bc", r#"d "e""#]),
            (r#""c:\\x\ty""#, &["c:\\x\ty"]),
            ("a#b # comment\n#more\nc", &["a#b", "c"]),
            ("''", &[""]),
            ("\"open", &["open"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), *expected, "{text}");
        }
    }

    #[test]
    fn performance_data_and_command_line_together_give_main_and_arguments() {
        let launch = |main: &str| Some(Launch { main: main.to_owned(), arguments: vec!["p q".to_owned()] });
        let cases = [
            (Some("a.Main x y"), None, "a.Main", "x y"),
            (Some("/opt/my app/a.jar x"), launch("/opt/my app/a.jar"), "/opt/my app/a.jar", "x"),
            (Some("a.MainOther x"), launch("a.Main"), "a.MainOther", "x"),
            (Some("jdk.compiler/com.sun.tools.javac.launcher.Main T.java x"), None, "T.java", "x"),
            (Some("jdk.compiler/com.sun.tools.javac.launcher.SourceLauncher T.java"), launch("T.java"), "T.java", ""),
            (Some(""), launch("a.Main"), "a.Main", "p q"),
            (None, launch("a.Main"), "a.Main", "p q"),
            (None, None, "", ""),
        ];
        for (command, launch, main, arguments) in cases {
            assert_eq!(program(command, launch), (main.to_owned(), arguments.to_owned()), "{command:?}");
        }
    }
}
