//! The problems of `tests.benchmarks.graphs` as differential-dataflow computes them in Rust, on one worker: for each
//! problem and size of a batch, the median milliseconds from the changed edges to the changed answer.
//! `cargo run --release -- EDGES NODES LARGEST`.

use std::time::Instant;

use differential_dataflow::input::Input;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::*;
use differential_dataflow::VecCollection;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use timely::dataflow::operators::probe::Handle;

type Edge = (u32, u32);
type Answer = (u32, u32);

fn main() {
    let given: Vec<u32> = std::env::args().skip(1).map(|text| text.parse().unwrap()).collect();
    let (edges, nodes, largest) = (given[0], given[1], given[2]);
    for problem in ["reachable", "fewest edges", "components"] {
        timely::execute_directly(move |worker| {
            let mut probe = Handle::new();
            let (mut graph, mut starts) = worker.dataflow(|scope| {
                let (graph_input, graph) = scope.new_collection::<Edge, isize>();
                let (starts_input, starts) = scope.new_collection::<Answer, isize>();
                let answer = match problem {
                    "reachable" => reachable(graph, starts),
                    "fewest edges" => least(graph, starts, 1),
                    _ => {
                        let back = graph.clone().map(|(a, b)| (b, a));
                        least(graph.concat(back), starts, 0)
                    }
                };
                answer.probe_with(&mut probe);
                (graph_input, starts_input)
            });
            let mut random = StdRng::seed_from_u64(1);
            let mut there: Vec<Edge> =
                (0..edges).map(|_| (random.gen_range(0..nodes), random.gen_range(0..nodes))).collect();
            let started = Instant::now();
            match problem {
                "components" => (0..nodes).for_each(|node| starts.insert((node, node))),
                _ => starts.insert((0, 0)),
            }
            there.iter().for_each(|edge| graph.insert(*edge));
            let mut now = 1;
            starts.close();
            graph.advance_to(now);
            graph.flush();
            worker.step_while(|| probe.less_than(graph.time()));
            println!("{problem}\tfill\t{:.3}", started.elapsed().as_secs_f64() * 1e3);
            for (size, count) in [(1, 100), (100, 20), (10_000, 5)] {
                if size > largest {
                    continue;
                }
                let mut taken: Vec<f64> = (0..count)
                    .map(|_| {
                        for _ in 0..size {
                            let place = random.gen_range(0..there.len());
                            let fresh = (random.gen_range(0..nodes), random.gen_range(0..nodes));
                            graph.remove(std::mem::replace(&mut there[place], fresh));
                            graph.insert(fresh);
                        }
                        now += 1;
                        graph.advance_to(now);
                        let started = Instant::now();
                        graph.flush();
                        worker.step_while(|| probe.less_than(graph.time()));
                        started.elapsed().as_secs_f64() * 1e3
                    })
                    .collect();
                taken.sort_by(f64::total_cmp);
                println!("{problem}\t{size}\t{:.3}", taken[taken.len() / 2]);
            }
        });
    }
}

/// The nodes that can be reached from the starts, with 0.
fn reachable<'scope, T: timely::progress::Timestamp + Lattice + Ord>(
    graph: VecCollection<'scope, T, Edge>,
    starts: VecCollection<'scope, T, Answer>,
) -> VecCollection<'scope, T, Answer> {
    starts.clone().iterate(|scope, inner| {
        let (graph, starts) = (graph.enter(scope), starts.enter(scope));
        inner.join_map(graph, |_, _, b| (*b, 0)).concat(starts).distinct()
    })
}

/// The least value that reaches each node; it grows by `step` with each edge.
fn least<'scope, T: timely::progress::Timestamp + Lattice + Ord>(
    graph: VecCollection<'scope, T, Edge>,
    starts: VecCollection<'scope, T, Answer>,
    step: u32,
) -> VecCollection<'scope, T, Answer> {
    starts.clone().iterate(|scope, inner| {
        let (graph, starts) = (graph.enter(scope), starts.enter(scope));
        inner
            .join_map(graph, move |_, value, b| (*b, value + step))
            .concat(starts)
            .reduce(|_, values, out| out.push((*values[0].0, 1)))
    })
}
