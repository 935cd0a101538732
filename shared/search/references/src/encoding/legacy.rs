//! Guesses the legacy encoding of bytes that are not UTF-8.
//!
//! `chardetng` knows the encodings of the web, which include neither MacRoman nor code page 850. Its guess, Windows-1252 and
//! these are therefore compared by the likelihood of the text that each of them yields. An accented letter inside a word is
//! likely; a capital letter or a currency sign there is not.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{MACINTOSH, WINDOWS_1250, WINDOWS_1252, WINDOWS_1254, WINDOWS_1257};

use serde::{Deserialize, Serialize};

use super::{Certainty, Decoder, Encoding, OtherEncoding, is_cut_utf8};
use crate::stored_bytes::Bytes;

/// The number of bytes that are kept for the guess. More bytes would not change the guess.
const MAX_BYTES: usize = 32 * 1024;
/// The most common encoding of old exports.
const WESTERN: Decoder = Decoder::Web(WINDOWS_1252);
/// The minimum lead in likelihood for a result that is more than a guess.
const CLEAR: i64 = 12;

/// The bytes of a file that are not UTF-8, and the guessed encoding.
#[derive(Debug)]
pub(crate) struct LegacyEncoding {
    seen: Vec<u8>,
    /// The guess is repeated whenever the number of bytes has doubled, which bounds the work.
    look_again_at: usize,
    found: Decoder,
    certainty: Certainty,
    fixed: bool,
}

/// The stored form of [`LegacyEncoding`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LegacyState {
    seen: Bytes,
    look_again_at: usize,
    found: String,
    certainty: Certainty,
    fixed: bool,
}

impl From<&LegacyState> for LegacyEncoding {
    fn from(state: &LegacyState) -> Self {
        Self {
            seen: state.seen.0.clone(),
            look_again_at: state.look_again_at,
            found: Decoder::named(&state.found).unwrap_or(WESTERN),
            certainty: state.certainty,
            fixed: state.fixed,
        }
    }
}

impl Default for LegacyEncoding {
    fn default() -> Self {
        Self { seen: Vec::new(), look_again_at: 1, found: WESTERN, certainty: Certainty::Guess, fixed: false }
    }
}

impl LegacyEncoding {
    /// A known encoding.
    pub(super) fn of(encoding: Decoder) -> Self {
        Self { found: encoding, certainty: Certainty::Likely, fixed: true, ..Self::default() }
    }

    /// Decides for the whole file by its first bytes.
    pub(super) fn inspect(&mut self, window: &[u8]) {
        self.remember(window);
        self.guess();
        self.fixed = true;
    }

    /// Takes a record into account if it is not UTF-8, and returns the encoding to decode it from.
    pub(crate) fn learn(&mut self, record: &[u8]) -> Decoder {
        if !self.fixed
            && self.seen.len() < MAX_BYTES
            && std::str::from_utf8(record).is_err()
            && !is_cut_utf8(record)
        {
            self.remember(record);
            if self.seen.len() >= self.look_again_at {
                self.guess();
            }
        }
        self.found
    }

    pub(crate) fn state(&self) -> LegacyState {
        LegacyState {
            seen: Bytes(self.seen.clone()),
            look_again_at: self.look_again_at,
            found: self.found.name().to_owned(),
            certainty: self.certainty,
            fixed: self.fixed,
        }
    }

    pub(crate) fn decoder(&self) -> Decoder {
        self.found
    }

    /// Returns `true` if any bytes were not UTF-8.
    pub(crate) fn is_needed(&self) -> bool {
        !self.seen.is_empty()
    }

    /// The guessed encoding and its certainty.
    pub(crate) fn found(&self) -> (Encoding, Certainty) {
        let encoding = match self.found {
            Decoder::Cp850 => Encoding::Cp850,
            Decoder::Web(found) if found == MACINTOSH => Encoding::MacRoman,
            Decoder::Web(found) if found != WINDOWS_1252 => Encoding::Other(OtherEncoding(found)),
            _ if self.seen.iter().any(|byte| (0x80..0xA0).contains(byte)) => Encoding::Windows1252,
            _ => Encoding::Iso8859_1,
        };
        (encoding, self.certainty)
    }

    /// Keeps the lines that are not UTF-8, or in XML the values. Other bytes would distort the guess.
    fn remember(&mut self, bytes: &[u8]) {
        for piece in bytes.split(|byte| matches!(byte, b'\n' | b'\r' | b'<')) {
            let left = MAX_BYTES.saturating_sub(self.seen.len());
            if left == 0 {
                return;
            }
            if std::str::from_utf8(piece).is_err_and(|error| error.error_len().is_some()) {
                self.seen.extend_from_slice(&piece[..piece.len().min(left)]);
                self.seen.push(b'\n');
            }
        }
        if self.seen.is_empty() {
            // Only the truncated last character was invalid.
            self.seen.extend_from_slice(&bytes[..bytes.len().min(MAX_BYTES)]);
        }
    }

    fn guess(&mut self) {
        self.look_again_at = self.seen.len() * 2;
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(&self.seen, true);
        let guess = detector.guess(None, Utf8Detection::Deny);
        // If several are equally likely, the first counts: the most common in old exports comes first.
        let candidates = [WESTERN, Decoder::Web(guess), Decoder::Web(MACINTOSH), Decoder::Cp850];
        let mut scores = candidates.map(|encoding| (likelihood(&self.seen, encoding), encoding));
        scores.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let (best, found) = scores[0];
        let next = scores.iter().find(|(_, encoding)| *encoding != found).map_or(best, |(score, _)| *score);
        self.found = match found {
            // Western letters are about as likely as the letters of other languages with the same bytes.
            Decoder::Web(web) if web == WINDOWS_1252 || web == WINDOWS_1254 || web == MACINTOSH => {
                if is_baltic(&self.seen) {
                    Decoder::Web(WINDOWS_1257)
                } else if is_central_european(&self.seen) {
                    Decoder::Web(WINDOWS_1250)
                } else if web == WINDOWS_1252 && is_turkish(&self.seen) {
                    Decoder::Web(WINDOWS_1254)
                } else {
                    found
                }
            }
            found => found,
        };
        self.certainty = if best - next >= CLEAR { Certainty::Likely } else { Certainty::Guess };
    }
}

/// Returns `true` if the letters of Lithuanian and Latvian prevail, `š` and `ž` among them. The same bytes are letters
/// of Icelandic, which also has an acute accent on other vowels, and of Turkish with its dotless i.
fn is_baltic(bytes: &[u8]) -> bool {
    let count = |letters: &[u8]| bytes.iter().filter(|byte| letters.contains(byte)).count();
    let carons = count(&[0xD0, 0xDE, 0xF0, 0xFE]);
    let baltic = count(&[
        0xE0, 0xE1, 0xE2, 0xE6, 0xE7, 0xE8, 0xEB, 0xEC, 0xED, 0xEE, 0xEF, 0xF2, 0xF8, 0xFB, 0xC8, 0xC2, 0xCB,
    ]);
    let others = count(&[0xE4, 0xE5, 0xE9, 0xF1, 0xF3, 0xF6, 0xFA, 0xFC, 0xFD, 0xD6, 0xDC, 0xDD]);
    carons > 1 && baltic > carons && others * 8 < baltic + carons
}

/// Returns `true` if the letters of Czech, Slovenian, Croatian or Hungarian prevail. `č`, `ě`, `ř` and `ů` are Western
/// letters with the same bytes, but these do not occur with a caron on other letters, nor all of them together. `ő` and
/// `ű` are those of Portuguese and French.
fn is_central_european(bytes: &[u8]) -> bool {
    let count = |letters: &[u8]| bytes.iter().filter(|byte| letters.contains(byte)).count();
    let carons = count(&[0x8A, 0x8E, 0x9A, 0x9E]);
    let slavic = count(&[0xC8, 0xCC, 0xD8, 0xE8, 0xEC, 0xF8, 0xF9]);
    let is_slavic = slavic > 1 && (carons > 0 || (count(&[0xEC]) > 0 && count(&[0xF8]) > 0));
    let double = count(&[0xD5, 0xDB, 0xF5, 0xFB]);
    // `ő` is no French letter. Portuguese has neither `ö` nor `ü` nor the letter of `ű`, and Estonian no acute accent.
    let is_hungarian = count(&[0xD5, 0xF5]) > 0
        && count(&[0xDB, 0xF6, 0xFB, 0xFC]) > 0
        && count(&[0xE1, 0xE9, 0xED, 0xF3, 0xFA]) * 3 > double;
    let western = count(&[0xE0, 0xE2, 0xE3, 0xE4, 0xE5, 0xE7, 0xEA, 0xEB, 0xEE, 0xF1]);
    (is_slavic || is_hungarian) && western * 4 < carons + slavic + double
}

/// Returns `true` if the letters of Turkish prevail over the letters with an acute accent, which Icelandic also has.
fn is_turkish(bytes: &[u8]) -> bool {
    let count = |letters: &[u8]| bytes.iter().filter(|byte| letters.contains(byte)).count();
    let turkish = count(&[0xD0, 0xDD, 0xDE, 0xF0, 0xFD, 0xFE]);
    let icelandic = count(&[0xC1, 0xC6, 0xC9, 0xCD, 0xD3, 0xDA, 0xE1, 0xE6, 0xE9, 0xED, 0xF3, 0xFA]);
    turkish > 1 && turkish > icelandic
}

/// The likelihood of the text that an encoding yields, relative to other encodings.
fn likelihood(bytes: &[u8], encoding: Decoder) -> i64 {
    let text = encoding.decode(bytes);
    let mut characters = text.chars().peekable();
    let (mut before, mut score) = (' ', 0);
    while let Some(c) = characters.next() {
        if !c.is_ascii() {
            score += fit(before, c, characters.peek().copied().unwrap_or(' '));
        }
        before = c;
    }
    score
}

/// Rates a non-ASCII character between its neighbors.
fn fit(before: char, c: char, after: char) -> i64 {
    let inside_a_word = before.is_alphabetic() && after.is_alphabetic();
    match c {
        char::REPLACEMENT_CHARACTER => -8,
        _ if c.is_control() => -8,
        '’' if before.is_alphabetic() => 2,
        '‘' | '“' | '„' | '«' if !before.is_alphanumeric() => 2,
        '’' | '”' | '»' | '“' if !after.is_alphanumeric() => 2,
        // The same bytes are letters elsewhere, which seldom are a word.
        '–' | '—' if before == ' ' && after == ' ' => 3,
        '–' | '—' | '…' => i64::from(!inside_a_word),
        '°' | '±' | '×' | '®' | '™' | '©' | '§' | 'µ' | '€' | 'º' | 'ª' | 'ƒ' | '\u{a0}' => {
            if inside_a_word {
                -3
            } else {
                1
            }
        }
        _ if !c.is_alphabetic() => {
            if inside_a_word {
                -3
            } else {
                -1
            }
        }
        // Two consecutive accented letters are rare in Latin script.
        _ if is_latin(c) && !before.is_ascii() && before.is_alphabetic() => -2,
        _ if !is_latin(c) && (before.is_ascii_alphabetic() || after.is_ascii_alphabetic()) => -2,
        // A capital letter begins a word of small letters, or is one of several.
        _ if c.is_uppercase()
            && (before.is_lowercase() || (before.is_alphabetic() && after.is_lowercase())) =>
        {
            -3
        }
        _ if c.is_uppercase() && !after.is_lowercase() => 1,
        _ => 2,
    }
}

fn is_latin(c: char) -> bool {
    c < '\u{250}'
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, EUC_KR, GBK, SHIFT_JIS, WINDOWS_1251};

    use super::*;

    const WESTERN: &str =
        "Müller und Nuñez: „Übersicht“ – l’éducation thérapeutique à l’hôpital, Größe 120 °C, Zoë, François";

    fn found(text: &str, encoding: &'static encoding_rs::Encoding) -> (Encoding, Certainty) {
        let (bytes, _, lossy) = encoding.encode(text);
        assert!(!lossy, "{}", encoding.name());
        let mut legacy = LegacyEncoding::default();
        legacy.inspect(&bytes);
        legacy.found()
    }

    #[test]
    fn western_encodings_are_distinguished() {
        assert_eq!(found(WESTERN, WINDOWS_1252), (Encoding::Windows1252, Certainty::Likely));
        assert_eq!(found(WESTERN, MACINTOSH), (Encoding::MacRoman, Certainty::Likely));
        let plain = "Müller und Nuñez, l'éducation thérapeutique à l'hôpital, Größe";
        assert_eq!(found(plain, WINDOWS_1252), (Encoding::Iso8859_1, Certainty::Likely));
        assert_eq!(found(plain, MACINTOSH), (Encoding::MacRoman, Certainty::Likely));
    }

    /// Encodes a text in code page 850.
    fn to_cp850(text: &str) -> Vec<u8> {
        let byte = |c: char| (0..=u8::MAX).find(|byte| Decoder::Cp850.decode(&[*byte]) == c.to_string());
        text.chars().map(|c| byte(c).unwrap()).collect()
    }

    /// Titles in German, French and Spanish.
    const TITLES: [&str; 9] = [
        "Größe und Häufigkeit von Stürzen bei älteren Menschen: eine randomisierte Prüfung",
        "Überprüfung der Wirksamkeit von Gehübungen für Schlaganfallpatienten, Müller und Großmann",
        "Häusliche Pflege: Möglichkeiten der Entlastung pflegender Angehöriger in Österreich",
        "Évaluation de l'efficacité d'un traitement à domicile chez les patients âgés hospitalisés",
        "Les effets de la rééducation précoce après une fracture du fémur : étude contrôlée",
        "Prévention des chutes à l'hôpital: une revue systématique, François et Noël",
        "Evaluación de la eficacia de la rehabilitación en niños con parálisis cerebral",
        "Prevención de caídas en ancianos: revisión sistemática y metaanálisis, Muñoz y Rodríguez",
        "Atención médica y calidad de vida después de la operación: un ensayo clínico español",
    ];

    #[test]
    fn code_page_850_and_windows_1252_are_distinguished() {
        let read = |bytes: &[u8]| {
            let mut legacy = LegacyEncoding::default();
            legacy.inspect(bytes);
            (legacy.found(), legacy.decoder().decode(bytes).into_owned())
        };
        for title in TITLES {
            let ((encoding, _), text) = read(&to_cp850(title));
            assert_eq!((encoding, text.as_str()), (Encoding::Cp850, title));
            let ((encoding, _), text) = read(&WINDOWS_1252.encode(title).0);
            assert_eq!((encoding, text.as_str()), (Encoding::Iso8859_1, title));
            let ((encoding, _), text) = read(&MACINTOSH.encode(title).0);
            assert_eq!((encoding, text.as_str()), (Encoding::MacRoman, title));
        }
        let all = TITLES.join("\n");
        assert_eq!(read(&to_cp850(&all)).0, (Encoding::Cp850, Certainty::Likely));
        assert_eq!(read(&WINDOWS_1252.encode(&all).0).0, (Encoding::Iso8859_1, Certainty::Likely));
    }

    #[test]
    fn single_name_is_enough_for_a_guess() {
        for name in ["Müller", "José", "Sørensen", "François", "Nuñez", "Gonçalves, João", "Åberg", "Straße"]
        {
            assert_eq!(found(name, WINDOWS_1252).0, Encoding::Iso8859_1, "{name}");
            assert_eq!(found(name, MACINTOSH).0, Encoding::MacRoman, "{name}");
        }
        for name in ["Müller", "José", "Nuñez"] {
            let mut legacy = LegacyEncoding::default();
            legacy.inspect(&to_cp850(name));
            assert_eq!(legacy.found().0, Encoding::Cp850, "{name}");
        }
    }

    #[test]
    fn other_scripts_are_detected() {
        for (text, encoding) in [
            ("Состояние рецепторного аппарата эндометрия и обмен эстрогенов", WINDOWS_1251),
            ("中华医学杂志：随机对照试验的系统评价与荟萃分析研究进展", GBK),
            ("ランダム化比較試験の系統的レビューに関する研究の進歩について", SHIFT_JIS),
            ("무작위 대조 시험에 대한 체계적 문헌 고찰 및 메타 분석 연구", EUC_KR),
            ("隨機對照試驗的系統性回顧與統合分析之研究進展", BIG5),
            (
                "Gyventojų sveikatos būklė ir šeimos gydytojų požiūris į lėtinių ligų valdymą, Žemaitija",
                WINDOWS_1257,
            ),
            (
                "Pacientu aprūpe Latvijā: ģimenes ārstu pieredze un attieksme pret slimību ārstēšanu, Bērziņš, ģenētiķis žņ",
                WINDOWS_1257,
            ),
            ("Yaşlılarda düşmeyi önleme programının etkisi: rastgele kontrollü çalışma", WINDOWS_1254),
            ("Účinnost zinku při léčbě běžného nachlazení u dětí: přehled, Dvořák, Jiří", WINDOWS_1250),
            ("Učinkovitost zdravljenja starejših bolnikov v Sloveniji, Čižman, Žiga", WINDOWS_1250),
            ("A légzőszervi betegségek előfordulása gyermekeknél, Szőke, Győző és Gyűrűs", WINDOWS_1250),
            ("Zażółć gęślą jaźń, wpływ świeżego powietrza na zdrowie dzieci w wieku szkolnym", WINDOWS_1250),
        ] {
            assert_eq!(found(text, encoding).0, Encoding::Other(OtherEncoding(encoding)), "{text}");
        }
    }
}
