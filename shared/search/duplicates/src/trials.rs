//! The numbers of registered trials, and the records that are registrations.

use references::Reference;

/// The tags that hold the number of a registered trial.
const TAGS: [&str; 9] = [
    "TrialID",
    "Trial ID",
    "trial_id",
    "NCT Number",
    "NCT ID",
    "EudraCT Number",
    "ISRCTN",
    "Trial number",
    "ctNumber",
];
/// The registers, as their numbers begin. Databases also write them as authors.
const REGISTERS: [&str; 19] = [
    "nct", "isrctn", "euctr", "ctis", "actrn", "drks", "chictr", "ctri", "kct", "irct", "pactr", "tctr",
    "jprn", "umin", "ntr", "rbr", "rpcec", "slctr", "lbctr",
];
/// Parts of the addresses and names of registers.
const NAMES: [&str; 5] =
    ["clinicaltrials.gov", "isrctn.com", "trialsearch", "chictr.org", "clinical trials register"];
/// The maximum number of letters of the number of a trial.
const MAX_NUMBER: usize = 40;

/// The number of a registered trial, in lower case: letters and digits only. The value is empty if the record is not a
/// registration. Articles about a trial also state its number.
pub(crate) fn registration(reference: &Reference) -> String {
    let journal = reference.journal.as_deref().unwrap_or_default();
    let is_register = |text: &str| NAMES.iter().any(|name| text.contains(name));
    let is_link = journal.starts_with("http");
    let in_register = is_link || is_register(&journal.to_lowercase());
    let is_placed = reference.volume.is_some() || reference.pages.is_some();
    let is_personal = reference.authors.iter().any(|author| author.contains(", "));
    let is_article = !in_register && (is_placed || !journal.is_empty() || is_personal);
    let tagged = TAGS.iter().filter_map(|tag| reference.extra.get(*tag)?.first()).filter(|_| !is_article);
    let tagged = tagged.map(|number| plain(number)).find(|number| is_in_register(number));
    let accession = reference.extra.get("AN").and_then(|values| values.first());
    let by_link = reference.url.as_deref().filter(|url| is_register(url) && !is_placed);
    let links = by_link.into_iter().chain(Some(journal).filter(|_| is_link));
    let linked = links.filter_map(|link| link.rsplit(['/', '=']).next());
    let stated =
        accession.map(String::as_str).into_iter().chain(linked).map(plain).find(|number| is_number(number));
    let named = || {
        reference.trial_ids.first().filter(|_| in_register || by_link.is_some()).map(|number| plain(number))
    };
    tagged.or(stated).or_else(named).unwrap_or_default()
}

/// Returns `true` for a value under a tag for the number of a trial, unless it is another text: `Not reported`.
fn is_in_register(number: &str) -> bool {
    /// Registers whose names are too short to show a number on their own.
    const SHORT: [&str; 2] = ["nl", "per"];
    let mut registers = REGISTERS.iter().chain(&SHORT);
    let rest = registers.find_map(|register| number.strip_prefix(register));
    rest.is_some_and(|rest| rest.len() > 2 && rest.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Returns `true` for the number of a trial, which begins with the name of its register.
fn is_number(number: &str) -> bool {
    let rest = REGISTERS.iter().find_map(|register| number.strip_prefix(register));
    rest.is_some_and(|rest| rest.bytes().filter(u8::is_ascii_digit).count() >= 5)
}

/// The letters and digits of a number in lower case. The country and the version of a European number, and the common
/// prefix of a Japanese number, are omitted.
fn plain(number: &str) -> String {
    european(number).unwrap_or_else(|| {
        let letters = number.strip_prefix("JPRN-").unwrap_or(number).chars();
        let letters = letters.filter(char::is_ascii_alphanumeric).take(MAX_NUMBER);
        letters.collect::<String>().to_ascii_lowercase()
    })
}

/// The number of a European trial, without its country or version: `EUCTR2004-001234-12-GB`, `2024-501234-12-00`.
fn european(number: &str) -> Option<String> {
    let start = ["EUCTR", "CTIS"].iter().find_map(|register| number.strip_prefix(register)).unwrap_or(number);
    let mut parts = start.split('-');
    let digits: String = [4, 6, 2]
        .iter()
        .map(|length| {
            parts
                .next()
                .filter(|part| part.len() == *length && part.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .collect::<Option<Vec<&str>>>()?
        .concat();
    Some(format!("euctr{digits}"))
}

/// Returns `true` for the number of a registered trial, which takes the place of a DOI.
pub(crate) fn is_registration(doi: &str) -> bool {
    !doi.is_empty() && !doi.starts_with("10.")
}

/// Returns `true` for the numbers of two trials in one register. A trial may have a number in each of several registers.
pub(crate) fn are_other_trials(one: &str, other: &str) -> bool {
    let register =
        |number: &str| number.find(|c: char| c.is_ascii_digit()).map(|end| number[..end].to_owned());
    is_registration(one) && is_registration(other) && one != other && register(one) == register(other)
}

/// Returns `true` for a family name that is the name of a register, or the number of a trial.
pub(crate) fn is_register(family: &str) -> bool {
    REGISTERS.contains(&family) || is_number(family)
}
