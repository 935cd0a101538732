//! The memory and the time of marking duplicates.
//!
//! Generated studies are stored in a temporary database. Then the file is listed as read, and the studies are compared
//! and marked as `parse-references` does.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::SystemHost;
use embedded::Store;
use imports::{
    FileFence, FileId, FileRef, ParseAttempts, ProjectId, ReadStudies, SearchId, Study, StudyRef,
    WriteStudies,
};
use messages::Host;
use references::{READER_VERSION, Reference};
use serde::Serialize;
use service::marking::DuplicateMarking;
use testing::search;

use super::memory;

/// The maximum memory that marking may add to a function for any number of studies, in MiB.
pub const PEAK_BOUND: f64 = 60.0;

/// The inverse of the share of duplicates.
pub(super) const REPEATED: u64 = 10;

/// The result of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of studies, each with all compared fields.
    pub studies: u64,
    /// The number of duplicates.
    pub marked: u64,
    /// The time for storing the studies.
    pub storing_s: f64,
    /// The time for comparing and marking the studies.
    pub marking_s: f64,
    /// The peak memory added by marking, in MiB; `None` if the system does not report it.
    pub added_mib: Option<f64>,
}

impl Report {
    /// Returns `true` if every duplicate was found within the bound.
    pub fn holds(&self) -> bool {
        self.marked == self.studies / REPEATED && self.added_mib.is_none_or(|added| added <= PEAK_BOUND)
    }
}

/// Marks the duplicates among this many studies, in a data directory below `dir`.
pub async fn measure(dir: &Path, studies: u64) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir_in(dir)?;
    let host = Arc::new(SystemHost);
    let store = Arc::new(Store::open(
        folder.path(),
        host.clone(),
        embedded::Settings::new(&imports::queues::QUEUES),
    )?);
    let id = || host.fresh_id();
    let (project, search_id, file_id) =
        (ProjectId::from_uuid(id()), SearchId::from_uuid(id()), FileId::from_uuid(id()));
    let fence = store.start(search_id, file_id, READER_VERSION).await?.fence;
    let held = FileFence { search_id, file_id, fence };
    let mut storing = Duration::ZERO;
    let each = store.batching().records;
    for first in (0..studies).step_by(each) {
        let batch: Vec<Study> = (first..studies.min(first + each as u64))
            .map(|n| {
                let at = StudyRef { search_id, file_id, record: n + 1 };
                let reference = reference(n);
                Study {
                    id: at.id(),
                    project_id: project,
                    search_id,
                    file_id,
                    record: at.record,
                    line: at.record,
                    bytes: None,
                    reference,
                    duplicate: None,
                }
            })
            .collect();
        let began = Instant::now();
        store.store(&held, batch, vec![]).await?;
        storing += began.elapsed();
    }
    store.finish(&search::parsed(search_id, file_id, 0)).await?;
    memory::reset_peak();
    let before = memory::resident_mib();
    let duplicates =
        DuplicateMarking { stored: store.clone(), compare: store.clone(), records: store.clone() };
    let began = Instant::now();
    duplicates.file_added(project, FileRef { search_id, file_id }, 0, || false).await?;
    let marking = began.elapsed();
    let added_mib = memory::peak_mib().zip(before).map(|(peak, before)| peak - before);
    let marked = store.marked(search_id, file_id).await?.duplicates();
    let (storing_s, marking_s) = (storing.as_secs_f64(), marking.as_secs_f64());
    Ok(Report { studies, marked, storing_s, marking_s, added_mib })
}

/// Generates a study. Every tenth repeats the previous one in the form of another database. As in a review, words,
/// study designs, authors, years, volumes and pages recur, but few works share an author and a year.
pub(super) fn reference(n: u64) -> Reference {
    let is_repeated = n % REPEATED == REPEATED - 1;
    let work = if is_repeated { n - 1 } else { n };
    let mut draws = Draws::of(work);
    let mut one_of = |all: &[&'static str]| all[draws.below(all.len() as u64) as usize];
    let family = [one_of(&BEGINNINGS), one_of(&MIDDLES), one_of(&ENDS)].concat();
    let title = format!(
        "{} {} for {} in {} {}: {}",
        one_of(&KINDS),
        one_of(&TREATMENTS),
        one_of(&CONDITIONS),
        one_of(&AGES),
        one_of(&PEOPLE),
        one_of(&DESIGNS)
    );
    let journal = one_of(&CONDITIONS);
    let (year, volume, page) = (1990 + draws.below(36), 1 + draws.below(80), 1 + draws.below(2_000));
    Reference {
        title,
        authors: vec![if is_repeated { format!("{family} G") } else { format!("{family}, Given") }],
        year: i32::try_from(year).ok(),
        journal: Some(if is_repeated { format!("J {journal}") } else { format!("Journal of {journal}") }),
        volume: Some(volume.to_string()),
        pages: Some(format!("{page}-{}", page + 9)),
        doi: (!is_repeated).then(|| format!("10.5555/journal.{year}.{work}")),
        pmid: Some(format!("{}", 30_000_000 + work)),
        r#abstract: Some(format!("Intervention {work} was given to adults. ").repeat(20)),
        ..Reference::default()
    }
}

/// Returns pseudorandom numbers that depend only on the work (SplitMix64, <https://prng.di.unimi.it/splitmix64.c>).
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

pub(super) const BEGINNINGS: [&str; 16] = [
    "An", "Ber", "Cas", "Dom", "Fer", "Gar", "Hol", "Jan", "Kow", "Lin", "Mar", "Nor", "Pet", "Ros", "Sal",
    "Wal",
];
pub(super) const MIDDLES: [&str; 16] =
    ["a", "be", "ci", "da", "e", "ga", "i", "ka", "lo", "me", "ni", "o", "ra", "se", "ti", "u"];
pub(super) const ENDS: [&str; 16] = [
    "berg", "da", "dez", "feld", "ger", "ko", "ler", "man", "ne", "nen", "ri", "sen", "ska", "ti", "ton",
    "va",
];
const KINDS: [&str; 16] = [
    "Early",
    "Intensive",
    "Brief",
    "Oral",
    "Inhaled",
    "Supervised",
    "Remote",
    "Intermittent",
    "Low-dose",
    "High-dose",
    "Combined",
    "Delayed",
    "Topical",
    "Structured",
    "Continuous",
    "Repeated",
];
const TREATMENTS: [&str; 24] = [
    "zinc",
    "exercise",
    "metformin",
    "counselling",
    "corticosteroids",
    "probiotics",
    "acupuncture",
    "melatonin",
    "ketamine",
    "mindfulness",
    "physiotherapy",
    "antibiotics",
    "oxygen",
    "statins",
    "lithium",
    "vitamin D",
    "music therapy",
    "screening",
    "education",
    "ventilation",
    "insulin",
    "aspirin",
    "yoga",
    "dialysis",
];
const CONDITIONS: [&str; 24] = [
    "common cold",
    "asthma",
    "depression",
    "heart failure",
    "stroke",
    "diabetes",
    "low back pain",
    "sepsis",
    "obesity",
    "insomnia",
    "migraine",
    "pneumonia",
    "schizophrenia",
    "osteoarthritis",
    "anaemia",
    "delirium",
    "hypertension",
    "epilepsy",
    "psoriasis",
    "dementia",
    "malaria",
    "tuberculosis",
    "eczema",
    "preterm birth",
];
const AGES: [&str; 6] = ["young", "older", "hospitalised", "rural", "pregnant", "frail"];
const PEOPLE: [&str; 6] = ["adults", "patients", "volunteers", "outpatients", "residents", "participants"];
const DESIGNS: [&str; 8] = [
    "a randomised controlled trial",
    "a systematic review",
    "a cohort study",
    "a double-blind trial",
    "a feasibility study",
    "results of a survey",
    "a case series",
    "a cluster randomised trial",
];
