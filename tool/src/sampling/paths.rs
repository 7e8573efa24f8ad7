//! Where threads were: stacks of the recorder and of looks as paths of the same methods.
//!
//! The recorder has methods with their parameters, a dump has them without. Where one method of a name is known, it is that.

use headwater_jfr::Recorded;
use rustc_hash::FxHashMap;

use super::looks::Looks;
use crate::import::recording::{cut, display_name};
use crate::pattern::{JDK_PACKAGES, stable_name};
use crate::profile::MethodIndex;
use headwater_profile::build::Builder;

/// A path: an index into [`Paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PathIndex(usize);

#[derive(Clone, Debug)]
struct Path {
    /// The outermost first.
    methods: Vec<MethodIndex>,
    /// The innermost method that is not the JDK's, or else the innermost; for people.
    place: String,
}

/// All paths: first the recorder's stacks, then those of looks, then what stands for what has no stack.
pub(super) struct Paths {
    all: Vec<Path>,
    /// How many of them are the recorder's.
    recorded: usize,
    others: FxHashMap<String, PathIndex>,
    extended: FxHashMap<(PathIndex, String), PathIndex>,
}

impl Paths {
    pub(super) fn of(builder: &mut Builder, recorded: &Recorded, looks: &Looks, has_lines: bool) -> Paths {
        let line_of = |line: u32| (has_lines && line > 0).then_some(line);
        let names: Vec<String> = recorded.methods.iter().map(|machine| stable_name(machine).into_owned()).collect();
        let full = full_names(&names);
        let mut method = |machine: &str, line: Option<u32>| {
            let shown = if machine.is_empty() { "[unknown]".to_owned() } else { display_name(machine) };
            let machine = if machine.is_empty() { "[unknown]" } else { machine };
            let index = match line {
                Some(line) => builder.method(&format!("{machine}:{line}"), &format!("{shown}:{line}")),
                None => builder.method(machine, &shown),
            };
            let is_jdks = JDK_PACKAGES.iter().any(|package| machine.starts_with(package));
            (index, shown, is_jdks)
        };
        let of_recorder: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| method(name, line_of(recorded.lines.get(at).copied().unwrap_or(0))))
            .collect();
        let of_looks: Vec<_> = looks
            .frames
            .iter()
            .map(|(name, line)| {
                let name = stable_name(name);
                method(full.get(&*name).copied().flatten().unwrap_or(&name), line_of(*line))
            })
            .collect();
        let path = |frames: &mut dyn Iterator<Item = &(MethodIndex, String, bool)>| {
            let mut path = Path { methods: Vec::new(), place: String::new() };
            let mut is_jdks_alone = true;
            for (method, shown, is_jdks) in frames {
                path.methods.push(*method);
                if is_jdks_alone || !is_jdks {
                    path.place.clone_from(shown);
                }
                is_jdks_alone &= *is_jdks;
            }
            path
        };
        let mut all = Vec::with_capacity(recorded.stacks.len() + looks.stacks.len());
        let cut = cut(builder);
        for stack in &recorded.stacks {
            let mut path = path(&mut stack.frames.iter().map(|frame| &of_recorder[frame.0 as usize]));
            // Where nothing was seen, everything is missing.
            if stack.is_cut || path.methods.is_empty() {
                path.methods.insert(0, cut);
            }
            all.push(path);
        }
        all.extend(looks.stacks.iter().map(|stack| path(&mut stack.iter().map(|frame| &of_looks[*frame]))));
        Paths { all, recorded: recorded.stacks.len(), others: FxHashMap::default(), extended: FxHashMap::default() }
    }

    /// Of a stack of the recorder's.
    pub(super) fn recorded(&self, stack: headwater_jfr::StackIndex) -> PathIndex {
        PathIndex(stack.0 as usize)
    }

    /// Of a stack that was seen at a look.
    pub(super) fn seen(&self, stack: usize) -> PathIndex {
        PathIndex(self.recorded + stack)
    }

    /// Of what has no stack.
    pub(super) fn other(&mut self, builder: &mut Builder, name: &str) -> PathIndex {
        if let Some(known) = self.others.get(name) {
            return *known;
        }
        let path = PathIndex(self.all.len());
        self.all.push(Path { methods: vec![builder.method(name, name)], place: name.to_owned() });
        self.others.insert(name.to_owned(), path);
        path
    }

    /// Of something below a path.
    pub(super) fn below(&mut self, builder: &mut Builder, path: PathIndex, name: &str) -> PathIndex {
        if let Some(known) = self.extended.get(&(path, name.to_owned())) {
            return *known;
        }
        let mut extended = self.all[path.0].clone();
        extended.methods.push(builder.method(name, name));
        self.all.push(extended);
        let index = PathIndex(self.all.len() - 1);
        self.extended.insert((path, name.to_owned()), index);
        index
    }

    /// The methods on it, the outermost first.
    pub(super) fn methods(&self, path: PathIndex) -> impl Iterator<Item = MethodIndex> {
        self.all[path.0].methods.iter().copied()
    }

    /// The program's own innermost method on it, for people.
    pub(super) fn place(&self, path: PathIndex) -> &str {
        &self.all[path.0].place
    }
}

/// Methods by their names without parameters: none where several have that name.
fn full_names(machines: &[String]) -> FxHashMap<&str, Option<&str>> {
    let mut full: FxHashMap<&str, Option<&str>> = FxHashMap::default();
    for machine in machines {
        let name = machine.split('(').next().unwrap_or(machine);
        let known = full.entry(name).or_insert(Some(machine));
        if known.is_some_and(|known| known != machine) {
            *known = None;
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_several_methods_have_is_none_of_them() {
        let names = ["a.B.m(I)V", "a.B.m(J)V", "a.B.n()V"].map(str::to_owned);
        let full = full_names(&names);
        assert_eq!((full["a.B.m"], full["a.B.n"]), (None, Some("a.B.n()V")));
    }
}
