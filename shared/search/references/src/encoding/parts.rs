//! Finds single characters that were encoded in UTF-8 twice among others that were not.
//!
//! Such a character has become two or three characters: `Ã¼`, `â€™`. The same characters occur in other texts at the end of
//! a word in capitals: `“IRMÔ`. Letters therefore only count if another letter follows them, or a small one precedes
//! them, or if the text has other such characters.

use super::C1;

/// Decodes these characters. Returns `None` if there are none.
pub(super) fn decoded(text: &str) -> Option<String> {
    decode(text, false).map(|decoded| decode(text, true).unwrap_or(decoded))
}

fn decode(text: &str, is_sure: bool) -> Option<String> {
    let (mut out, mut taken) = (String::new(), 0);
    let mut before = None;
    for (at, first) in text.char_indices().filter(|(_, c)| is_first(*c)) {
        if at < taken {
            continue;
        }
        if at > taken {
            before = text[taken..at].chars().next_back();
        }
        if let Some((c, length)) =
            character(first, before.filter(|_| !is_sure), &text[at + first.len_utf8()..], is_sure)
        {
            out.push_str(&text[taken..at]);
            out.push(c);
            taken = at + first.len_utf8() + length;
            before = Some(c);
        }
    }
    out.push_str(&text[taken..]);
    (taken > 0).then_some(out)
}

/// Returns `true` for the first character of a letter of Latin alphabets, or of punctuation.
fn is_first(c: char) -> bool {
    matches!(c, 'Â' | 'Ã' | 'Ä' | 'Å' | 'â')
}

/// The character that begins with `first`, and the number of bytes behind it.
fn character(first: char, before: Option<char>, rest: &str, is_sure: bool) -> Option<(char, usize)> {
    let mut others = rest.chars();
    let second = others.next()?;
    if first == 'â' {
        return punctuation(second, others.next());
    }
    let low = continuation(second)?;
    let found = char::from_u32(((first as u32 & 0x1f) << 6) | low)?;
    let follows_small = before.is_some_and(char::is_lowercase);
    let is_clear = if first == 'Â' {
        !found.is_control() && !before.is_some_and(char::is_uppercase)
    } else {
        is_sure || follows_small || others.next().is_some_and(char::is_alphabetic)
    };
    is_clear.then_some((found, second.len_utf8()))
}

/// Decodes `â€™`, `â€“`, `â„¢` and `â‰¥`. Programs drop the last byte of a closing quotation mark, which is undefined in
/// Windows-1252.
fn punctuation(second: char, third: Option<char>) -> Option<(char, usize)> {
    const BLOCKS: [u32; 5] = [0x00, 0x02, 0x04, 0x08, 0x09];
    let block = continuation(second).filter(|block| BLOCKS.contains(block))?;
    // Another program has replaced that byte.
    if let Some(third @ char::REPLACEMENT_CHARACTER) = third.filter(|_| block == 0) {
        return Some(('”', second.len_utf8() + third.len_utf8()));
    }
    let Some((third, low)) = third.and_then(|third| Some((third, continuation(third)?))) else {
        return (block == 0).then_some(('”', second.len_utf8()));
    };
    let found = char::from_u32(0x2000 | (block << 6) | low)?;
    Some((found, second.len_utf8() + third.len_utf8()))
}

/// The lower six bits of a character that is a continuation byte in Windows-1252 or ISO-8859-1.
fn continuation(c: char) -> Option<u32> {
    let byte = match u32::from(c) {
        byte @ 0x80..=0xbf => byte,
        0..0x80 | 0xc0..=0xff => return None,
        _ => 0x80 + u32::try_from(C1.iter().position(|known| *known == c)?).ok()?,
    };
    Some(byte & 0x3f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_characters_are_decoded() {
        for (text, plain) in [
            ("Müller: â€œWe donâ€™tâ€\u{9d} â€“ 5Â°C", "Müller: “We don’t” – 5°C"),
            ("Müller: â€œWe donâ€™tâ€ and", "Müller: “We don’t” and"),
            ("Müller, JosÃ© Ã‰tienne SÃ¡nchez BÅ‚och", "Müller, José Étienne Sánchez Błoch"),
            ("Müller Ã–ZEL pâ‰¤5, Xâ„¢, 3Â\u{a0}mg", "Müller ÖZEL p≤5, X™, 3\u{a0}mg"),
            ("\u{c3}\u{81}lvarez ü, Ã‰.; “RenÃ©”, â€œaâ€\u{fffd}", "Álvarez ü, É.; “René”, “a”"),
        ] {
            assert_eq!(decoded(text).as_deref(), Some(plain));
        }
        for text in ["“IRMÔ", "«GRÂ»", "SÃO PAULO, GRÃ", "gâteau, âge", "„BÄ“", "â", "Ã", "Mâ’x"]
        {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
