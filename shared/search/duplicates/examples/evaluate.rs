//! Evaluates the table on labelled records: the number of duplicates found, and the number of records wrongly marked as
//! duplicates.
//!
//! Usage: `cargo run --release -p duplicates --example evaluate -- FOLDER [--misses]`. The folder contains `NAME.ris`
//! or `NAME.xml` together with `NAME.labels.csv`, which gives the position of each record in the file and the cluster
//! that it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use duplicates::{Content, Edge, Fields, Member, Tier, compare, marks};
use references::{Limits, Outcome, Reader, Reference};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("which folder?")?);
    let shows_misses = arguments.next().is_some_and(|argument| argument == "--misses");
    let mut labels: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".labels.csv"))
        .collect();
    labels.sort();
    for least in [Tier::Likely, Tier::Certain] {
        let mut total = Counts::default();
        for labels in &labels {
            let name = labels.to_string_lossy().replace(".labels.csv", "");
            let set = LabelledSet::read(Path::new(&name), labels)?;
            let began = Instant::now();
            let found = set.find();
            let took = began.elapsed();
            let counts = set.count(&found, least);
            if shows_misses && least == Tier::Likely {
                set.show_misses(&found);
            }
            total.add(&counts);
            let name = labels.file_name().unwrap_or_default().to_string_lossy().replace(".labels.csv", "");
            say(&format!("{least:8} {name:12} {counts} {:.2} s", took.as_secs_f64()));
        }
        say(&format!("{least:8} {:12} {total}", "all"));
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the output of a program")]
fn say(line: &str) {
    println!("{line}");
}

struct LabelledSet {
    records: Vec<Reference>,
    /// The cluster of each record.
    truth: Vec<String>,
}

struct EvaluatedSet {
    /// The mark of each record.
    marks: Vec<Option<duplicates::Mark>>,
    pairs: usize,
}

impl LabelledSet {
    fn read(name: &Path, labels: &Path) -> Result<Self, Failure> {
        let file = ["ris", "xml", "nbib", "csv"].map(|kind| name.with_extension(kind));
        let file = file.into_iter().find(|file| file.exists()).ok_or("no record file for the labels")?;
        let mut reader = Reader::new(Limits::default());
        let mut outcomes = reader.push(&std::fs::read(file)?)?;
        let (rest, _) = reader.finish()?;
        outcomes.extend(rest);
        let mut read = BTreeMap::new();
        for outcome in outcomes {
            if let Outcome::Read(record) = outcome {
                read.insert(record.number, record.reference);
            }
        }
        let (mut records, mut truth) = (Vec::new(), Vec::new());
        for line in std::fs::read_to_string(labels)?.lines().skip(1) {
            let mut cells = line.split(',');
            let number: u64 = cells.next().ok_or("a line without a record")?.parse()?;
            records.push(read.remove(&number).ok_or("a label without its record")?);
            truth.push(cells.next().ok_or("a line without a cluster")?.to_owned());
        }
        Ok(Self { records, truth })
    }

    fn find(&self) -> EvaluatedSet {
        let fields: Vec<Fields> = self.records.iter().map(Fields::new).collect();
        let members: Vec<Member> =
            fields.iter().map(|fields| Member { content: fields.content(), keep: false }).collect();
        let contents: BTreeMap<Content, Fields> =
            fields.iter().map(|fields| (fields.content(), fields.clone())).collect();
        let mut blocks: BTreeMap<u64, Vec<Content>> = BTreeMap::new();
        for (content, fields) in &contents {
            fields.keys().into_iter().for_each(|key| blocks.entry(key).or_default().push(*content));
        }
        let mut pairs = BTreeSet::new();
        for block in blocks.values() {
            for (at, one) in block.iter().enumerate() {
                pairs.extend(block[at + 1..].iter().map(|other| (*one, *other)));
            }
        }
        let compared = pairs.iter().filter_map(|(one, other)| {
            let (tier, reason) = compare(&contents[one], &contents[other])?;
            Some(Edge { pair: (*one, *other), tier, reason })
        });
        let edges: Vec<Edge> = compared.collect();
        EvaluatedSet { marks: marks(&members, &contents, &edges, &[]), pairs: pairs.len() }
    }

    /// Returns the first record of each record's work, according to the marks.
    fn roots(&self, found: &EvaluatedSet, least: Tier) -> Vec<usize> {
        let mut root: Vec<usize> = (0..self.records.len()).collect();
        for (member, mark) in found.marks.iter().enumerate() {
            let Some(mark) = mark.filter(|mark| mark.tier >= least) else { continue };
            let (from, into) = (root[member], root[mark.of]);
            root.iter_mut().filter(|root| **root == from).for_each(|root| *root = into);
        }
        root
    }

    fn count(&self, found: &EvaluatedSet, least: Tier) -> Counts {
        let roots = self.roots(found, least);
        let of = |set: BTreeSet<(&str, usize)>| set.len();
        let all = self.truth.iter().map(String::as_str);
        let (records, works) = (self.records.len(), of(all.clone().map(|cluster| (cluster, 0)).collect()));
        let predicted = of(roots.iter().map(|root| ("", *root)).collect());
        let both = of(all.zip(roots).collect());
        let right = records - both;
        let wrong = (records - predicted) - right;
        Counts { right, wrong, missed: (records - works) - right, left: works - wrong, pairs: found.pairs }
    }

    fn show_misses(&self, found: &EvaluatedSet) {
        let roots = self.roots(found, Tier::Likely);
        for (member, mark) in found.marks.iter().enumerate() {
            if let Some(mark) = mark.filter(|mark| mark.tier > Tier::Possible)
                && self.truth[member] != self.truth[mark.of]
            {
                self.show(&format!("WRONG {} {}", mark.tier, mark.reason), member, mark.of);
            }
            let first = (0..member).find(|other| self.truth[*other] == self.truth[member]);
            if let Some(first) = first.filter(|first| roots[*first] != roots[member]) {
                self.show(&format!("MISSED {mark:?}"), member, first);
            }
        }
    }

    fn show(&self, what: &str, one: usize, other: usize) {
        say(what);
        for record in [one, other] {
            let Reference { title, authors, year, journal, volume, issue, pages, doi, pmid, .. } =
                &self.records[record];
            let authors: Vec<_> = authors.iter().take(3).collect();
            say(&format!(
                "    {record} {title} | {authors:?} {year:?} {journal:?} {volume:?} {issue:?} {pages:?} {doi:?} {pmid:?}"
            ));
        }
    }
}

/// Counts in the units of published evaluations: a work with three records has two records to remove.
#[derive(Default)]
struct Counts {
    right: usize,
    wrong: usize,
    missed: usize,
    left: usize,
    pairs: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.missed += other.missed;
        self.left += other.left;
        self.pairs += other.pairs;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { right, wrong, missed, left, pairs } = self;
        let share = |part: usize, rest: usize| part as f64 / (part + rest).max(1) as f64;
        let (sensitivity, specificity) = (share(*right, *missed), share(*left, *wrong));
        write!(f, "{right:5} right {wrong:3} wrong {missed:3} missed {left:5} left  ")?;
        write!(f, "sensitivity {sensitivity:.4} specificity {specificity:.4}  {pairs} pairs")
    }
}
