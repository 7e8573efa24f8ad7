//! Where the nodes of a directed graph are drawn: in layers, callers above what they call, with few crossings.
//!
//! The steps are those of Sugiyama, Tagawa and Toda (1981): layers by the longest way from a root, places for edges that pass layers, an order by
//! the middle of the neighbours, and then coordinates.

/// How often the order is improved, downwards and upwards.
const SWEEPS: usize = 12;
/// Between two boxes of a layer.
const GAP: f64 = 18.0;
/// What an edge takes that passes a layer.
const PASSING: f64 = 8.0;

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    /// Its layer.
    pub(super) layer: usize,
}

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Each node's middle.
    pub(super) nodes: Vec<Point>,
    /// Each edge's way from one node's middle to the other's.
    pub(super) edges: Vec<Vec<Point>>,
    pub(super) width: f64,
    pub(super) layers: usize,
}

/// A node, or the place of an edge in a layer that it passes.
struct Place {
    layer: usize,
    width: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays out nodes of these widths. Edges go from above to below; those of which `is_upward` is true are turned for that.
pub(super) fn layout(widths: &[f64], edges: &[(usize, usize)], is_upward: &[bool]) -> Layout {
    let turned: Vec<(usize, usize)> = edges
        .iter()
        .zip(is_upward)
        .map(|(&(from, to), is_upward)| if *is_upward { (to, from) } else { (from, to) })
        .collect();
    let layers_of = longest(widths.len(), &turned);
    let layers = layers_of.iter().max().map_or(0, |last| last + 1);
    let place = |layer, width| Place { layer, width, x: 0.0, above: Vec::new(), below: Vec::new() };
    let mut places: Vec<Place> = layers_of.iter().zip(widths).map(|(layer, width)| place(*layer, *width)).collect();
    let mut ways = Vec::with_capacity(edges.len());
    for &(from, to) in &turned {
        let mut way = vec![from];
        for layer in layers_of[from] + 1..layers_of[to] {
            places.push(place(layer, PASSING));
            way.push(places.len() - 1);
        }
        way.push(to);
        // A node that calls itself has no neighbours by that.
        for pair in way.windows(2).filter(|_| from != to) {
            places[pair[0]].below.push(pair[1]);
            places[pair[1]].above.push(pair[0]);
        }
        ways.push(way);
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers];
    places.iter().enumerate().for_each(|(at, place)| rows[place.layer].push(at));
    order(&mut rows, &mut places);
    let width = spread(&rows, &mut places);
    let point = |at: usize| Point { x: places[at].x, layer: places[at].layer };
    let way = |(way, is_upward): (Vec<usize>, &bool)| {
        let mut points: Vec<Point> = way.into_iter().map(point).collect();
        if *is_upward {
            points.reverse();
        }
        points
    };
    Layout {
        nodes: (0..widths.len()).map(point).collect(),
        edges: ways.into_iter().zip(is_upward).map(way).collect(),
        width,
        layers,
    }
}

/// How far each node is from the farthest one that leads to it.
fn longest(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layers = vec![0; nodes];
    // Without circles it takes no more rounds than there are nodes.
    for _ in 0..nodes {
        let mut has_changed = false;
        for &(from, to) in edges.iter().filter(|(from, to)| from != to) {
            if layers[to] < layers[from] + 1 {
                layers[to] = layers[from] + 1;
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    layers
}

/// Orders each row by the middle of what its places are joined to in the row before, and behind, in turn.
fn order(rows: &mut [Vec<usize>], places: &mut [Place]) {
    let mut rank = vec![0.0; places.len()];
    let keep =
        |row: &[usize], rank: &mut [f64]| row.iter().enumerate().for_each(|(at, place)| rank[*place] = at as f64);
    rows.iter().for_each(|row| keep(row, &mut rank));
    for sweep in 0..SWEEPS {
        let is_down = sweep % 2 == 0;
        let last = rows.len();
        for step in 0..last {
            let row = &mut rows[if is_down { step } else { last - 1 - step }];
            let middle = |place: &usize| {
                let joined = if is_down { &places[*place].above } else { &places[*place].below };
                match joined.len() {
                    0 => rank[*place],
                    count => joined.iter().map(|other| rank[*other]).sum::<f64>() / count as f64,
                }
            };
            let mut ranked: Vec<(f64, usize)> = row.iter().map(|place| (middle(place), *place)).collect();
            ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
            *row = ranked.into_iter().map(|(_, place)| place).collect();
            keep(row, &mut rank);
        }
    }
}

/// Gives places their coordinates, each as near to the middle of its neighbours as the others of its row let it; how wide that is.
fn spread(rows: &[Vec<usize>], places: &mut [Place]) -> f64 {
    for row in rows {
        let mut x = 0.0;
        for at in row {
            places[*at].x = x + places[*at].width / 2.0;
            x += places[*at].width + GAP;
        }
        row.iter().for_each(|at| places[*at].x -= x / 2.0);
    }
    for sweep in 0..SWEEPS {
        let is_down = sweep % 2 == 0;
        for step in 0..rows.len() {
            let row = &rows[if is_down { step } else { rows.len() - 1 - step }];
            let wanted: Vec<f64> = row
                .iter()
                .map(|at| {
                    let joined = if is_down { &places[*at].above } else { &places[*at].below };
                    match joined.len() {
                        0 => places[*at].x,
                        count => joined.iter().map(|other| places[*other].x).sum::<f64>() / count as f64,
                    }
                })
                .collect();
            settle(row, &wanted, places);
        }
    }
    let left = places.iter().map(|place| place.x - place.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = places.iter().map(|place| place.x + place.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    places.iter_mut().for_each(|place| place.x -= left);
    if places.is_empty() { 0.0 } else { right - left }
}

/// Puts a row's places where they want to be, and where they would overlap moves them apart, both in the same measure.
fn settle(row: &[usize], wanted: &[f64], places: &mut [Place]) {
    // Blocks of places that touch: where the first one's left edge is, on an average wanted, and how many there are.
    let mut blocks: Vec<(f64, usize, f64)> = Vec::new();
    for (at, wanted) in row.iter().zip(wanted) {
        let width = places[*at].width + GAP;
        let mut block = (wanted - width / 2.0, 1, width);
        while let Some(before) = blocks.last().copied().filter(|before| before.0 + before.2 > block.0) {
            blocks.pop();
            let count = before.1 + block.1;
            let start = (before.0 * before.1 as f64 + (block.0 - before.2) * block.1 as f64) / count as f64;
            block = (start, count, before.2 + block.2);
        }
        blocks.push(block);
    }
    let mut of_row = row.iter();
    for (start, count, _) in blocks {
        let mut x = start;
        for at in of_row.by_ref().take(count) {
            let width = places[*at].width + GAP;
            places[*at].x = x + width / 2.0;
            x += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_above_what_they_call_and_no_two_boxes_overlap() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4), (4, 1), (2, 2)];
        let is_upward = [false, false, false, false, false, false, true, false];
        let widths = [100.0, 80.0, 120.0, 60.0, 100.0];
        let layout = layout(&widths, &edges, &is_upward);
        let layers: Vec<usize> = layout.nodes.iter().map(|node| node.layer).collect();
        assert_eq!((layers.as_slice(), layout.layers), (&[0, 1, 1, 2, 3][..], 4));
        for one in 0..widths.len() {
            let half = widths[one] / 2.0;
            assert!(layout.nodes[one].x - half >= 0.0 && layout.nodes[one].x + half <= layout.width);
            for other in one + 1..widths.len() {
                let apart = (layout.nodes[one].x - layout.nodes[other].x).abs();
                assert!(layers[one] != layers[other] || apart >= (widths[one] + widths[other]) / 2.0);
            }
        }
        // Each edge goes from its caller to its callee, through every layer between them.
        for (way, (from, to)) in layout.edges.iter().zip(edges) {
            assert_eq!((way.first(), way.last()), (Some(&layout.nodes[from]), Some(&layout.nodes[to])));
            assert!(way.windows(2).all(|pair| from == to || pair[0].layer.abs_diff(pair[1].layer) == 1), "{way:?}");
        }
    }

    #[test]
    fn nothing_is_laid_out_in_no_room() {
        let layout = layout(&[], &[], &[]);
        assert_eq!((layout.width, layout.layers), (0.0, 0));
    }
}
