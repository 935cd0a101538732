//! The grouping of reasons into causes.

use uuid::Uuid;

/// The maximum number of characters that are read of a reason, and the maximum length of its outline. Ids and names
/// count for the first limit and not for the second, so the outline of a reason that is cut off does not depend on
/// their length.
const MAX_READ: usize = 2_000;
const MAX_CHARS: usize = 300;

/// Returns the fingerprint of a reason: 16 hexadecimal digits. Two reasons have the same fingerprint if they differ
/// only in ids, numbers, addresses, times and quoted names, and in how many of these they list.
pub fn fingerprint(reason: &str) -> String {
    let id = Uuid::new_v5(&Uuid::nil(), outline(reason).as_bytes()).simple().to_string();
    id.chars().take(16).collect()
}

/// Returns a reason without the parts that vary between occurrences.
fn outline(reason: &str) -> String {
    let mut outline = String::new();
    let mut word = String::new();
    let mut closing = None;
    for c in reason.chars().take(MAX_READ) {
        if let Some(end) = closing {
            if c == end {
                closing = None;
            }
            continue;
        }
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '\'') {
            word.push(c);
            continue;
        }
        finish(&mut word, &mut outline);
        match c {
            '"' | '`' | '“' => {
                closing = Some(if c == '“' { '”' } else { c });
                list(&mut outline);
            }
            c if c.is_whitespace() => outline.push(' '),
            c => outline.push(c),
        }
    }
    finish(&mut word, &mut outline);
    outline.chars().take(MAX_CHARS).collect()
}

/// Appends the placeholder of a part that varies. A list of placeholders is reduced to one.
fn list(outline: &mut String) {
    let joined = ["#, ", "# and "].iter().find(|joined| outline.ends_with(**joined));
    match joined {
        Some(joined) => outline.truncate(outline.len() - joined.len() + 1),
        None => outline.push('#'),
    }
}

/// Appends a word. A word with a digit is a number, an id, a time or an address.
fn finish(word: &mut String, outline: &mut String) {
    if word == "more" && outline.ends_with("# ") {
        // The end of a list that states how many items it omits.
        outline.pop();
    } else if word.chars().any(|c| c.is_ascii_digit()) {
        list(outline);
        // Punctuation at the end of a clause is not part of a number.
        outline.extend(word.chars().last().filter(|c| matches!(c, ':' | '.')));
    } else {
        outline.push_str(word);
    }
    word.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(
        "storing partition 8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77: no answer within 10 s",
        "storing partition 019b76da-a800-700a-8000-000000000001: no answer within 5 s"
    )]
    #[case(
        "loading 3 partitions: connection to 127.0.0.1:27017 refused",
        "loading 10 partitions: connection to 10.1.2.3:27018 refused"
    )]
    #[case("file \"a.ris\" is gone", "file \"another name.ris\" is gone")]
    #[case(
        "loading partition 8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77 failed: no server answers",
        "loading partition 019b76da-a800-700a-8000-000000000001, 019b76da-a800-700a-8000-000000000002 failed: no server answers"
    )]
    #[case(
        "loading partition 8f0c6a52 failed: no server answers",
        "loading partition 019b76da, 019b76db, 019b76dc and 7 more failed: no server answers"
    )]
    #[case("not read in time: \"a.ris\"", "not read in time: \"a.ris\", \"b.ris\" and \"c.ris\"")]
    #[case(
        "abandoned at 2026-01-08T16:53:06Z: the lease was lost",
        "abandoned at 2027-03-01T00:00:00Z: the lease was lost"
    )]
    fn reasons_of_same_cause_share_fingerprint(#[case] one: &str, #[case] other: &str) {
        assert_eq!(fingerprint(one), fingerprint(other), "{} | {}", outline(one), outline(other));
    }

    /// A long reason is cut off, and the length of the remaining text depends on the length of the ids in it.
    #[test]
    fn fingerprint_ignores_length_of_ids() {
        let tail = "the server said ".repeat(50);
        let one = format!("loading partition {} failed: {tail}", "a1".repeat(5));
        let other = format!("loading partition {} failed: {tail}", "a1".repeat(100));
        assert_eq!(fingerprint(&one), fingerprint(&other));
    }

    #[rstest::rstest]
    #[case("storing partition 1 failed", "loading partition 1 failed")]
    #[case("the database does not answer", "the queue does not answer")]
    #[case("", "no reason")]
    fn different_causes_have_different_fingerprints(#[case] one: &str, #[case] other: &str) {
        assert_ne!(fingerprint(one), fingerprint(other));
        assert_eq!(fingerprint(one).len(), 16);
    }
}
