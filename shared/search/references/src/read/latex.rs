//! Converts TeX to Unicode text.
//!
//! Commands for characters and accents become characters. Commands around words are dropped, and the words are kept. An
//! unknown command without an argument is kept, because a formula would be less readable without it.

mod tables;

use std::{borrow::Cow, cell::Cell};

use unicode_normalization::char::compose;

use crate::work::spend;
use tables::{ACCENTS, DROPPED, STACKED, SWITCHES, SYMBOLS, WRAPPED};

/// The maximum depth of arguments inside arguments; deeper ones only lose their commands.
const MAX_DEPTH: usize = 6;
/// The maximum length of an argument of a command that writes something after it.
const MAX_ARGUMENT: usize = 512;
/// The maximum number of unclosed arguments in a text. The end of each is searched for in [`MAX_ARGUMENT`] bytes; after
/// this number, only arguments of up to [`MAX_LETTER`] bytes are found.
const MAX_UNCLOSED: usize = 32;
/// The maximum length of a letter after an accent, including its own commands and braces.
const MAX_LETTER: usize = 64;
/// The maximum length of a formula.
const MAX_FORMULA: usize = 1024;

/// The type of the text, which determines the meaning of its characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Prose,
    Formula,
    /// A link or an identifier, in which tildes, dashes and quotes are literal.
    Literal,
}

/// Converts prose.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    convert(text, Mode::Prose)
}

/// Converts a link or identifier: removes commands and braces.
pub(super) fn literal(text: &str) -> Cow<'_, str> {
    convert(text, Mode::Literal)
}

fn convert(text: &str, mode: Mode) -> Cow<'_, str> {
    if mark(text, mode).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    Decoder { mode, depth: 0, unclosed: &Cell::new(0) }.decode(text, &mut out);
    Cow::Owned(out)
}

/// The position of the first byte with a special meaning.
fn mark(text: &str, mode: Mode) -> Option<usize> {
    /// The number of bytes that are inspected together.
    const CHUNK_BYTES: usize = 32;
    let bit = match mode {
        Mode::Prose => 0b001,
        Mode::Formula => 0b010,
        Mode::Literal => 0b100,
    };
    // A single branchless pass shows that a text has no byte with a special meaning in any mode, which is true for most
    // texts.
    let may_be = |bytes: &[u8]| {
        bytes.iter().fold(false, |found, byte| {
            found
                | (*byte >= b'{')
                | (*byte == b'\\')
                | (*byte == b'-')
                | (*byte == b'$')
                | (*byte == b'`')
                | (*byte == b'\'')
                | (*byte == b'_')
        })
    };
    let bytes = text.as_bytes();
    let plain = bytes.chunks_exact(CHUNK_BYTES).take_while(|chunk| !may_be(chunk)).count() * CHUNK_BYTES;
    let special = |byte: &u8| SPECIAL[usize::from(*byte)] & bit != 0;
    bytes[plain..].iter().position(special).map(|at| plain + at)
}

#[derive(Debug, Clone, Copy)]
struct Decoder<'a> {
    mode: Mode,
    depth: usize,
    /// The number of arguments whose end was not found.
    unclosed: &'a Cell<usize>,
}

/// The modes in which a byte has a special meaning, as bits.
const SPECIAL: [u8; 256] = {
    let mut special = [0; 256];
    special[b'\\' as usize] = 0b111;
    special[b'{' as usize] = 0b111;
    special[b'}' as usize] = 0b111;
    special[b'~' as usize] = 0b011;
    special[b'-' as usize] = 0b001;
    special[b'$' as usize] = 0b001;
    special[b'`' as usize] = 0b001;
    special[b'\'' as usize] = 0b001;
    special[b'_' as usize] = 0b010;
    special
};

impl Decoder<'_> {
    fn inner(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// The decoder for the letter after an accent. Text without a letter is decoded a second time without the accent,
    /// so the nesting of accents is limited.
    fn letter(self) -> Self {
        Self { depth: (self.depth + 2).min(MAX_DEPTH), ..self }
    }

    fn decode(self, text: &str, out: &mut String) {
        let mut rest = text;
        if !spend(text.len()) {
            return;
        }
        while let Some(at) = mark(rest, self.mode) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = &rest[self.mark(rest, out)..];
        }
        out.push_str(rest);
    }

    /// Decodes the mark at the beginning, and returns its length.
    fn mark(self, text: &str, out: &mut String) -> usize {
        let length = match text.as_bytes()[0] {
            b'\\' => return self.command(text, out),
            b'$' => return self.formula(text, out),
            b'~' => {
                out.push(' ');
                return 1;
            }
            b'{' | b'}' | b'_' => return 1,
            first => text.bytes().take(3).take_while(|byte| *byte == first).count(),
        };
        match &text[..length] {
            "---" => out.push('—'),
            "--" => out.push('–'),
            "``" | "```" => out.push('“'),
            "''" | "'''" => out.push('”'),
            other => out.push_str(other),
        }
        length
    }

    /// Decodes a formula between dollar signs, which are dropped. A dollar sign before an amount of money is kept.
    fn formula(self, text: &str, out: &mut String) -> usize {
        let dollars = if text.starts_with("$$") { 2 } else { 1 };
        let inner = &text[dollars..];
        let front = &inner[..inner.floor_char_boundary(MAX_FORMULA)];
        let close = memchr::memchr_iter(b'$', front.as_bytes()).find(|&at| !front[..at].ends_with('\\'));
        spend(close.unwrap_or(front.len()));
        let close = close.filter(|&at| is_formula(&front[..at], &inner[at + 1..]));
        match close {
            Some(at) if self.depth < MAX_DEPTH && at > 0 => {
                Self { mode: Mode::Formula, ..self.inner() }.decode(&front[..at], out);
                let closing = inner[at..].bytes().take(dollars).take_while(|byte| *byte == b'$').count();
                dollars + at + closing
            }
            _ => {
                out.push_str(&text[..dollars]);
                dollars
            }
        }
    }

    /// Decodes a backslash and everything that belongs to it.
    fn command(self, text: &str, out: &mut String) -> usize {
        let Some(first) = text.chars().nth(1) else {
            out.push('\\');
            return 1;
        };
        let length = 1 + text[1..].bytes().take_while(u8::is_ascii_alphabetic).count();
        if length > 1 {
            return self.named(text, &text[1..length], out);
        }
        match first {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.push(first),
            ' ' | '\n' | '\r' | '\t' | ',' | ';' | ':' | '>' | '\\' if self.mode != Mode::Literal => {
                out.push(' ');
            }
            '!' | '/' | '-' | '@' | '*' | '(' | ')' | '[' | ']' if self.mode != Mode::Literal => {}
            _ => {
                let name = &text[1..1 + first.len_utf8()];
                if let Some(length) = self.accent(text, name, out) {
                    return length;
                }
                out.push('\\');
                return 1;
            }
        }
        1 + first.len_utf8()
    }

    /// Decodes a command whose name is a word.
    fn named(self, text: &str, name: &str, out: &mut String) -> usize {
        let length = 1 + name.len();
        let rest = &text[length..];
        if let Some(symbol) = symbol(name).or_else(|| upright(name)) {
            out.push_str(symbol);
            // A blank after a command only ends it; the name of a function is a separate word.
            let word = symbol.len() > 1 && symbol.is_ascii();
            return length + usize::from(!word && rest.starts_with(' '));
        }
        if SWITCHES.binary_search(&name).is_ok() {
            return text.len() - rest.trim_start_matches([' ', '\t']).len();
        }
        if let Some(length) = self.accent(text, name, out) {
            return length;
        }
        // In a tabbing environment, `\a'e` means `\'e`.
        if name == "a" && rest.starts_with(['\'', '`', '=']) {
            return match self.accent(&text[1..], &rest[..1], out) {
                Some(length) => 1 + length,
                None => length,
            };
        }
        if let Ok(at) = WRAPPED.binary_search_by_key(&name, |(known, ..)| known) {
            let (_, around, count) = WRAPPED[at];
            if let Some(length) = self.wrapped(rest, around, count, out) {
                return text.len() - rest.len() + length;
            }
        }
        let mut left = rest;
        if let Some(count) = dropped(name) {
            for _ in 0..count {
                let Some((_, length)) = self.argument(left, MAX_ARGUMENT) else { break };
                left = &left[length..];
            }
            return text.len() - left.len();
        }
        // The text that an unknown command is applied to is kept.
        if let Some(option) = left.strip_prefix('[') {
            let front = &option[..option.floor_char_boundary(MAX_LETTER)];
            left = front.find(']').map_or(left, |at| &option[at + 1..]);
        }
        let argument = left.trim_start_matches(' ');
        // Empty braces only end the name of the command.
        if argument.starts_with('{') && !argument.starts_with("{}") {
            return text.len() - argument.len();
        }
        out.push_str(&text[..length]);
        length
    }

    /// Decodes arguments with text before, between and after them.
    fn wrapped(self, text: &str, around: [&str; 3], count: usize, out: &mut String) -> Option<usize> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        let (first, length) = self.argument_or_letter(text)?;
        let second = if count > 1 { Some(self.argument_or_letter(&text[length..])?) } else { None };
        out.push_str(around[0]);
        self.inner().decode(first, out);
        out.push_str(around[1]);
        if let Some((second, _)) = second {
            self.inner().decode(second, out);
        }
        out.push_str(around[2]);
        Some(length + second.map_or(0, |(_, length)| length))
    }

    /// Applies an accent to the letter after it, which may already have one.
    fn accent(self, text: &str, name: &str, out: &mut String) -> Option<usize> {
        let (mark, upper) = match ACCENTS.binary_search_by_key(&name, |(known, _)| known) {
            Ok(at) => (ACCENTS[at].1, None),
            Err(_) => STACKED
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, [lower, upper])| (*lower, Some(*upper)))?,
        };
        if self.depth == MAX_DEPTH {
            return None;
        }
        let start = 1 + name.len();
        let blanks = text[start..].bytes().take_while(|byte| *byte == b' ').count();
        let rest = &text[start + blanks..];
        let mut letter = String::new();
        let length = match rest.as_bytes().first()? {
            b'{' => {
                let (inner, length) = self.argument(rest, MAX_LETTER)?;
                self.letter().decode(inner, &mut letter);
                length
            }
            b'\\' => self.letter().command(rest, &mut letter),
            _ => {
                let first = rest.chars().next()?;
                letter.push(first);
                first.len_utf8()
            }
        };
        let mut letters = letter.chars();
        let whole = match letters.next() {
            // `\~{}` is the character alone.
            None => name.to_owned(),
            // An accent over a dotless letter yields the regular letter with the accent.
            Some(base) => {
                let mut whole = accented(base, mark)?;
                whole.extend(upper);
                whole + letters.as_str()
            }
        };
        out.push_str(&whole);
        Some(start + blanks + length)
    }

    /// The argument in braces at the beginning, and its length including the braces.
    fn argument(self, text: &str, max: usize) -> Option<(&str, usize)> {
        let max = if self.unclosed.get() < MAX_UNCLOSED { max } else { max.min(MAX_LETTER) };
        let blanks = text.bytes().take(max).take_while(|byte| *byte == b' ').count();
        let end = argument_end(&text.as_bytes()[blanks..text.len().min(blanks + max)]);
        let (Ok(searched) | Err(searched)) = end;
        spend(blanks + searched);
        if matches!(end, Err(1..)) {
            self.unclosed.update(|unclosed| unclosed + 1);
        }
        let end = end.ok()?;
        Some((&text[blanks + 1..blanks + end], blanks + end + 1))
    }

    /// Returns the argument at the beginning, which may be a letter or digit without braces, and the argument's length.
    fn argument_or_letter(self, text: &str) -> Option<(&str, usize)> {
        let bare = text.trim_start_matches(' ');
        let skipped = text.len() - bare.len();
        match bare.bytes().next()? {
            byte if byte.is_ascii_alphanumeric() => Some((&bare[..1], skipped + 1)),
            _ => self.argument(text, MAX_ARGUMENT),
        }
    }
}

fn symbol(name: &str) -> Option<&'static str> {
    let at = SYMBOLS.binary_search_by_key(&name, |(known, _)| known).ok()?;
    Some(SYMBOLS[at].1)
}

/// The Greek letter of a command for upright letters: `\upalpha`, `\upvarphi`, `\upDelta` or `\Updelta`.
fn upright(name: &str) -> Option<&'static str> {
    let is_greek = |symbol: &&str| symbol.chars().all(|c| matches!(c, '\u{370}'..='\u{3ff}'));
    if let Some(letter) = name.strip_prefix("up") {
        return symbol(letter).filter(is_greek);
    }
    let letter = name.strip_prefix("Up")?;
    let mut capital = letter.to_owned();
    capital.get_mut(..1)?.make_ascii_uppercase();
    symbol(&capital).filter(is_greek)
}

/// The number of arguments of a command that are not text. Files define commands for nothing but the order of a list, such
/// as `\noop` and `\SortNoop`.
fn dropped(name: &str) -> Option<usize> {
    const NOTHING: &[u8] = b"noop";
    let is_nothing = |part: &[u8]| part.eq_ignore_ascii_case(NOTHING);
    match DROPPED.binary_search_by_key(&name, |(known, _)| known) {
        Ok(at) => Some(DROPPED[at].1),
        Err(_) => name.as_bytes().windows(NOTHING.len()).any(is_nothing).then_some(1),
    }
}

/// Returns `true` if the text ends in the name of an accent that is a word, and applies to the letter after the
/// following blank.
pub(super) fn ends_in_accent(text: &str) -> bool {
    let name = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    name < text.len()
        && text[..name].ends_with('\\')
        && ACCENTS.binary_search_by_key(&&text[name..], |(known, _)| known).is_ok()
}

/// A letter with a mark, or `None` if `base` is not a letter.
pub(super) fn accented(base: char, mark: char) -> Option<String> {
    let base = match base {
        'ı' => 'i',
        'ȷ' => 'j',
        base if base.is_alphanumeric() => base,
        _ => return None,
    };
    Some(compose(base, mark).map_or_else(|| String::from_iter([base, mark]), String::from))
}

/// The end of the argument that begins at the first byte, or the number of bytes in which it was not found.
fn argument_end(text: &[u8]) -> Result<usize, usize> {
    let (mut depth, mut escaped) = (0_usize, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'{' => depth += 1,
            _ if depth == 0 => return Err(at),
            b'\\' => escaped = true,
            b'}' if depth == 1 => return Ok(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    Err(text.len())
}

/// Returns `true` if the text between two dollar signs is a formula, and not text between two prices.
fn is_formula(inner: &str, after: &str) -> bool {
    if inner.contains(['\\', '^', '_', '{']) {
        return true;
    }
    let number = inner.bytes().all(|byte| byte.is_ascii_digit());
    let price = if number {
        after.starts_with(|c: char| c.is_ascii_digit())
    } else {
        inner.starts_with(|c: char| c.is_ascii_digit())
    };
    !price && !inner.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tex_accents_and_symbols_become_characters() {
        for (text, decoded) in [
            (r#"M{\"u}ller and M\"{u}ller and M\"uller"#, "Müller and Müller and Müller"),
            (r"Ren\'{e} Fran\c{c}ois \v{S}koda \'{\i} \'\i", "René François Škoda í í"),
            (r"Stra{\ss}e, \O rsted, {\L}ukasz, {\DJ}uro", "Straße, Ørsted, Łukasz, Đuro"),
            (r"Nu\~nez~B, 5\% \& \$3 \#1 a\_b", "Nuñez B, 5% & $3 #1 a_b"),
            (r"Tr{\'{\^e}}n, Tr\'\^en, {\d{S}}afi, \k{a} \a'e", "Trến, Trến, Ṣafi, ą é"),
            (r"\~{}x \^{}2 {\textless} 3", "~x ^2 < 3"),
            (r"anu{\d s}{\d t}h(u)y\textacutemacron a, \textgravemacron{e}", "anuṣṭh(u)yā\u{301}, ē\u{300}"),
            (r#"\ü \"{ \'"#, r#"\ü \" \'"#),
        ] {
            assert_eq!(decode(text), decoded);
        }
    }

    #[test]
    fn tex_commands_around_words_are_dropped() {
        for (text, decoded) in [
            (r"The {DNA} of {{\em E. coli}}", "The DNA of E. coli"),
            (r"\emph{in vivo} and \textit{in vitro}", "in vivo and in vitro"),
            (r"CO\textsubscript{2}, 9\textsuperscript{th}, \mkbibfoo{\enquote{a} b}", "CO2, 9th, “a” b"),
            (r"{\noopsort{x}}Poe, \relax \href{http://a.b}{Home}\vphantom{\}}", "Poe, Home"),
            (r"{\noop{2003}}2005 {\SortNoop{a}}b \mynoopx{c} \noop d", "2005 b   d"),
            (r"\textcolor{red}{hot} \unknown stays", r"hot \unknown stays"),
            (r"\Abc{} \acro{xyz} \relax{}", r"\Abc xyz "),
            ("1--9 --- well-known ``so'' d'Or", "1–9 — well-known “so” d'Or"),
            (r"a\,b\\c\-d\ e", "a b cd e"),
        ] {
            assert_eq!(decode(text), decoded);
        }
    }

    #[test]
    fn formulas_lose_dollar_signs_prices_keep_them() {
        for (text, decoded) in [
            (r"$\beta$-blocker at $p \leq 0.05$ with $R_2$ and $n$", "β-blocker at p ≤0.05 with R2 and n"),
            (r"$10^{-3}$ and $\frac n 2$ of $(000\bar{1})$", "10^-3 and n/2 of (0001\u{304})"),
            ("between $5 and $6, $10-$20, a $", "between $5 and $6, $10-$20, a $"),
            (r"$\upalpha$ $\upvarepsilon$ $\upDelta$9 $\Updelta$8 $\Upomega$", "α ε Δ9 Δ8 Ω"),
            (r"$a \uparrow b$ \upshape c \upin d \Up e", r"a ↑b c \upin d \Up e"),
            (r"$\alpha$-test \", r"α-test \"),
        ] {
            assert_eq!(decode(text), decoded);
        }
    }

    #[test]
    fn links_and_identifiers_stay_literal() {
        assert_eq!(literal(r"{10.5555/a--b{\_}1\textless{}c~d}"), "10.5555/a--b_1<c~d");
        assert_eq!(literal(r"\url{https://example.org/\%7Ea\#b}"), "https://example.org/%7Ea#b");
    }

    #[test]
    fn symbol_names_are_sorted() {
        assert!(SYMBOLS.is_sorted_by_key(|(name, _)| name));
        assert!(SWITCHES.is_sorted());
        assert!(DROPPED.is_sorted_by_key(|(name, _)| name));
        assert!(WRAPPED.is_sorted_by_key(|(name, ..)| name));
        assert!(ACCENTS.is_sorted_by_key(|(name, _)| name));
    }
}
