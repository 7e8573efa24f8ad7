//! What rows are called, in full and in as much room as there is.

use unicode_width::UnicodeWidthStr;

use super::View;
use crate::profile::Profile;
use crate::report::units::{cut, fitting_name};
use crate::top::forest::{Subject, name};
use crate::top::rows::{Row, What};

/// So much of a method's name stays beside a thread's.
const MIN_METHOD: usize = 8;

impl View {
    /// A row's name in full.
    pub(in crate::top) fn name_of(&self, row: &Row) -> String {
        let Some(shown) = &self.shown else { return String::new() };
        match row.what {
            What::Node(node) => {
                let subject = shown.forest.subject(&shown.profile, node);
                match subject {
                    Subject::Method(_) if shown.forest.is_started(&shown.profile, node) => {
                        format!("[started] {}", name(&shown.profile, subject))
                    }
                    Subject::Method(_) => name(&shown.profile, subject).to_owned(),
                    Subject::Thread(index) => thread_name(&shown.profile, index),
                }
            }
            What::Line(index) => {
                let line = &self.lines[index];
                let method = line.method.map(|method| name(&shown.profile, Subject::Method(method)));
                let method = method.unwrap_or("from outside the roots");
                match line.thread {
                    Some(thread) => format!("{method} in {}", thread_name(&shown.profile, thread)),
                    None => method.to_owned(),
                }
            }
        }
    }

    /// As much of it as fits. A thread's name is cut last: threads of a pool differ at its end.
    pub(in crate::top) fn fitting_name_of(&self, row: &Row, width: usize) -> String {
        let Some(shown) = &self.shown else { return String::new() };
        match row.what {
            What::Node(node) => match shown.forest.subject(&shown.profile, node) {
                Subject::Thread(index) => fitting_thread(&shown.profile, index, width),
                Subject::Method(_) => fitting_name(&self.name_of(row), width),
            },
            What::Line(index) => {
                let name = self.name_of(row);
                let Some(thread) = self.lines[index].thread else { return fitting_name(&name, width) };
                let suffix = format!(" in {}", thread_name(&shown.profile, thread));
                let method = name.strip_suffix(&suffix).unwrap_or(&name);
                let room = width.saturating_sub(suffix.width()).max(MIN_METHOD);
                let method = fitting_name(method, room);
                let rest = width.saturating_sub(method.width() + " in ".len());
                cut(&format!("{method} in {}", fitting_thread(&shown.profile, thread, rest)), width)
            }
        }
    }
}

/// `thread "main" (1)`.
fn thread_name(profile: &Profile, index: usize) -> String {
    let thread = &profile.threads[index];
    format!("thread \"{}\" ({})", thread.shown_name(), thread.id.0)
}

/// That in so many columns: first goes what is the same for all, then the middle of the name.
fn fitting_thread(profile: &Profile, index: usize, width: usize) -> String {
    let whole = thread_name(profile, index);
    if whole.width() <= width {
        return whole;
    }
    let thread = &profile.threads[index];
    let (name, number) = (thread.shown_name(), format!(" ({})", thread.id.0));
    let room = width.saturating_sub(number.width());
    if name.width() <= room {
        return format!("{name}{number}");
    }
    cut_in_the_middle(&name, width)
}

/// As much of a text as fits, with its end.
fn cut_in_the_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let end_width = width.saturating_sub(1) / 2;
    let mut end: &str = text;
    while end.width() > end_width {
        end = &end[end.chars().next().map_or(0, char::len_utf8)..];
    }
    let begin = cut(text, width.saturating_sub(end.width()));
    begin + end
}

#[cfg(test)]
mod tests {
    use headwater_protocol::ThreadId;

    use super::*;
    use crate::profile::{ThreadProfile, Tree};

    #[test]
    fn of_a_threads_name_the_end_stays() {
        let thread = ThreadProfile { id: ThreadId(31), name: "http-nio-8080-exec-17".into(), tree: Tree::default() };
        let profile = Profile { threads: vec![thread], ..Profile::default() };
        for (width, fitting) in [
            (40, "thread \"http-nio-8080-exec-17\" (31)"),
            (30, "http-nio-8080-exec-17 (31)"),
            (24, "http-nio-8080-exec-17"),
            (13, "http-n…xec-17"),
            (4, "ht…7"),
        ] {
            assert_eq!(fitting_thread(&profile, 0, width), fitting, "{width}");
        }
    }
}
