//! Parses names of people in BibTeX files.

use memchr::memchr_iter;

use crate::{
    read::{latex, names, tidy},
    work::spend,
};

use super::plain;

/// Splits names at the word `and`, in any case, outside of braces. Names written by programs that use semicolons or
/// commas are split there.
pub(super) fn split_names(text: &str) -> Vec<String> {
    if !spend(text.len()) {
        return Vec::new();
    }
    let text = whole_group(tidy::trim(text)).filter(|inner| is_list_of_people(inner)).unwrap_or(text);
    let (mut names, mut start, mut depth, mut at) = (Vec::new(), 0, 0_usize, 0);
    // Unbalanced braces do not protect anything.
    let closed = count(text, b'{') == count(text, b'}');
    for word in text.split_inclusive(char::is_whitespace) {
        if (depth == 0 || !closed) && tidy::trim(word).eq_ignore_ascii_case("and") {
            names.push(&text[start..at]);
            start = at + word.len();
        }
        depth = (depth + count(word, b'{')).saturating_sub(count(word, b'}'));
        at += word.len();
    }
    names.push(&text[start..]);
    let names = names.into_iter().flat_map(at_semicolons).flat_map(at_signs).map(names::without_others);
    let names: Vec<&str> = names.collect();
    if let Some(names) = families_first(&names) {
        return names;
    }
    let (names, are_short) = at_commas(names);
    if are_short || have_initials_last(&names) {
        let short = |name: &&str| whole_group(name).is_none() && is_short(name);
        let each = |name| if short(&name) { names::one(&plain(name)) } else { person(name) };
        return names.into_iter().filter_map(each).collect();
    }
    let is_alone = names.len() == 1;
    names.into_iter().flat_map(|name| people(name, is_alone)).collect()
}

/// Parses `WANG Wei and LI Na` and `WANG Wei, LI Na`: the family names are in capitals.
fn families_first(names: &[&str]) -> Option<Vec<String>> {
    // Nearly all lists end this check at their first name.
    let first = names.first().filter(|first| names::may_have_capitals(first))?;
    let has_commas = names.len() == 1 && first.contains(',');
    let people = names.iter().filter(|name| !are_others(name));
    let people: Vec<&str> = people
        .flat_map(|name| name.split(|c| has_commas && c == ','))
        .map(tidy::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let is_plain = |name: &&str| !name.contains(['{', '}', '\\', '=', ',', '&']);
    people.iter().all(is_plain).then(|| names::families_first(&people)).flatten()
}

/// Splits names at semicolons, which some programs write instead of `and`.
fn at_semicolons(names: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    // The start of a character reference, which also ends in a semicolon.
    let mut reference = None;
    for (at, c) in names.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if reference.is_some_and(|begin| at > begin + 1) => {}
            ';' | '；' if depth == 0 => {
                parts.push(&names[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
        reference = match c {
            '&' => Some(at),
            '#' => reference,
            _ => reference.filter(|_| c.is_ascii_alphanumeric()),
        };
    }
    parts.push(&names[start..]);
    parts
}

/// Splits names at ampersands and slashes between blanks, if people are on both sides of each. Organisations have such
/// names too: `Johnson & Johnson`.
fn at_signs(names: &str) -> Vec<&str> {
    const SIGNS: [&str; 4] = [" & ", " \\& ", " &amp; ", " / "];
    let Some(sign) = SIGNS.into_iter().find(|sign| names.contains(sign)) else { return vec![names] };
    spend(4 * names.len());
    let are_people = |side: &str| !side.contains(['{', '}']) && are_people(&plain(side));
    if names.split(sign).all(are_people) { names.split(sign).collect() } else { vec![names] }
}

/// Returns `true` for `Roe, Ann`, `Ann Roe`, `Roe, A., Doe, B.` and `A. Roe, B. Doe`.
fn are_people(text: &str) -> bool {
    /// The last words of companies that are no other words of organisations.
    const COMPANIES: [&str; 7] =
        ["Associates", "Co", "Laboratories", "Limited", "Partners", "Publishers", "Sons"];
    let text = text.trim().trim_end_matches(',');
    let last = text.rsplit([' ', ',']).next().unwrap_or_default().trim_end_matches('.');
    if names::is_organisation(text) || COMPANIES.contains(&last) {
        return false;
    }
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    parts.iter().all(|part| names::is_natural(part))
        || (parts.len().is_multiple_of(2) && parts.chunks(2).all(|pair| is_person(pair[0], pair[1])))
}

/// Returns `true` for a family name and given names.
fn is_person(family: &str, given: &str) -> bool {
    names::is_natural(&format!("{given} {family}"))
}

/// Returns `true` for `Roe, Ann and Doe, Bob`: a comma between family and given name in each part.
fn is_list_of_people(text: &str) -> bool {
    if !text.contains(" and ") || !spend(3 * text.len()) || names::is_organisation(text) {
        return false;
    }
    text.split(" and ").all(|name| {
        let name = plain(name);
        name.split_once(',').is_some_and(|(family, given)| is_person(family.trim(), given.trim()))
    })
}

/// Splits a list with commas before its only or last `and`, and returns `true` if all names are in the order of `Roe A`.
/// Two names in natural order without `and` may be a family name and given names.
fn at_commas(names: Vec<&str>) -> (Vec<&str>, bool) {
    let Some((first, others)) = names.split_first() else { return (names, false) };
    let parts: Vec<&str> = first.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let is_plain = |name: &str| !name.contains(['{', '\\', '=']) && !names::is_organisation(name);
    if parts.len() < 2 || !is_plain(first) || !spend(2 * first.len()) {
        return (names, false);
    }
    // Spanish names abbreviate the second family name: `Rojas C., Pablo A.`
    let are_two = parts.len() == 2 && others.is_empty() && !first.contains('.');
    let are_short = (parts.len() > 2 || are_two || others.iter().any(|name| !are_others(name)))
        && parts.iter().all(|part| is_short(part))
        && others.iter().all(|name| is_short(name) || are_others(name));
    let is_family_first = matches!(parts[..], [family, _] if names::begins_with_particle(family));
    let are_natural = others.len() == 1
        && !is_family_first
        && others.iter().all(|name| is_plain(name) && names::is_natural(name))
        && parts.iter().all(|part| names::is_natural(part));
    if !are_short && !are_natural {
        return (names, false);
    }
    (parts.into_iter().chain(others.iter().copied()).collect(), are_short)
}

/// Parses `Roe, A., Doe, B., Poe, Farm, C. D.`, where the initials of a few people are missing.
fn with_missing_initials(parts: &[&str]) -> Option<Vec<String>> {
    let is_family = |part: &str| {
        part.starts_with(char::is_uppercase)
            && part.contains(char::is_lowercase)
            && part.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '\'' | '’'))
            && !names::is_suffix(part)
    };
    let mut people: Vec<(&str, &str)> = Vec::new();
    for part in parts {
        match people.last_mut() {
            Some((_, given)) if given.is_empty() && are_initials(part) && !names::is_degree(part) => {
                *given = part;
            }
            _ if is_family(part) => people.push((part, "")),
            _ => return None,
        }
    }
    let whole = people.iter().filter(|(_, given)| !given.is_empty()).count();
    (whole > 1 && whole < people.len() && 2 * whole > people.len())
        .then(|| people.into_iter().filter_map(|(family, given)| names::joined(family, given)).collect())
}

/// Returns `true` for `Roe A` and `Roe JA`: the last word has a single letter, or two or three capitals that are hardly a
/// family name. Some people write their family name in capitals: `Wei LI`, `Jun WANG`.
fn ends_in_initials(name: &str) -> bool {
    let words = words_of(name);
    let Some(last) = words.last() else { return false };
    let is_vowel = |c: char| "AEIOUY".contains(c);
    let are_initials = match last.chars().count() {
        1 => true,
        2 => !names::is_family_of_two(last),
        3 => last.is_ascii() && !last.contains(is_vowel),
        _ => false,
    };
    are_initials
        && words[0].contains(char::is_lowercase)
        && names::is_short(&words)
        && !names::is_group(&words)
}

/// Returns `true` for a list such as `Roe A and Doe BC and Test Study Group`, as programs write that convert from PubMed.
/// A single letter shows that the last words are initials: families may be in capitals, as in `Wei LI`.
fn have_initials_last(names: &[&str]) -> bool {
    let is_other =
        |name: &str| are_others(name) || whole_group(name).is_some() || names::is_group(&words_of(name));
    let has_initial = |name: &str| words_of(name).last().is_some_and(|last| last.chars().count() == 1);
    // Most lists end this check at their first name, so few names are decoded twice.
    names.len() > 1
        && names.iter().all(|name| is_short(name) || is_other(name))
        && names.iter().any(|name| has_initial(name) && !is_other(name))
}

/// Returns `true` for the word that BibTeX writes for omitted authors.
fn are_others(name: &str) -> bool {
    tidy::trim(name).eq_ignore_ascii_case("others")
}

/// Returns `true` for given names that are initials, possibly with blanks.
fn are_initials(given: &str) -> bool {
    names::are_initials(&given.replace(' ', "")) && !names::is_suffix(given)
}

fn is_short(name: &str) -> bool {
    !name.contains(',') && names::is_short(&words_of(name))
}

fn words_of(name: &str) -> Vec<String> {
    plain(name).split_whitespace().map(str::to_owned).collect()
}

/// Parses a name, or several that commas separate. BibTeX permits two commas, around a suffix. `is_alone` is `true` if the
/// list has no `and`.
fn people(name: &str, is_alone: bool) -> Vec<String> {
    let bare = tidy::trim(name);
    // The Cochrane Library writes a comma before `and`. A comma behind the only part marks a group.
    let bare = bare.strip_suffix(',').filter(|bare| bare.contains(',')).unwrap_or(bare);
    if bare.contains(['{', '\\', '=']) {
        return person(bare).into_iter().collect();
    }
    if is_alone && !bare.contains(',') && ends_in_initials(bare) {
        return names::one(&plain(bare)).into_iter().collect();
    }
    let parts: Vec<&str> = bare.split(',').map(str::trim).collect();
    if is_alone && let Some(people) = with_missing_initials(&parts) {
        return people;
    }
    if let Some(people) = names::pairs_with_suffixes(&parts).filter(|_| !names::is_organisation(bare)) {
        return people;
    }
    let has_initial = || bare.split([' ', ',']).any(|word| word.ends_with('.') || word.chars().count() == 1);
    // Initials have up to three letters; longer ones abbreviate organisations. Degrees and suffixes follow names.
    let is_brief =
        |given: &str| given.chars().filter(|c| c.is_alphabetic()).count() <= 3 && !names::is_degree(given);
    let is_family = |family: &str| family.contains(char::is_lowercase) && !names::is_suffix(family);
    match parts.as_slice() {
        // `Ann Roe, Bob Doe, Kay Poe`. Pairs without initials may be family names of two words with given names.
        [_, _, _, ..]
            if parts.iter().all(|part| names::is_natural(part))
                && !names::is_organisation(bare)
                && (parts.len() % 2 == 1 || has_initial()) =>
        {
            parts.into_iter().filter_map(person).collect()
        }
        // `Roe, A., B. Doe, and C. Poe` in the style of Chicago.
        [_, given, others @ ..]
            if !others.is_empty()
                && are_initials(given)
                && others.iter().all(|name| {
                    names::is_natural(name) && name.split(' ').next().is_some_and(are_initials)
                }) =>
        {
            let first = names::joined(&plain(parts[0]), &plain(given));
            first.into_iter().chain(others.iter().filter_map(|name| person(name))).collect()
        }
        // `Roe, A, Doe, B, and Poe, C` of the Cochrane Library. A single name has at most two commas.
        [_, _, _, _, ..]
            if parts.len().is_multiple_of(2)
                && parts.iter().skip(1).step_by(2).all(|given| are_initials(given) && is_brief(given))
                && parts.iter().step_by(2).all(|family| is_family(family)) =>
        {
            parts.chunks(2).filter_map(|pair| names::joined(&plain(pair[0]), &plain(pair.get(1)?))).collect()
        }
        // `Roe, Ann B., Doe, Carl`
        [_, _, _, _, ..] if names::are_pairs(&parts) && !names::is_organisation(bare) => {
            parts.chunks(2).filter_map(|pair| names::joined(&plain(pair[0]), &plain(pair.get(1)?))).collect()
        }
        // `Roe, A., Doe, B.`
        [_, _, _, _, ..]
            if is_alone
                && parts.iter().skip(1).step_by(2).all(|given| !given.contains(char::is_lowercase)) =>
        {
            names::split_decoded(&plain(bare)).collect()
        }
        _ => person(bare).into_iter().collect(),
    }
}

fn count(text: &str, brace: u8) -> usize {
    memchr_iter(brace, text.as_bytes()).count()
}

/// Parses `Family, Given`, `Family, Jr, Given`, `Given von Family`, `family=…, given=…`, or a group in braces.
fn person(name: &str) -> Option<String> {
    let name = names::without_homonym(tidy::trim(name));
    if let Some(group) = whole_group(name) {
        return tidy::line_of(plain(group));
    }
    if are_others(name) {
        return None;
    }
    let parts = outside_braces(name, |c| c == ',');
    if let Some(named) = named_parts(&parts) {
        return named;
    }
    let parts: Vec<String> = match parts.as_slice() {
        [whole] => return family_last(whole),
        parts => parts.iter().map(|part| tidy::line_of(plain(part)).unwrap_or_default()).collect(),
    };
    match parts.as_slice() {
        [family, given] => names::joined(family, given.trim_end_matches([',', ' '])),
        // `Roe, Ann, Jr.`, in the order of other programs.
        [family, given, suffix] if names::is_suffix(suffix) => Some(format!("{family}, {given}, {suffix}")),
        [initials, family, given] if names::repeats_initials(initials, family, given) => {
            names::joined(family, given)
        }
        [group, _, _] if names::is_organisation(group) => Some(parts.join(", ")),
        [family, suffix, given] if !given.is_empty() => Some(format!("{family}, {given}, {suffix}")),
        _ => names::joined(&parts[0], parts[1..].join(", ").trim_end_matches([',', ' '])),
    }
}

/// Returns the content of braces around the whole name.
fn whole_group(name: &str) -> Option<&str> {
    let inner = name.strip_prefix('{')?.strip_suffix('}')?;
    let mut depth = 0_usize;
    for byte in inner.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    // `{\"U}` is a letter; a name that consists of such braces equals its content anyway.
    Some(inner)
}

/// Splits a text at separators that are not in braces.
fn outside_braces(text: &str, separates: fn(char) -> bool) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && separates(c)
    })
    .collect()
}

/// Parses BibLaTeX's extended form: `family=Hakim, given=Tawfiq, prefix=al-, useprefix=true`.
fn named_parts(parts: &[&str]) -> Option<Option<String>> {
    let (mut family, mut given, mut prefix, mut suffix): (String, String, String, String) =
        Default::default();
    for part in parts {
        let (name, value) = part.trim().trim_matches('"').split_once('=')?;
        let value = tidy::line(&plain(value.trim().trim_matches('"'))).unwrap_or_default();
        match name.trim().to_ascii_lowercase().as_str() {
            "family" => family = value,
            "given" => given = value,
            "prefix" => prefix = value,
            "suffix" => suffix = value,
            name if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') => {}
            _ => return None,
        }
    }
    // The prefix belongs to the name, whatever `useprefix` says about the order of a bibliography.
    let family: String = match prefix.chars().next_back() {
        None => family,
        Some(_) if family.is_empty() => prefix,
        Some('-' | '\'' | '’') => prefix + &family,
        Some(_) => format!("{prefix} {family}"),
    };
    if !suffix.is_empty() {
        given = format!("{given}, {suffix}");
    }
    Some(names::joined(&family, &given))
}

/// Splits before the first lower-case particle, or else before the last word.
fn family_last(name: &str) -> Option<String> {
    let mut parts: Vec<&str> = outside_braces(name, |c| c.is_whitespace() || c == '~');
    if name.contains('\\') {
        parts = accents_joined(name, parts);
    }
    let words: Vec<String> = parts.into_iter().filter_map(|word| tidy::line_of(plain(word))).collect();
    if let [before @ .., suffix] = words.as_slice()
        && before.len() > 1
        && names::is_suffix(suffix)
    {
        return Some(format!("{}, {suffix}", in_order(before)?));
    }
    in_order(&words)
}

/// Puts the family name of a name without a suffix first.
fn in_order(words: &[String]) -> Option<String> {
    let (last, before) = words.split_last()?;
    // Chinese, Japanese and Korean names begin with the family. Groups have no family name.
    let is_group = || names::is_group(words) || (words.len() > 2 && begins_like_group(words));
    if words.iter().all(|word| names::is_without_alphabet(word)) || is_group() {
        return tidy::line(&words.join(" "));
    }
    // Embase and Ovid write "Roe J.", which has no family name at its end.
    let is_short = last.ends_with('.') && names::is_short(words);
    if is_short {
        return names::one(&words.join(" "));
    }
    let particle =
        before.iter().skip(1).position(|word| word.starts_with(char::is_lowercase)).map(|at| at + 1);
    let at = particle.unwrap_or(before.len());
    let family = before[at..].iter().chain([last]).map(String::as_str).collect::<Vec<_>>().join(" ");
    names::joined(&family, &before[..at].join(" "))
}

/// Returns `true` for `World Federation of Nurses`, `Society for Tests` and `Ministerio de Salud`.
fn begins_like_group(words: &[String]) -> bool {
    let [first, .., _] = words else { return false };
    words[1..].iter().any(|word| matches!(word.as_str(), "of" | "for")) || names::is_organisation(first)
}

/// Rejoins words of a name that were split at the blank after an accent such as `\\H`.
fn accents_joined<'a>(name: &'a str, words: Vec<&'a str>) -> Vec<&'a str> {
    let (mut joined, mut start, mut at) = (Vec::with_capacity(words.len()), 0, 0);
    for word in words {
        at += word.len();
        if !latex::ends_in_accent(word) || at == name.len() {
            joined.push(&name[start..at]);
            start = at + name[at..].chars().next().map_or(0, char::len_utf8);
        }
        at += name[at..].chars().next().map_or(0, char::len_utf8);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_by_bibtex_rules() {
        let text = r#"Doe, Jane and John van der Berg and {Study Group and Friends} AND Smith, Jr, J. and M{\"u}ller, J{\"o}rg and others"#;
        assert_eq!(
            split_names(text),
            ["Doe, Jane", "van der Berg, John", "Study Group and Friends", "Smith, J., Jr", "Müller, Jörg"]
        );
    }

    #[test]
    fn group_and_non_latin_names_keep_order() {
        assert_eq!(split_names("山田 太郎 and 김 철수"), ["山田 太郎", "김 철수"]);
        assert_eq!(
            split_names("Roe J. and van der Doe A.B. and J. Farm"),
            ["Roe, J.", "van der Doe, A.B.", "Farm, J."]
        );
        assert_eq!(
            split_names("Jane Roe and Test Study Group and World Test Organization"),
            ["Roe, Jane", "Test Study Group", "World Test Organization"]
        );
        assert_eq!(split_names("TEST Group and TEST Collaborat"), ["TEST Group", "TEST Collaborat"]);
    }

    #[test]
    fn braces_protect_words_from_splitting() {
        assert_eq!(split_names(r"Jane {Mary Ann Roe}"), ["Mary Ann Roe, Jane"]);
        assert_eq!(split_names(r"{{The {WHO} Group}} and {Berg, Ltd}"), ["The WHO Group", "Berg, Ltd"]);
        assert_eq!(split_names("van Dyck, A and Plato"), ["van Dyck, A", "Plato"]);
        assert_eq!(split_names(r"{A}lan {T}uring"), ["Turing, Alan"]);
    }

    #[test]
    fn lists_of_other_programs_are_split() {
        for (text, names) in [
            ("Roe, A.; Doe, B.", &["Roe, A.", "Doe, B."][..]),
            ("Ann Roe; Bob Doe; Kay Poe", &["Roe, Ann", "Doe, Bob", "Poe, Kay"]),
            ("张三;李四;王五", &["张三", "李四", "王五"]),
            ("Ann T. Roe,Bob Doe,Kay Poe", &["Roe, Ann T.", "Doe, Bob", "Poe, Kay"]),
            ("Ann Roe, Bob Doe, Kay Poe and Jo Farm", &["Roe, Ann", "Doe, Bob", "Poe, Kay", "Farm, Jo"]),
            ("Roe, A., Doe, B., Poe, C.", &["Roe, A.", "Doe, B.", "Poe, C."]),
            ("Van Houten, Mary Beth and John Doe", &["Van Houten, Mary Beth", "Doe, John"]),
            ("Roe, AB, Doe, C, and Poe, D", &["Roe, AB", "Doe, C", "Poe, D"]),
            ("Roe, A.-M., van der Doe, B. C. and others", &["Roe, A.-M.", "van der Doe, B. C."]),
            ("Roe, A, and Doe, B", &["Roe, A", "Doe, B"]),
            ("Roe, A., B. Doe, and C. Poe", &["Roe, A.", "Doe, B.", "Poe, C."]),
            ("Roe, A., Jane", &["Roe, Jane, A."]),
            ("Roe, A. and Smith, J., MD, MPH", &["Roe, A.", "Smith, J., MD, MPH"]),
            ("Roe A and Doe BC and van der Berg J", &["Roe, A", "Doe, BC", "van der Berg, J"]),
            ("Ann Roe et al.", &["Roe, Ann"]),
            ("Roe, Ann, et al.", &["Roe, Ann"]),
            ("Ann Roe Jr.", &["Roe, Ann, Jr."]),
            ("Juan de la Roe Jr.", &["de la Roe, Juan, Jr."]),
            ("Roe, Ann, III", &["Roe, Ann, III"]),
            ("A.B., Roe, Ann B. and C., Doe, Carl", &["Roe, Ann B.", "Doe, Carl"]),
            ("Wei LI and Jun WANG", &["LI, Wei", "WANG, Jun"]),
            ("Roe A and Doe BC and others", &["Roe, A", "Doe, BC"]),
            ("WANG Wei and LI Na and ZHAO Ming", &["WANG, Wei", "LI, Na", "ZHAO, Ming"]),
            ("WANG Wei, LI Na, ZHAO Ming", &["WANG, Wei", "LI, Na", "ZHAO, Ming"]),
            ("WANG Wei and others", &["WANG, Wei"]),
            ("JA Smith and BC Doe", &["Smith, JA", "Doe, BC"]),
            ("XU Li and Ann Roe", &["Li, XU", "Roe, Ann"]),
            ("Roe A and Doe BC and {Test Study Group}", &["Roe, A", "Doe, BC", "Test Study Group"]),
            ("Roe A and M{\\\"u}ller BC et al.", &["Roe, A", "Müller, BC"]),
            ("Roe, A.; M&uuml;ller, B.; Poe, C.", &["Roe, A.", "Müller, B.", "Poe, C."]),
            ("Test School, Roe City, United States", &["Test School, Roe City, United States"]),
            ("García Roe, Ana José, Pérez Doe, Eva María", &["García Roe, Ana José, Pérez Doe, Eva María"]),
            ("Roe, Jr., Ann", &["Roe, Ann, Jr."]),
            ("Roe, A., Jr., Doe, B.", &["Roe, A., Jr.", "Doe, B."]),
            ("Roe, Ann B., Doe, Carl-Dan", &["Roe, Ann B.", "Doe, Carl-Dan"]),
            ("Roe, Ann B., Doe, Carl and Poe, D.", &["Roe, Ann B.", "Doe, Carl", "Poe, D."]),
            ("Roe, Ann, Doe, Carl and Poe, D.", &["Roe, Ann, Doe, Carl", "Poe, D."]),
            ("Test Institute, Ann B., Roe, Doe", &["Test Institute, Ann B., Roe, Doe"]),
            ("M&uuml;ller, Ann", &["Müller, Ann"]),
            ("{Roe; Doe and Sons}", &["Roe; Doe and Sons"]),
            ("Roe A, Doe BC, Poe D", &["Roe, A", "Doe, BC", "Poe, D"]),
            ("Roe A., Doe B. and Poe C. D.", &["Roe, A.", "Doe, B.", "Poe, C. D."]),
            ("Roe AB, Doe CD, Poe EF and others", &["Roe, AB", "Doe, CD", "Poe, EF"]),
            ("Roe A, Doe B", &["Roe, A", "Doe, B"]),
            ("Ann Roe, Bob Doe and Kay Poe", &["Roe, Ann", "Doe, Bob", "Poe, Kay"]),
            ("A. Roe, B. Doe, and C. Poe", &["Roe, A.", "Doe, B.", "Poe, C."]),
            (
                "Ann Roe, Bob Doe, Kay Poe, Jo Farm and Ed Hill",
                &["Roe, Ann", "Doe, Bob", "Poe, Kay", "Farm, Jo", "Hill, Ed"],
            ),
            ("Roe, A., Doe, B., Poe, Farm, C. D.", &["Roe, A.", "Doe, B.", "Poe", "Farm, C. D."]),
            // Family names of two words.
            ("Roe Doe, Ann and Poe Farm, Bob", &["Roe Doe, Ann", "Poe Farm, Bob"]),
            (
                "García Roe, Ana José and Pérez Doe, Eva María",
                &["García Roe, Ana José", "Pérez Doe, Eva María"],
            ),
            ("van der Roe, Ann Kay and Bob Doe", &["van der Roe, Ann Kay", "Doe, Bob"]),
            ("Roe A, Bob and Doe, C.", &["Roe A, Bob", "Doe, C."]),
            ("Roe, Ann, Doe, Bob", &["Roe, Ann, Doe, Bob"]),
            ("Test Group, Ann Arbor and Ann Roe", &["Test Group, Ann Arbor", "Roe, Ann"]),
            // Signs.
            ("Roe, A. & Doe, B.", &["Roe, A.", "Doe, B."]),
            ("Roe, A., Doe, B. & Poe, C.", &["Roe, A.", "Doe, B.", "Poe, C."]),
            ("A. Roe \\& B. Doe", &["Roe, A.", "Doe, B."]),
            ("Ann Roe / Bob Doe", &["Roe, Ann", "Doe, Bob"]),
            ("Roe, Ann &amp; Doe, Bob and Poe, Kay", &["Roe, Ann", "Doe, Bob", "Poe, Kay"]),
            ("Johnson & Johnson", &["Johnson, Johnson &"]),
            ("{Roe \\& Doe}", &["Roe & Doe"]),
            ("Merck Sharp & Dohme Corp.", &["Merck Sharp & Dohme Corp."]),
            ("Smith Kline & French Laboratories", &["Laboratories, Smith Kline & French"]),
            // A single name.
            ("Roe A", &["Roe, A"]),
            ("Ann X", &["Ann, X"]),
            ("Roe JA", &["Roe, JA"]),
            ("van der Berg DM", &["van der Berg, DM"]),
            ("Аренс З", &["Аренс, З"]),
            ("Wei LI", &["LI, Wei"]),
            ("Jun WANG", &["WANG, Jun"]),
            ("Kay NG", &["NG, Kay"]),
            ("Kay XI", &["XI, Kay"]),
            ("Roe C., Pablo A.", &["Roe C., Pablo A."]),
            ("A Roe", &["Roe, A"]),
            // Braces around a list.
            ("{Roe, Ann A. and Doe, Bob}", &["Roe, Ann A.", "Doe, Bob"]),
            ("{Ann Roe and Bob Doe}", &["Ann Roe and Bob Doe"]),
            ("{Institute of Tests, Roe and Hospital, Doe}", &["Institute of Tests, Roe and Hospital, Doe"]),
            ("{Berg, Ltd and Tests}", &["Berg, Ltd and Tests"]),
        ] {
            assert_eq!(split_names(text), names, "{text}");
        }
    }

    #[test]
    fn blank_behind_accent_does_not_separate() {
        assert_eq!(split_names(r"Ann\H o  Ro\v s~Poe and J. \O Roe"), ["Poe, Annő Roš", "Roe, J. Ø"]);
    }

    #[test]
    fn names_are_split_despite_unbalanced_braces() {
        assert_eq!(split_names("Jane Roe{ and John Poe"), ["Roe, Jane", "Poe, John"]);
    }

    #[test]
    fn named_parts_are_parsed() {
        assert_eq!(
            split_names("family=Gogh, given=Vincent, prefix=van, useprefix=true"),
            ["van Gogh, Vincent"]
        );
        assert_eq!(
            split_names("given=Johann, prefix=von, family=Goethe, useprefix=false"),
            ["von Goethe, Johann"]
        );
        assert_eq!(split_names("family={Roe, Ltd}, suffix=Jr, given=J"), ["Roe, Ltd, J, Jr"]);
    }
}
