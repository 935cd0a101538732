//! Decodes character references and named entities, once: `&amp;lt;` becomes `&lt;`. Accents of TeX in braces are also
//! decoded, because programs convert BibTeX to other formats without them.

use std::borrow::Cow;

use memchr::memchr;

use super::latex;
use crate::work::spend;

/// The maximum length of a reference: `&thetasym;`, `&#x10FFFF;`.
const MAX_LENGTH: usize = 10;

/// Decodes character references and named entities in a text, once: `&amp;lt;` becomes `&lt;`. Unknown references are
/// kept unchanged.
#[must_use]
pub fn decode(text: &str) -> Cow<'_, str> {
    match with_accents(text) {
        Some(text) => Cow::Owned(references(&text).into_owned()),
        None => references(text),
    }
}

/// Replaces accents and letters of TeX that have braces: `{\"u}`, `\"{u}`, `{\o}`. Returns `None` if there are none.
fn with_accents(text: &str) -> Option<String> {
    memchr(b'\\', text.as_bytes())?;
    if !spend(text.len()) {
        return None;
    }
    let (mut out, mut rest, mut found) = (String::new(), text, false);
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let start = if rest[..at].ends_with('{') { at - 1 } else { at };
        let group = accent(&rest[start..]).map(|length| &rest[start..start + length]);
        let letter = group.map(latex::decode).filter(|letter| !letter.contains(['\\', '{', '}']));
        let end = match (group, letter) {
            (Some(group), Some(letter)) => {
                out.push_str(&rest[..start]);
                out.push_str(&letter);
                found = true;
                start + group.len()
            }
            _ => {
                out.push_str(&rest[..=at]);
                at + 1
            }
        };
        rest = &rest[end..];
    }
    out.push_str(rest);
    found.then_some(out)
}

/// The length of an accented letter of TeX at the beginning of a text.
fn accent(text: &str) -> Option<usize> {
    const MAX_GROUP: usize = 12;
    const LETTERS: [&str; 13] = ["ss", "o", "O", "l", "L", "ae", "AE", "oe", "OE", "aa", "AA", "i", "j"];
    let bytes = &text.as_bytes()[..text.len().min(MAX_GROUP)];
    let is_accent = |byte: &u8| {
        matches!(
            byte,
            b'"' | b'\'' | b'`' | b'^' | b'~' | b'=' | b'.' | b'u' | b'v' | b'H' | b'c' | b'r' | b'k'
        )
    };
    match bytes {
        // `\"{u}`, `\c{c}`
        [b'\\', mark, b'{', rest @ ..] if is_accent(mark) => {
            let end = memchr(b'}', rest)?;
            let is_letter =
                matches!(&rest[..end], [letter] | [b'\\', letter] if letter.is_ascii_alphabetic());
            is_letter.then_some(end + 4)
        }
        // `{\"u}`, `{\"{u}}`, `{\'\i}`, `{\v c}`, `{\o}`
        [b'{', b'\\', rest @ ..] => {
            let end = memchr(b'}', rest)?;
            let end =
                if rest.get(end + 1) == Some(&b'}') && rest[..end].contains(&b'{') { end + 1 } else { end };
            let inner = text.get(2..2 + end)?;
            let is_accented = inner.as_bytes().first().is_some_and(is_accent)
                && inner[1..].trim_matches([' ', '{', '}', '\\']).len() == 1
                && (!inner.starts_with(|c: char| c.is_ascii_alphabetic())
                    || inner[1..].starts_with([' ', '{', '\\']));
            (is_accented || LETTERS.contains(&inner)).then_some(end + 3)
        }
        _ => None,
    }
}

fn references(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    if !spend(text.len()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut next) = (text, Some(first));
    while let Some(at) = next {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match reference(rest) {
            Some((c, length)) => {
                out.push(c);
                length
            }
            None => {
                out.push('&');
                1
            }
        };
        rest = &rest[length..];
        next = memchr(b'&', rest.as_bytes());
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character for the reference at the beginning, and the length of the reference.
fn reference(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(MAX_LENGTH + 2).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let c = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(name)?,
    };
    Some((c, end + 1))
}

/// NUL and other control characters do not occur in text; references to them are kept unchanged.
fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?).filter(|c| !c.is_control() || c.is_ascii_whitespace())
}

fn named(name: &str) -> Option<char> {
    match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => {}
    }
    if let Some(at) = LATIN.iter().position(|known| *known == name) {
        // The 96 names are in the order of the characters.
        return char::from_u32(0xA0 + u32::try_from(at).ok()?);
    }
    OTHERS.iter().find(|(known, _)| *known == name).map(|(_, c)| *c)
}

/// The named entities for U+00A0 to U+00FF, in this order.
#[rustfmt::skip]
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm",
    "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig",
    "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN",
    "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc",
    "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// Other entities that occur in titles and abstracts: Greek letters, punctuation, mathematics.
#[rustfmt::skip]
const OTHERS: [(&str, char); 93] = [
    ("Alpha", 'Α'), ("Beta", 'Β'), ("Gamma", 'Γ'), ("Delta", 'Δ'), ("Epsilon", 'Ε'), ("Zeta", 'Ζ'), ("Eta", 'Η'),
    ("Theta", 'Θ'), ("Iota", 'Ι'), ("Kappa", 'Κ'), ("Lambda", 'Λ'), ("Mu", 'Μ'), ("Nu", 'Ν'), ("Xi", 'Ξ'),
    ("Omicron", 'Ο'), ("Pi", 'Π'), ("Rho", 'Ρ'), ("Sigma", 'Σ'), ("Tau", 'Τ'), ("Upsilon", 'Υ'), ("Phi", 'Φ'),
    ("Chi", 'Χ'), ("Psi", 'Ψ'), ("Omega", 'Ω'), ("alpha", 'α'), ("beta", 'β'), ("gamma", 'γ'), ("delta", 'δ'),
    ("epsilon", 'ε'), ("zeta", 'ζ'), ("eta", 'η'), ("theta", 'θ'), ("iota", 'ι'), ("kappa", 'κ'), ("lambda", 'λ'),
    ("mu", 'μ'), ("nu", 'ν'), ("xi", 'ξ'), ("omicron", 'ο'), ("pi", 'π'), ("rho", 'ρ'), ("sigmaf", 'ς'),
    ("sigma", 'σ'), ("tau", 'τ'), ("upsilon", 'υ'), ("phi", 'φ'), ("chi", 'χ'), ("psi", 'ψ'), ("omega", 'ω'),
    ("ndash", '–'), ("mdash", '—'), ("lsquo", '‘'), ("rsquo", '’'), ("sbquo", '‚'), ("ldquo", '“'), ("rdquo", '”'),
    ("bdquo", '„'), ("lsaquo", '‹'), ("rsaquo", '›'), ("dagger", '†'), ("Dagger", '‡'), ("bull", '•'),
    ("hellip", '…'), ("permil", '‰'), ("prime", '′'), ("Prime", '″'), ("euro", '€'), ("trade", '™'), ("larr", '←'),
    ("uarr", '↑'), ("rarr", '→'), ("darr", '↓'), ("harr", '↔'), ("minus", '−'), ("radic", '√'), ("infin", '∞'),
    ("asymp", '≈'), ("ne", '≠'), ("equiv", '≡'), ("le", '≤'), ("ge", '≥'), ("sim", '∼'), ("part", '∂'), ("sum", '∑'),
    ("ensp", '\u{2002}'), ("emsp", '\u{2003}'), ("thinsp", '\u{2009}'), ("OElig", 'Œ'), ("oelig", 'œ'),
    ("Scaron", 'Š'), ("scaron", 'š'), ("Yuml", 'Ÿ'), ("tilde", '˜'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_references_are_decoded_once() {
        for (text, decoded) in [
            ("a &amp; b", "a & b"),
            ("&amp;lt;i&amp;gt;", "&lt;i&gt;"),
            ("caf&eacute; &#233; &#xE9;", "café é é"),
            ("&Agrave;&yuml;&frac12;&beta;&ge;", "Àÿ½β≥"),
            ("R&D; &unknown; &; & &amp", "R&D; &unknown; &; & &amp"),
            ("&#0; &#xD800; &#x110000; &#99999999999;", "&#0; &#xD800; &#x110000; &#99999999999;"),
            ("&é;&", "&é;&"),
        ] {
            assert_eq!(decode(text), decoded);
        }
        assert!(matches!(decode("plain"), Cow::Borrowed(_)));
    }
}
