//! LaTeX commands for characters and around words.

/// The text without braces, with accents and escaped characters as themselves. Unknown commands are kept
/// as they are: formulas would be worse without them.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '{', '}', '~', '-']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (decoded, length) = mark(rest);
        out.push_str(&decoded);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// The meaning of the mark at the front, and its length.
fn mark(text: &str) -> (String, usize) {
    if let Some(length) =
        ["---", "--"].iter().find(|dashes| text.starts_with(**dashes)).map(|dashes| dashes.len())
    {
        return (if length == 3 { "—" } else { "–" }.to_owned(), length);
    }
    match text.as_bytes()[0] {
        b'{' | b'}' => (String::new(), 1),
        b'~' => (" ".to_owned(), 1),
        b'-' => ("-".to_owned(), 1),
        _ => command(text),
    }
}

/// The meaning of a backslash and what belongs to it.
fn command(text: &str) -> (String, usize) {
    let mut characters = text.chars().skip(1);
    let Some(first) = characters.next() else { return ("\\".to_owned(), 1) };
    if matches!(first, '&' | '%' | '$' | '#' | '_' | '{' | '}') {
        return (first.to_string(), 2);
    }
    if !first.is_ascii() {
        return ("\\".to_owned(), 1);
    }
    if !first.is_ascii_alphabetic() {
        return accented(text, 2).unwrap_or_else(|| ("\\".to_owned(), 1));
    }
    let length = 1 + text[1..].bytes().take_while(u8::is_ascii_alphabetic).count();
    if let Some((_, c)) = SYMBOLS.iter().find(|(name, _)| *name == &text[1..length]) {
        // One blank after a command only ends it, and so does an empty pair of braces.
        let blank = usize::from(text[length..].starts_with(' '));
        return ((*c).to_owned(), length + blank);
    }
    // `\c{c}`, `\v s`: an accent in letters.
    if length == 2
        && let Some(found) = accented(text, 2)
    {
        return found;
    }
    if matches!(
        &text[1..length],
        "emph" | "textit" | "textbf" | "textsc" | "textrm" | "textsf" | "texttt" | "mathrm"
    ) {
        return (String::new(), length);
    }
    ("\\".to_owned(), 1)
}

/// The letter after an accent, with or without braces around it; the accent's command takes `at` bytes.
fn accented(text: &str, at: usize) -> Option<(String, usize)> {
    let accent = text[1..].chars().next()?;
    let inner = text[at..].trim_start_matches([' ', '{']);
    let skipped = text.len() - at - inner.len();
    let (letter, letter_length) = match inner.strip_prefix("\\i").or_else(|| inner.strip_prefix("\\j")) {
        Some(_) => (inner[1..].chars().next()?, 2),
        None => (inner.chars().next()?, inner.chars().next()?.len_utf8()),
    };
    let (_, from, to) = ACCENTS.iter().find(|(known, ..)| *known == accent)?;
    let position = from.chars().position(|known| known == letter)?;
    let c = to.chars().nth(position)?;
    // A closing brace is dropped by itself.
    Some((c.to_string(), at + skipped + letter_length))
}

/// An accent, the letters that it is put on, and what they become.
const ACCENTS: [(char, &str, &str); 14] = [
    ('"', "aeiouyAEIOUY", "äëïöüÿÄËÏÖÜŸ"),
    ('\'', "aeiouycnszlrAEIOUYCNSZLR", "áéíóúýćńśźĺŕÁÉÍÓÚÝĆŃŚŹĹŔ"),
    ('`', "aeiouAEIOU", "àèìòùÀÈÌÒÙ"),
    ('^', "aeioucghjswyAEIOUCGHJSWY", "âêîôûĉĝĥĵŝŵŷÂÊÎÔÛĈĜĤĴŜŴŶ"),
    ('~', "anoiuANOIU", "ãñõĩũÃÑÕĨŨ"),
    ('=', "aeiouAEIOU", "āēīōūĀĒĪŌŪ"),
    ('.', "cegzICEGZ", "ċėġżİĊĖĠŻ"),
    ('c', "cstgkCSTGK", "çşţģķÇŞŢĢĶ"),
    ('v', "cdenrstzgCDENRSTZG", "čďěňřšťžǧČĎĚŇŘŠŤŽǦ"),
    ('u', "aegiouAEGIOU", "ăĕğĭŏŭĂĔĞĬŎŬ"),
    ('H', "ouOU", "őűŐŰ"),
    ('k', "aeiuAEIU", "ąęįųĄĘĮŲ"),
    ('r', "auAU", "åůÅŮ"),
    ('d', "aeiouAEIOU", "ạẹịọụẠẸỊỌỤ"),
];

const SYMBOLS: [(&str, &str); 25] = [
    ("ss", "ß"),
    ("ae", "æ"),
    ("AE", "Æ"),
    ("oe", "œ"),
    ("OE", "Œ"),
    ("o", "ø"),
    ("O", "Ø"),
    ("aa", "å"),
    ("AA", "Å"),
    ("l", "ł"),
    ("L", "Ł"),
    ("i", "ı"),
    ("j", "ȷ"),
    ("dh", "ð"),
    ("th", "þ"),
    ("textendash", "–"),
    ("textemdash", "—"),
    ("textquoteright", "’"),
    ("textquoteleft", "‘"),
    ("textquotedblleft", "“"),
    ("textquotedblright", "”"),
    ("textregistered", "®"),
    ("texttrademark", "™"),
    ("textdegree", "°"),
    ("textasciitilde", "~"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_symbols_become_characters() {
        for (text, decoded) in [
            (r#"M{\"u}ller and M\"{u}ller and M\"uller"#, "Müller and Müller and Müller"),
            (r"Ren\'{e} Fran\c{c}ois \v{S}koda \'{\i}", "René François Škoda í"),
            (r"Stra{\ss}e, \O rsted, {\L}ukasz", "Straße, Ørsted, Łukasz"),
            (r"Nu\~nez~B, 5\% \& \$3 \#1 a\_b", "Nuñez B, 5% & $3 #1 a_b"),
            (r"The {DNA} of {{\em E. coli}}", r"The DNA of \em E. coli"),
            (r"\emph{in vivo} and \textit{in vitro}", "in vivo and in vitro"),
            ("1--9 --- well-known", "1–9 — well-known"),
            (r"$\alpha$-test \", r"$\alpha$-test \"),
            (r#"\ü \"ü \"{ \'"#, r#"\ü \"ü \" \'"#),
        ] {
            assert_eq!(decode(text), decoded);
        }
    }

    #[test]
    fn each_accented_letter_has_its_letter() {
        for (accent, from, to) in ACCENTS {
            assert_eq!(from.chars().count(), to.chars().count(), "{accent}");
        }
    }
}
