//! The numbers of a study in databases, as notes for formats without fields for them.
//!
//! The readers of this project find the numbers after these labels again.

use references::Reference;

use crate::clean::line;

/// The numbers of a study, each with its label: `PMCID: PMC7012345`.
pub(crate) fn notes(reference: &Reference) -> Vec<String> {
    let labelled = [("PMCID", &reference.pmcid)];
    let labelled = labelled.into_iter().chain(without_pmcid(reference));
    let notes = labelled.filter_map(|(label, value)| Some(format!("{label}: {}", line(value.as_deref()?))));
    notes.chain(trials(reference)).collect()
}

/// Returns the same notes as [`notes`] without the number in PubMed Central, for formats that have a field for this
/// number.
pub(crate) fn notes_without_pmcid(reference: &Reference) -> Vec<String> {
    let labelled = without_pmcid(reference).into_iter();
    let notes = labelled.filter_map(|(label, value)| Some(format!("{label}: {}", line(value.as_deref()?))));
    notes.chain(trials(reference)).collect()
}

fn without_pmcid(reference: &Reference) -> [(&'static str, &Option<String>); 3] {
    [
        ("Embase ID", &reference.embase_id),
        ("Web of Science ID", &reference.wos_id),
        ("Accession number", &reference.accession),
    ]
}

fn trials(reference: &Reference) -> Option<String> {
    let trials: Vec<_> = reference.trial_ids.iter().map(|trial| line(trial)).collect();
    (!trials.is_empty()).then(|| format!("Trial registration: {}", trials.join(", ")))
}
