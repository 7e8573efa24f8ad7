//! Classes of one name, by their loaders. Programs that reload, run scripts or make proxies have thousands of them, and each is looked up at
//! each call that names it.

use headwater_protocol::LoaderId;
use rustc_hash::FxHashMap;

use super::ClassKey;

/// So many are looked through; most names have one class.
const FEW: usize = 8;
/// A name that more classes than these have may mean any of them where none of the same loader's is loaded. Who then goes through all does so at each call
/// that names it, and for each class that comes.
pub(in super::super) const VERY_MANY: usize = 64;

/// What a name means in a class of some loader.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Meant<'m> {
    /// The class of that name that the same loader defines.
    Own(ClassKey),
    /// One of these, which other loaders define, in the order in which they came; or one that is to come.
    Others(&'m [ClassKey]),
}

impl<'m> Meant<'m> {
    /// All that it may mean; of very many the latest.
    pub(super) fn latest(self) -> Vec<ClassKey> {
        match self {
            Meant::Own(own) => vec![own],
            Meant::Others(all) => all[all.len().saturating_sub(VERY_MANY)..].to_vec(),
        }
    }

    /// Whether that is too many to be gone through each time.
    pub(in super::super) fn is_very_many(&self) -> bool {
        matches!(self, Meant::Others(all) if all.len() > VERY_MANY)
    }
}

/// In the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Namesakes {
    all: Vec<ClassKey>,
    loaders: Vec<LoaderId>,
    /// Of more than a few, those of each loader.
    by_loader: FxHashMap<LoaderId, Vec<ClassKey>>,
}

impl Namesakes {
    pub(super) fn push(&mut self, key: ClassKey, loader: LoaderId) {
        self.all.push(key);
        self.loaders.push(loader);
        match self.all.len() {
            0..=FEW => {}
            len if len == FEW + 1 => {
                for (key, loader) in self.all.iter().zip(&self.loaders) {
                    self.by_loader.entry(*loader).or_default().push(*key);
                }
            }
            _ => self.by_loader.entry(loader).or_default().push(key),
        }
    }

    pub(super) fn all(&self) -> &[ClassKey] {
        &self.all
    }

    /// Those of a loader.
    pub(super) fn of(&self, loader: LoaderId) -> impl Iterator<Item = ClassKey> {
        let few = if self.all.len() <= FEW { self.all.len() } else { 0 };
        let among_few = self.all[..few].iter().zip(&self.loaders).filter(move |(_, its)| **its == loader);
        among_few.map(|(key, _)| key).chain(self.by_loader.get(&loader).into_iter().flatten()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_loader_are_found_in_their_order_however_many_there_are() {
        let mut namesakes = Namesakes::default();
        for number in 0..40 {
            namesakes.push(ClassKey(number), LoaderId(u64::from(number % 5)));
            let of_two: Vec<u32> = namesakes.of(LoaderId(2)).map(|key| key.0).collect();
            assert_eq!(of_two, (0..=number).filter(|number| number % 5 == 2).collect::<Vec<_>>());
            assert_eq!(namesakes.of(LoaderId(7)).count(), 0);
            assert_eq!(namesakes.all().len(), number as usize + 1);
        }
    }
}
