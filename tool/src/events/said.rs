//! What is said alike in text and in JSON: names, and sums of pools.

use headwater_protocol::message::events::{Named, Pool, StackFrame};

/// Not a part of the heap.
const METASPACE: &str = "metaspace";

/// The pools that are the heap's.
pub(super) fn heap(pools: &[Pool]) -> Vec<&Pool> {
    pools.iter().filter(|pool| pool.name != METASPACE).collect()
}

/// Of all pools together, if it is known and there are any.
pub(super) fn total(pools: &[&Pool], of: impl Fn(&Pool) -> Option<u64>) -> Option<u64> {
    let add = |total: u64, pool: &&Pool| Some(total.saturating_add(of(pool)?));
    if pools.is_empty() { None } else { pools.iter().try_fold(0, add) }
}

/// A method, as Java writes it.
pub(super) fn method_name(methods: &[Named], method: u32) -> String {
    match methods.get(method as usize) {
        Some(Named { class, name }) if class.is_empty() => name.clone(),
        Some(Named { class, name }) => format!("{class}.{name}"),
        None => "?".to_owned(),
    }
}

/// A call on a stack.
pub(super) fn place_name(methods: &[Named], place: &StackFrame) -> String {
    let method = method_name(methods, place.method);
    place.line.map_or_else(|| method.clone(), |line| format!("{method}:{line}"))
}
