//! A real server under load: no request fails while we attach, profile and detach, and every request is counted.

use headwater_tests::load::Load;
use headwater_tests::tomcat::start;
use headwater_tests::{Jdk, Scratch, profile, read_report};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        a_server_under_load_loses_no_request_and_every_request_is_counted,
    }
}

const ROOTS: [&str; 3] = [
    "org.apache.catalina.core.ApplicationFilterChain::doFilter",
    "Server$Words::doGet",
    "org.apache.catalina.connector.CoyoteAdapter::service",
];
const CONNECTIONS: usize = 6;

fn root_calls(report: &Value) -> u64 {
    report["roots"].as_array().expect("roots").iter().map(|root| root["calls"].as_u64().expect("calls")).sum()
}

fn a_server_under_load_loses_no_request_and_every_request_is_counted(jdk: &Jdk) {
    let base = Scratch::new("tomcat");
    let (_classes, mut server, port) = start(jdk, &base);
    let load = Load::start(port, CONNECTIONS);
    load.await_answers(100);
    for root in ROOTS {
        let context = format!("JDK {}, {root}", jdk.version);
        let file = base.file("profile.json");
        let output = file.to_string_lossy().into_owned();

        // Attaching and detaching in the middle of the load.
        let tool = profile(&server, &["--root", root, "--calls", "300", "-o", &output]).finish();
        assert!(tool.status.success(), "{context}: {:#?}", tool.stderr);
        assert_eq!(root_calls(&read_report(&file)), 300, "{context}");

        // A known number of requests between the two.
        load.hold();
        let tool = profile(&server, &["--root", root, "-o", &output]);
        let before = load.answered();
        load.resume();
        load.await_answers(500);
        load.hold();
        let requests = load.answered() - before;
        tool.signal(Signal::INT);
        let tool = tool.finish();
        assert!(tool.status.success(), "{context}: {:#?}", tool.stderr);
        let report = read_report(&file);
        assert_eq!(root_calls(&report), requests, "{context}");
        assert_eq!(report["events"]["lost"], 0, "{context}");
        assert_eq!(report["events"]["healed"], 0, "{context}");
        load.resume();
        load.await_answers(100);
    }
    load.hold();
    let answered = load.answered();
    assert_eq!(load.stop(), Vec::<String>::new(), "JDK {}", jdk.version);
    server.say("");
    assert_eq!(server.await_line("SERVED "), format!("SERVED {answered}"), "JDK {}", jdk.version);
    let server = server.finish();
    assert!(server.status.success() && server.stdout.iter().any(|line| line == "BYE"), "{:#?}", server.stderr);
}
