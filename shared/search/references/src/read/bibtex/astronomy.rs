//! Names of journals of astronomy, for which NASA's library writes commands of TeX.

/// The commands and names, in the order of the commands
/// (<https://ui.adsabs.harvard.edu/help/actions/journal-macros>).
const JOURNALS: [(&str, &str); 24] = [
    ("aap", "Astronomy and Astrophysics"),
    ("aapr", "Astronomy and Astrophysics Review"),
    ("aaps", "Astronomy and Astrophysics Supplement Series"),
    ("aj", "Astronomical Journal"),
    ("apj", "Astrophysical Journal"),
    ("apjl", "Astrophysical Journal Letters"),
    ("apjs", "Astrophysical Journal Supplement Series"),
    ("araa", "Annual Review of Astronomy and Astrophysics"),
    ("grl", "Geophysical Research Letters"),
    ("icarus", "Icarus"),
    ("jcap", "Journal of Cosmology and Astroparticle Physics"),
    ("jgr", "Journal of Geophysical Research"),
    ("mnras", "Monthly Notices of the Royal Astronomical Society"),
    ("nar", "New Astronomy Reviews"),
    ("nat", "Nature"),
    ("pasa", "Publications of the Astronomical Society of Australia"),
    ("pasj", "Publications of the Astronomical Society of Japan"),
    ("pasp", "Publications of the Astronomical Society of the Pacific"),
    ("planss", "Planetary and Space Science"),
    ("pra", "Physical Review A"),
    ("prd", "Physical Review D"),
    ("prl", "Physical Review Letters"),
    ("solphys", "Solar Physics"),
    ("ssr", "Space Science Reviews"),
];

/// Returns the journal that a command names.
pub(super) fn journal(text: &str) -> Option<&'static str> {
    let name = text.trim().strip_prefix('\\')?;
    let at = JOURNALS.binary_search_by_key(&name, |(command, _)| command).ok()?;
    Some(JOURNALS[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_journals() {
        assert!(JOURNALS.is_sorted_by_key(|(command, _)| command));
        assert_eq!(journal("\\apjl"), Some("Astrophysical Journal Letters"));
        assert_eq!((journal("apjl"), journal("\\unknown")), (None, None));
    }
}
