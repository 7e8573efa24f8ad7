use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::*;
use crate::traces::{Connected, Disconnected, Schema};

fn connected(pid: u32, main: &str) -> TraceEvent {
    TraceEvent::Connected(Connected {
        schema: Schema,
        time_ms: 0,
        host: "h".to_owned(),
        pid,
        main: main.to_owned(),
        arguments: String::new(),
        java: None,
        vm: String::new(),
        system: String::new(),
        uid: 0,
    })
}

/// Threads by name, CPU time in ms and stack, innermost frame first, with `<` between; those without a stack are the JVM's own.
fn trace(pid: u32, time_ms: u64, threads: &[(&str, u64, &str)]) -> TraceEvent {
    let thread = |(at, (name, cpu_ms, stack)): (usize, &(&str, u64, &str))| Thread {
        order: at as u64 + 1,
        name: (*name).to_owned(),
        kind: if stack.is_empty() { "vm" } else { "java" }.to_owned(),
        java_id: None,
        os_id: None,
        daemon: false,
        state: if name.starts_with("idle") { "WAITING" } else { "RUNNABLE" }.to_owned(),
        doing: if name.starts_with("idle") { "waits for work" } else { "runs" }.to_owned(),
        idle: name.starts_with("idle") || stack.is_empty(),
        cpu_ns: Some(cpu_ms * 1_000_000),
        allocated_bytes: None,
        stack: (!stack.is_empty()).then_some(at),
    };
    TraceEvent::Trace(Trace {
        schema: Schema,
        time_ms,
        host: "h".to_owned(),
        pid,
        number: 1,
        took_ms: 1.0,
        whole: true,
        threads: threads.iter().enumerate().map(thread).collect(),
        stacks: threads.iter().map(|(_, _, stack)| stack.split('<').map(str::to_owned).collect()).collect(),
    })
}

const NOON: u64 = 12 * 3_600_000;

/// Two JVMs, two moments.
fn view() -> View {
    let mut view = View::new(Query::default(), Glyphs::Ascii, Palette::Monochrome);
    view.hear(&connected(7, "/opt/shop.jar"));
    view.hear(&connected(8, "com.acme.Bill"));
    for (time, cpu) in [(NOON, 0), (NOON + 1_000, 500)] {
        view.hear(&trace(
            7,
            time,
            &[
                ("main", 1, "a.Main.wait(Main.java:3)<a.Main.main(Main.java:1)"),
                ("GC Thread", 5, ""),
                ("idle-1", 0, "j.Pool.take(P:1)"),
            ],
        ));
        view.hear(&trace(
            8,
            time,
            &[("http-1", cpu, "a.Order.save(Order.java:12)<a.Http.run(Http.java:9)"), ("http-2", 0, "a.Http.run(H:1)")],
        ));
    }
    view
}

fn picture(view: &mut View) -> Vec<String> {
    let area = Rect::new(0, 0, 100, 20);
    let mut buffer = Buffer::empty(area);
    view.draw(area, &mut buffer);
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..area.height).map(line).collect()
}

fn press(view: &mut View, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\t' => KeyCode::Tab,
            '\r' => KeyCode::Enter,
            key => KeyCode::Char(key),
        };
        assert_eq!(view.press(KeyEvent::new(code, KeyModifiers::NONE)), None);
    }
}

/// The rows that are selected.
fn selected(view: &mut View) -> Vec<String> {
    picture(view).into_iter().filter(|line| line.starts_with('>')).collect()
}

#[test]
fn jvms_their_threads_and_a_stack_are_below_each_other() {
    let mut view = view();
    let picture = picture(&mut view);
    let expected = [
        "headwater watch  2 JVMs                                                                    12:00:01Z",
        "    PID  THREADS   RUN  BLOCK  WAIT    CPU  JVM",
        ">     7        2     1      0     1    0 %  shop.jar",
        "      8        2     2      0     0   50 %  com.acme.Bill",
        "  ORDER  STATE             CPU  THREAD (Java threads, by start)",
        ">     1  RUNNABLE         0 %  main  runs",
        "      3  WAITING          0 %  idle-1  waits for work",
        "  STACK of \"main\", which runs",
        "> at a.Main.wait(Main.java:3)",
        "  at a.Main.main(Main.java:1)",
    ];
    assert_eq!(picture[..expected.len()], expected, "{picture:#?}");
    assert!(picture[19].starts_with("? help  q quit"));
}

#[test]
fn keys_choose_and_a_choice_stays_with_its_thread() {
    let mut view = view();
    press(&mut view, "j\tj\tj");
    let at = selected(&mut view);
    assert_eq!(at[0], ">     8        2     2      0     0   50 %  com.acme.Bill");
    assert_eq!(at[1], ">     2  RUNNABLE         0 %  http-2  runs");
    // By CPU time it is the second one still, and in a new trace it is where it is.
    press(&mut view, "s");
    assert_eq!(selected(&mut view)[1], at[1]);
    view.hear(&trace(8, NOON + 2_000, &[("http-1", 500, "a.B.c(D:1)"), ("http-2", 900, "a.Http.run(H:1)")]));
    assert_eq!(selected(&mut view)[1], ">     2  RUNNABLE        90 %  http-2  runs");
}

#[test]
fn which_jvm_is_in_a_method_is_found_over_all_of_them() {
    let mut view = view();
    press(&mut view, "/Order.save");
    let lines = picture(&mut view);
    assert!(lines[2].contains("    0  shop.jar") && lines[3].contains("    1  com.acme.Bill"), "{lines:#?}");
    let found = [
        ">     8        2     2      0     0   50 %      1  com.acme.Bill",
        ">     1  RUNNABLE        50 %  http-1  runs",
        "> at a.Order.save(Order.java:12)",
    ];
    assert_eq!(selected(&mut view), found);
    assert_eq!(lines[19], "/Order.save   (1 thread in 1 JVM)");
    press(&mut view, "\r");
    // Others too, one after the other, in whichever JVM.
    view.query = Query::new("a.");
    let threads: Vec<String> = (0..3)
        .map(|_| {
            press(&mut view, "n");
            selected(&mut view)[1].clone()
        })
        .collect();
    assert!(
        threads[0].contains("http-2") && threads[1].contains("main") && threads[2].contains("http-1"),
        "{threads:?}"
    );
    view.query = Query::new("nowhere");
    press(&mut view, "n");
    assert_eq!(picture(&mut view)[19], "no thread of these JVMs is in `nowhere`");
}

#[test]
fn the_frame_that_is_meant_is_chosen_as_it_is_typed() {
    let mut view = view();
    press(&mut view, "/a.Main.");
    assert_eq!(selected(&mut view)[2], "> at a.Main.wait(Main.java:3)");
    press(&mut view, "main");
    assert_eq!(selected(&mut view)[2], "> at a.Main.main(Main.java:1)");
}

#[test]
fn a_pause_freezes_all_jvms_at_one_moment() {
    let mut view = view();
    press(&mut view, "p");
    let before = picture(&mut view);
    assert!(before[0].ends_with("PAUSED, as of 12:00:01Z"), "{}", before[0]);
    view.hear(&trace(7, NOON + 5_000, &[("other", 1, "x.Y.z(Q:1)")]));
    view.hear(&TraceEvent::Disconnected(Disconnected {
        schema: Schema,
        time_ms: NOON + 5_000,
        host: "h".to_owned(),
        pid: 8,
        reason: Reason::Ended,
    }));
    assert_eq!(picture(&mut view), before);
    press(&mut view, "p");
    let after = picture(&mut view);
    assert!(after[0].starts_with("headwater watch  1 JVM ") && after[0].ends_with("12:00:05Z"), "{}", after[0]);
    assert!(after[3].ends_with("com.acme.Bill  has ended (12:00:05Z)"), "{}", after[3]);
    assert!(after[5].contains("other"));
}

#[test]
fn one_that_is_not_watched_says_why_and_any_size_is_drawn() {
    let mut view = view();
    view.skip(Process { host: "h".to_owned(), pid: 9 }, "secret.jar", "it is another user's");
    press(&mut view, "i");
    assert!(picture(&mut view)[4].contains("9  secret.jar: not watched: it is another user's"));
    for (width, height) in [(0, 0), (1, 1), (3, 2), (20, 4), (80, 7), (300, 80)] {
        let area = Rect::new(0, 0, width, height);
        for keys in ["?", "x", "/", "ab\r", "n", "\t"] {
            press(&mut view, keys);
            view.draw(area, &mut Buffer::empty(area));
        }
    }
}
