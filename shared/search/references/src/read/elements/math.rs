//! Converts MathML formulas to text: `10^-3`, `a/b`, `√x`.
//!
//! The structure that MathML expresses by elements is written with characters, as in TeX; otherwise ten to the power of
//! three would read `103`. White space between elements is ignored, and subscripts directly follow their letters, as in
//! converted TeX.

use std::borrow::Cow;

use super::{super::latex::accented, attribute};

/// A formula whose end has not been reached.
pub(super) struct Math {
    /// The number of elements around the formula.
    pub(super) depth: usize,
    /// The open elements of the formula that have several parts.
    open: Vec<OpenElement>,
}

struct OpenElement {
    depth: usize,
    /// The separators before the second part and before the third part. The second separator also precedes all further
    /// parts.
    between: [&'static str; 2],
    parts: usize,
    /// The offsets of the first two parts in the value.
    begin: [usize; 2],
    /// `true` if the second part is placed over the first.
    is_over: bool,
    behind: String,
}

/// The name of a MathML element without its prefix.
pub(super) fn local(name: &str) -> &str {
    name.strip_prefix("mml:").unwrap_or(name)
}

/// Returns `true` if text directly inside this element is only white space between others.
pub(super) fn is_around_elements(name: &str) -> bool {
    local(name) != "mtext"
}

/// A base with something over it, usually an accent.
const OVER: &str = "mover";

/// The combining mark for a character over a letter.
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

    /// Starts an element with `depth` elements around it and `before` bytes of the value before it, and returns the
    /// text to insert.
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
            self.open.push(OpenElement {
                depth,
                between,
                parts: 0,
                begin: [0; 2],
                is_over: name == OVER,
                behind,
            });
        }
        text
    }

    /// Ends all elements at `depth` or deeper, and updates the value.
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

impl OpenElement {
    /// The accented letter that these parts form, and its offset.
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
    fn mathml_structure_becomes_text() {
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
    fn alternative_tex_formula_is_ignored() {
        let math = "<mml:math><mml:mi>x</mml:mi></mml:math>";
        let text = format!(
            "<article><title-group><article-title>A <inline-formula><alternatives><tex-math>\\begin x</tex-math>{math}\
             </alternatives></inline-formula> b</article-title></title-group></article>"
        );
        assert_eq!(jats::read(&text).unwrap().finish().title, "A x b");
    }
}
