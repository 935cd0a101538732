//! Visits all reachable states, and finds states from which the end is unreachable.
//!
//! States are visited by distance from the initial state, so a reported path is as short as possible. A state is
//! identified by 64 bits of its hash.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hash};
use std::time::{Duration, Instant};

use crate::check::Explore;
use crate::keyed::{Mixer, key};
use crate::property::{Kind, Property};

/// Number of states expanded before their successors are merged.
const PART: usize = 8192;
/// Interval between two lines of progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// The graph of all states, identified by number, without their content.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The predecessor through which each state was first reached, and the index of the action. The initial state has
    /// none.
    reached: Vec<(u32, u16)>,
    /// The steps that happen in every fair execution, as pairs of source and target state.
    certain: Vec<(u32, u32)>,
    /// The states at rest, in which no work remains.
    rests: Vec<u32>,
    pub(crate) steps: usize,
    pub(crate) depth: usize,
}

/// A successor found when a state is expanded.
struct Expansion<T> {
    broken: Option<&'static str>,
    met: Vec<bool>,
    is_at_rest: bool,
    successors: Vec<Successor<T>>,
}

struct Successor<T> {
    action: u16,
    key: u64,
    is_certain: bool,
    /// `None` if the state is already known.
    system: Option<T>,
}

type KnownStates = HashMap<u64, u32, BuildHasherDefault<Mixer>>;

/// Visits all reachable states.
///
/// # Panics
/// Panics if a property does not hold, the end cannot be reached, or there are more than `max_states` states.
pub(crate) fn explore<C: Explore>(name: &str, check: &C, max_states: usize) -> Graph {
    let mut reported = Instant::now();
    let first = check.initial();
    let mut known = KnownStates::from_iter([(key(&first), 0)]);
    let mut graph = Graph { reached: vec![(0, 0)], ..Graph::default() };
    let mut met = vec![false; check.properties().len()];
    let mut level = vec![(0, first)];
    while !level.is_empty() {
        graph.depth += 1;
        let mut next = Vec::new();
        let mut rest = level.into_iter();
        loop {
            let part: Vec<(u32, C::System)> = rest.by_ref().take(PART).collect();
            if part.is_empty() {
                break;
            }
            for ((number, _), look) in part.iter().zip(expand(check, &part, &known, &met)) {
                if let Some(name) = look.broken {
                    panic!("{name} does not hold after\n{}", graph.path(check, *number));
                }
                met.iter_mut().zip(look.met).for_each(|(met, here)| *met |= here);
                graph.include(*number, look.is_at_rest, look.successors, &mut known, &mut next);
            }
            assert!(
                graph.states() <= max_states,
                "{name} has more than {max_states} states: reduce the inputs or the budget"
            );
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                eprintln!("{name}: {} states, depth {}", graph.states(), graph.depth);
            }
        }
        level = next;
    }
    eprintln!("{name}: {} states in total, depth {}", graph.states(), graph.depth);
    if let Some(state) = graph.stuck() {
        panic!("I7 the end can be reached does not hold after\n{}", graph.path(check, state));
    }
    for (property, met) in check.properties().iter().zip(met) {
        assert!(met || property.kind == Kind::Always, "no state in which {}", property.name);
    }
    graph
}

/// Expands states in parallel on all processors.
fn expand<C: Explore>(
    check: &C,
    part: &[(u32, C::System)],
    known: &KnownStates,
    met: &[bool],
) -> Vec<Expansion<C::System>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let shares = part.chunks(part.len().div_ceil(threads));
    std::thread::scope(|scope| {
        let look = |share: &[(u32, C::System)]| -> Vec<Expansion<C::System>> {
            share.iter().map(|(_, system)| Expansion::at(check, system, known, met)).collect()
        };
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || look(share))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

impl<T: Hash> Expansion<T> {
    fn at<C: Explore<System = T>>(check: &C, system: &T, known: &KnownStates, met: &[bool]) -> Self {
        let properties = check.properties();
        let holds = |(property, met): (&Property<C>, &bool)| {
            (property.kind == Kind::Sometimes && *met) || (property.condition)(check, system)
        };
        let holds: Vec<bool> = properties.iter().zip(met).map(holds).collect();
        let mut of_always =
            properties.iter().zip(&holds).filter(|(property, _)| property.kind == Kind::Always);
        let broken = of_always.find(|(_, holds)| !**holds).map(|(property, _)| property.name);
        let successors = check.actions(system).into_iter().enumerate().filter_map(|(number, action)| {
            let next = check.after(system, action)?;
            let key = key(&next);
            Some(Successor {
                action: u16::try_from(number).unwrap(),
                key,
                is_certain: check.is_certain(system, action),
                system: (!known.contains_key(&key)).then_some(next),
            })
        });
        let successors = successors.collect();
        Self { broken, met: holds, is_at_rest: check.is_at_rest(system), successors }
    }
}

impl Graph {
    fn include<T>(
        &mut self,
        from: u32,
        is_at_rest: bool,
        successors: Vec<Successor<T>>,
        known: &mut KnownStates,
        next: &mut Vec<(u32, T)>,
    ) {
        self.rests.extend(is_at_rest.then_some(from));
        self.steps += successors.len();
        for Successor { action, key, is_certain, system } in successors {
            let fresh = u32::try_from(self.reached.len()).unwrap();
            let to = *known.entry(key).or_insert(fresh);
            if to == fresh {
                self.reached.push((from, action));
                next.push((fresh, system.expect("an unknown state was unknown before")));
            }
            if is_certain && to != from {
                self.certain.push((from, to));
            }
        }
    }

    /// Returns the number of states.
    pub(crate) fn states(&self) -> usize {
        self.reached.len()
    }

    /// Returns the first state from which certain steps do not lead to rest.
    ///
    /// The number of states is finite, and all of them are known. If every state has a path of certain steps to rest,
    /// any fair order of steps reaches rest, regardless of earlier faults: no loop is inescapable. A loop with an exit,
    /// such as repeated deliveries to a busy partition, is not a livelock.
    fn stuck(&self) -> Option<u32> {
        // The offset of each state's predecessors in a list grouped by target.
        let mut begins = vec![0_u32; self.states() + 1];
        for (_, to) in &self.certain {
            begins[*to as usize + 1] += 1;
        }
        for number in 1..begins.len() {
            begins[number] += begins[number - 1];
        }
        let (mut sources, mut at) = (vec![0_u32; self.certain.len()], begins.clone());
        for (from, to) in &self.certain {
            let place = &mut at[*to as usize];
            sources[*place as usize] = *from;
            *place += 1;
        }
        let mut ends = vec![false; self.states()];
        let mut open = self.rests.clone();
        while let Some(number) = open.pop() {
            let number = number as usize;
            if !std::mem::replace(&mut ends[number], true) {
                open.extend(&sources[begins[number] as usize..begins[number + 1] as usize]);
            }
        }
        ends.iter().position(|ends| !ends).map(|number| u32::try_from(number).unwrap())
    }

    /// Returns the steps that lead to a state, for the panic message.
    fn path<C: Explore>(&self, check: &C, mut number: u32) -> String {
        let mut choices = Vec::new();
        while number > 0 {
            let (from, action) = self.reached[number as usize];
            choices.push(action);
            number = from;
        }
        let (mut system, mut text) = (check.initial(), String::new());
        for choice in choices.into_iter().rev() {
            let action = check.actions(&system)[usize::from(choice)];
            writeln!(text, "  {}", check.describe(&system, action)).unwrap();
            system = check.after(&system, action).unwrap();
            writeln!(text, "    -> {}", check.summary(&system)).unwrap();
        }
        text
    }
}
