//! Parses the numbers that registers give to trials.

use super::forms::{MAX_NUMBER, is_digits};
use crate::split::eu_ctr;

/// Registers of trials: the beginning of their numbers, and the minimum number of digits after it.
const REGISTERS: [(&str, usize); 27] = [
    ("NCT", 8),
    ("ISRCTN", 8),
    ("EUCTR", 12),
    ("ACTRN", 14),
    ("DRKS", 8),
    ("ChiCTR", 8),
    ("CTRI/", 12),
    ("KCT", 7),
    ("IRCT", 10),
    ("PACTR", 12),
    ("TCTR", 11),
    ("UMIN", 9),
    ("jRCT", 9),
    ("JapicCTI-", 6),
    ("NTR", 3),
    ("RBR-", 1),
    ("RPCEC", 8),
    ("SLCTR/", 7),
    ("LBCTR", 10),
    ("PER-", 5),
    ("CTIS", 12),
    ("NL-OMON", 4),
    ("HKUCTR-", 1),
    ("SNCTP", 9),
    ("JMA-IIA", 5),
    ("ITMCTR", 10),
    ("CTR20", 6),
];

/// Parses the number of a registered trial.
pub(super) fn registration(word: &str) -> Option<String> {
    let word = word.trim_matches(['-', '/']);
    let word = word.strip_prefix("JPRN-").unwrap_or(word);
    if word.len() > MAX_NUMBER {
        return None;
    }
    let (start, digits) = REGISTERS
        .iter()
        .find(|(start, _)| word.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start)))?;
    let rest = &word[start.len()..];
    // `NCT-01234567`, and `ChiCTR-2000029308` for the `ChiCTR2000029308` of the register.
    let rest = rest.strip_prefix('-').filter(|rest| is_digits(rest)).unwrap_or(rest);
    let found = rest.bytes().filter(u8::is_ascii_digit).count();
    let letters = rest.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_number = found >= *digits && rest.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let is_plain = match *start {
        "RBR-" => rest.len() >= 5,
        "EUCTR" | "CTIS" => is_eudract(rest),
        "ChiCTR" | "IRCT" | "jRCT" | "ACTRN" => letters <= 4,
        _ => letters == 0,
    };
    // ANZCTR shows its numbers with a letter for the state of the registration.
    let rest = if *start == "ACTRN" { rest.trim_end_matches(['p', 'P', 'r', 'R']) } else { rest };
    // The names of the countries of EUCTR are not part of the number.
    let rest = if matches!(*start, "EUCTR" | "CTIS") { rest.get(..14)? } else { rest };
    (is_number && is_plain).then(|| format!("{start}{rest}"))
}

/// Returns `true` for the number of a registered trial, alone or before a comma.
pub(crate) fn is_registration(name: &str) -> bool {
    let name = name.trim_end_matches([',', ' ']);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    digits > 4 && !name.contains(' ') && registration(name).is_some()
}

/// Parses a European number without the name of its register, possibly with its version or country.
pub(super) fn european_registration(word: &str) -> Option<String> {
    let rest = if is_eudract(word) && word.starts_with("20") { word.get(14..)? } else { return None };
    let is_end = match rest.strip_prefix('-') {
        None => rest.is_empty(),
        Some(end) => end.len() == 2 && (is_digits(end) || end.bytes().all(|byte| byte.is_ascii_uppercase())),
    };
    is_end.then(|| format!("{}{}", european(word), &word[..14]))
}

/// Parses a number of the Dutch register, which is too short without its name: `Netherlands Trial Register NL8888`.
pub(super) fn dutch_registration(before: &str, number: &str) -> Option<String> {
    let digits = number.strip_prefix("NL")?;
    let is_number = (3..=5).contains(&digits.len()) && is_digits(digits);
    let is_named = ["register", "registry", "ntr"].iter().any(|name| before.eq_ignore_ascii_case(name));
    (is_number && is_named).then(|| number.to_owned())
}

/// Parses a number that is separated from the name of its register: `NCT 01234567`.
pub(super) fn apart(register: &str, number: &str) -> Option<String> {
    let is_name = REGISTERS.iter().any(|(known, _)| known.eq_ignore_ascii_case(register));
    (is_name && !number.is_empty() && is_digits(number))
        .then(|| registration(&[register, number].concat()))?
}

/// Returns `true` for the form of the European register: `2004-001234-12`.
pub(super) fn is_eudract(value: &str) -> bool {
    eu_ctr::begins_with_number(value.as_bytes())
}

/// The register of a European number. The clinical trials information system continues the years with numbers above
/// 500000.
pub(super) fn european(number: &str) -> &'static str {
    if number.as_bytes().get(5).is_some_and(|digit| *digit >= b'5') { "CTIS" } else { "EUCTR" }
}
