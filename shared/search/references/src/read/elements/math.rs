//! Formulas in MathML as text: `10^-3`, `a/b`, `√x`.
//!
//! Elements say what TeX says with signs; without them a third of ten would be `103`. White space between elements means
//! nothing, and lower indices follow their letters, as they do when a formula of TeX is read.

use std::borrow::Cow;

use super::{super::latex::accented, attribute};

/// A formula whose end is not reached yet.
pub(super) struct Math {
    /// How many elements are around it.
    pub(super) depth: usize,
    /// Its elements with parts that are not closed yet.
    open: Vec<Open>,
}

struct Open {
    depth: usize,
    /// What stands before the second part, the third and so on; the last also before those behind it.
    between: [&'static str; 2],
    parts: usize,
    /// Where the first two begin in the value.
    begin: [usize; 2],
    /// Whether the second stands over the first.
    is_over: bool,
    behind: String,
}

/// The name of an element of MathML.
pub(super) fn local(name: &str) -> &str {
    name.strip_prefix("mml:").unwrap_or(name)
}

/// Whether text directly inside this element is only white space between others.
pub(super) fn is_around_elements(name: &str) -> bool {
    local(name) != "mtext"
}

/// A base, and what stands over it: an accent, as a rule.
const OVER: &str = "mover";

/// The mark of a sign that stands over a letter.
fn mark(sign: &str) -> Option<char> {
    Some(match sign {
        "`" | "\u{2CB}" | "\u{300}" => '\u{300}',
        "´" | "\u{2CA}" | "\u{301}" => '\u{301}',
        "^" | "ˆ" | "\u{302}" => '\u{302}',
        "~" | "˜" | "∼" | "\u{303}" => '\u{303}',
        "¯" | "ˉ" | "‾" | "―" | "\u{304}" | "\u{305}" => '\u{304}',
        "˘" | "\u{306}" => '\u{306}',
        "." | "˙" | "\u{307}" => '\u{307}',
        "¨" | "\u{308}" => '\u{308}',
        "ˇ" | "\u{30C}" => '\u{30C}',
        "→" | "\u{20D7}" => '\u{20D7}',
        _ => return None,
    })
}

fn between(name: &str) -> Option<[&'static str; 2]> {
    Some(match name {
        "msup" => ["^", ""],
        "msubsup" | "munderover" => ["", "^"],
        "mfrac" => ["/", ""],
        OVER => ["", ""],
        "mfenced" | "mtr" => [",", ","],
        "mtable" => [";", ";"],
        _ => return None,
    })
}

impl Math {
    pub(super) fn new(depth: usize) -> Self {
        Self { depth, open: Vec::new() }
    }

    /// What the text says where an element begins that has so many around it, and so many bytes of the value before it.
    pub(super) fn start(&mut self, name: &str, attributes: &str, depth: usize, before: usize) -> String {
        let mut text = String::new();
        if let Some(whole) = self.open.last_mut().filter(|open| open.depth + 1 == depth) {
            if let Some(before) = whole.parts.checked_sub(1) {
                text.push_str(whole.between[before.min(1)]);
            }
            if let Some(begin) = whole.begin.get_mut(whole.parts) {
                *begin = before + text.len();
            }
            whole.parts += 1;
        }
        let name = local(name);
        let named = |wanted, usual| attribute(attributes, wanted).unwrap_or(Cow::Borrowed(usual));
        let mut behind = String::new();
        match name {
            "msqrt" | "mroot" => text.push('√'),
            "mspace" => text.push(' '),
            "mfenced" => {
                text.push_str(&named("open", "("));
                behind.push_str(&named("close", ")"));
            }
            _ => {}
        }
        if let Some(between) = between(name) {
            self.open.push(Open { depth, between, parts: 0, begin: [0; 2], is_over: name == OVER, behind });
        }
        text
    }

    /// Ends all elements that have at least so many around them, in the value that they are in.
    pub(super) fn end(&mut self, depth: usize, value: &mut Cow<'_, str>) {
        while let Some(ended) = self.open.pop_if(|open| open.depth >= depth) {
            if let Some((begin, letter)) = ended.letter(value) {
                value.to_mut().replace_range(begin.., &letter);
            }
            if !ended.behind.is_empty() {
                value.to_mut().push_str(&ended.behind);
            }
        }
    }
}

impl Open {
    /// The letter with an accent that these parts are, and where it begins.
    fn letter(&self, value: &str) -> Option<(usize, String)> {
        let [begin, over] = self.begin;
        let mark = mark(value.get(over..).filter(|_| self.is_over && self.parts == 2)?.trim())?;
        let mut base = value.get(begin..over)?.trim().chars();
        let letter = base.next().filter(|_| base.next().is_none())?;
        Some((begin, accented(letter, mark)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{jats, pubmed_xml};

    fn title(inner: &str) -> String {
        let text = format!("<PubmedArticle><ArticleTitle>A {inner} b</ArticleTitle></PubmedArticle>");
        pubmed_xml::read(&text).unwrap().finish().title
    }

    #[test]
    fn formulas_keep_what_their_elements_say() {
        let formula =
            |inner: &str| title(&format!("<mml:math>\n <mml:mrow> {inner} </mml:mrow>\n</mml:math>"));
        for (inner, text) in [
            (
                "<mml:msup><mml:mn>10</mml:mn> <mml:mrow><mml:mo>-</mml:mo><mml:mn>3</mml:mn></mml:mrow></mml:msup>",
                "10^-3",
            ),
            ("<mml:mfrac>\n<mml:mi>a</mml:mi>\n<mml:mi>b</mml:mi></mml:mfrac><mml:mi>c</mml:mi>", "a/bc"),
            ("<mml:msubsup><mml:mi>x</mml:mi><mml:mi>i</mml:mi><mml:mn>2</mml:mn></mml:msubsup>", "xi^2"),
            (
                "<mml:msqrt><mml:mn>3</mml:mn></mml:msqrt><mml:mspace/><mml:mtext>of it</mml:mtext>",
                "√3 of it",
            ),
            (
                "<mml:mfenced open=\"[\" close=\"]\"><mml:mi>a</mml:mi><mml:mi>b</mml:mi></mml:mfenced>",
                "[a,b]",
            ),
            (
                "<mml:mover accent=\"true\"><mml:mi>x</mml:mi> <mml:mo>¯</mml:mo></mml:mover><mml:mn>2</mml:mn>",
                "x\u{304}2",
            ),
            (
                "<mml:mover><mml:mrow><mml:mover><mml:mi>a</mml:mi><mml:mo>^</mml:mo></mml:mover></mml:mrow><mml:mo>~</mml:mo></mml:mover>",
                "ẫ",
            ),
            ("<mml:mover><mml:mi>AB</mml:mi><mml:mo>→</mml:mo></mml:mover>", "AB→"),
            ("<mml:mover><mml:mo>∑</mml:mo><mml:mi>n</mml:mi></mml:mover>", "∑n"),
            ("<mml:mover><mml:mi>x</mml:mi>", "x"),
            ("<mml:mfrac><mml:mi>a</mml:mi>", "a"),
        ] {
            assert_eq!(formula(inner), format!("A {text} b"), "{inner}");
        }
    }

    #[test]
    fn tex_beside_a_formula_is_not_read() {
        let math = "<mml:math><mml:mi>x</mml:mi></mml:math>";
        let text = format!(
            "<article><title-group><article-title>A <inline-formula><alternatives><tex-math>\\begin x</tex-math>{math}\
             </alternatives></inline-formula> b</article-title></title-group></article>"
        );
        assert_eq!(jats::read(&text).unwrap().finish().title, "A x b");
    }
}
