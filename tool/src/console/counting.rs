//! `count`: what is counted beside calls, switched while a profile is recorded.

use std::io;

use super::{Console, Failure, NOTHING_RECORDED, State, show};
use crate::profiling::ProfileError;
use crate::profiling::live::Switched;
use crate::request::count::{Switching, counting_in_words, probing_in_words};
use crate::whole_jvm::price_of_recorder;

impl Console {
    /// Switches what is counted, or shows what is and was.
    pub(super) async fn count(
        &mut self,
        switching: &Switching,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let switch = switching.switch().map_err(|message| Failure::new(2, message))?;
        let State::Live { live, .. } = &mut self.state else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let Some(switch) = switch else {
            return Ok(show::counted(live.counted(), live.recorded(), &mut io::stdout().lock())?);
        };
        let what = switch.of(live.counted().now(), live.settings().clock);
        let progress = &self.progress;
        if what.locks && !live.counted().now().locks {
            self.jvm.iter().filter_map(price_of_recorder).for_each(|price| progress.say(&price));
        }
        let announce = |classes| {
            progress.say(&probing_in_words(classes));
        };
        match live.count(what, interrupt, announce).await {
            Ok(Switched::Now) => {
                progress.say(&counting_in_words(what));
                Ok(())
            }
            Ok(Switched::Interrupted) => Err(Failure::interrupted()),
            Ok(Switched::Refused(why)) => Err(Failure::new(1, why)),
            Err(error) if error.is_final() => Err(self.lost(error).await),
            Err(error) => Err(ProfileError::from(error).into()),
        }
    }
}
