//! Whose rights something is done with.
//!
//! A target's user can rearrange the places that he owns at any moment: symbolic links, renamed directories, mounts in a
//! namespace of his own. So root does nothing there as root. It takes hold of the place (`/proc/PID/root`, `/proc/PID/cwd`) and then
//! becomes the target's user, on a thread of its own: what that user may not do is not done for him.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;

/// A user's rights, or our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rights(Option<User>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Rights {
    /// What we may do ourselves.
    pub(crate) fn own() -> Rights {
        Rights(None)
    }

    /// Those of a user, if we are root and he is not; otherwise our own, which are his or no more than his.
    pub(crate) fn of(uid: u32, gid: u32, groups: &[u32]) -> Rights {
        let us = (rustix::process::geteuid(), rustix::process::getegid());
        let user = (Uid::from_raw(uid), Gid::from_raw(gid));
        let is_another = us.0.is_root() && us != user;
        Rights(is_another.then(|| User {
            uid: user.0,
            gid: user.1,
            groups: groups.iter().map(|gid| Gid::from_raw(*gid)).collect(),
        }))
    }

    /// Whose the files are that are made with these rights.
    pub(crate) fn uid(&self) -> u32 {
        self.0.as_ref().map_or_else(rustix::process::geteuid, |user| user.uid).as_raw()
    }

    /// Does something with these rights and no others. Fails if we may not become that user.
    ///
    /// Linux keeps credentials by thread: no other thread is ever affected, and the reduced rights end with the thread.
    pub(crate) fn exercise<T: Send>(&self, task: impl FnOnce() -> T + Send) -> io::Result<T> {
        let Some(user) = self.0.as_ref().filter(|user| !user.is_current()) else { return Ok(task()) };
        let on_thread = || {
            user.become_it()?;
            Ok(task())
        };
        thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, on_thread)?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// The same for what may never return where the user has a file system of his own making; after the limit it is left behind.
    pub(crate) fn exercise_within<T: Send + 'static>(
        &self,
        limit: Duration,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let Some(user) = self.0.clone() else { return Ok(task()) };
        let (done, result) = mpsc::sync_channel(1);
        thread::Builder::new().spawn(move || {
            let result = user.become_it().map(|()| task()).map_err(io::Error::from);
            // Nobody listens any more when it took too long.
            let _ = done.send(result);
        })?;
        result.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl User {
    /// The thread has become that user already.
    fn is_current(&self) -> bool {
        (rustix::process::geteuid(), rustix::process::getegid()) == (self.uid, self.gid)
    }

    fn become_it(&self) -> Result<(), Errno> {
        rustix::thread::set_thread_groups(&self.groups)?;
        rustix::thread::set_thread_res_gid(self.gid, self.gid, self.gid)?;
        rustix::thread::set_thread_res_uid(self.uid, self.uid, self.uid)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use headwater_tests::Scratch;

    use super::*;

    const NOBODY: u32 = 65534;

    #[test]
    fn root_becomes_the_user_and_nobody_else_needs_to() {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        assert_eq!(Rights::of(own.0, own.1, &[]), Rights::own());
        let rights = Rights::of(NOBODY, NOBODY, &[]);
        let uid = rights.exercise(|| rustix::process::geteuid().as_raw()).expect("we may");
        assert_eq!(uid, rights.uid());
        assert_eq!(uid == NOBODY, own.0 == 0, "only root can be another user");
        assert_eq!(rustix::process::geteuid().as_raw(), own.0, "only the thread gave up its rights");
    }

    #[test]
    fn what_the_user_may_not_do_is_not_done_for_him() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can be another user");
            return;
        }
        let scratch = Scratch::new("rights");
        let file = scratch.file("file");
        let rights = Rights::of(NOBODY, NOBODY, &[]);
        let made = rights.exercise(|| std::fs::write(&file, "x")).expect("root can be anybody");
        assert_eq!(made.map_err(|error| error.kind()), Err(io::ErrorKind::PermissionDenied));
        std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).expect("we are root");
        rights.exercise(|| std::fs::write(&file, "x")).expect("root can be anybody").expect("it is his");
        assert_eq!(std::fs::metadata(&file).expect("made").uid(), NOBODY);
    }

    #[test]
    fn what_does_not_return_is_left_behind() {
        let rights = Rights::of(NOBODY, NOBODY, &[]);
        if rights == Rights::own() {
            eprintln!("skipped: only root can be another user");
            return;
        }
        let (_kept, never) = mpsc::channel::<()>();
        let ended = rights.exercise_within(Duration::from_millis(1), move || never.recv().is_ok());
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    }
}
