//! Formulas in MathML as text: `10^-3`, `a/b`, `√x`.
//!
//! Elements say what TeX says with signs; without them a third of ten would be `103`. White space between elements means
//! nothing, and lower indices follow their letters, as they do when a formula of TeX is read.

use std::borrow::Cow;

use super::attribute;

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

fn between(name: &str) -> Option<[&'static str; 2]> {
    Some(match name {
        "msup" => ["^", ""],
        "msubsup" | "munderover" => ["", "^"],
        "mfrac" => ["/", ""],
        "mfenced" | "mtr" => [",", ","],
        "mtable" => [";", ";"],
        _ => return None,
    })
}

impl Math {
    pub(super) fn new(depth: usize) -> Self {
        Self { depth, open: Vec::new() }
    }

    /// What the text says where an element begins that has so many around it.
    pub(super) fn start(&mut self, name: &str, attributes: &str, depth: usize) -> String {
        let mut text = String::new();
        if let Some(whole) = self.open.last_mut().filter(|open| open.depth + 1 == depth) {
            if let Some(before) = whole.parts.checked_sub(1) {
                text.push_str(whole.between[before.min(1)]);
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
            self.open.push(Open { depth, between, parts: 0, behind });
        }
        text
    }

    /// The same where all elements end that have at least so many around them.
    pub(super) fn end(&mut self, depth: usize) -> String {
        let mut text = String::new();
        while let Some(ended) = self.open.pop_if(|open| open.depth >= depth) {
            text.push_str(&ended.behind);
        }
        text
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
