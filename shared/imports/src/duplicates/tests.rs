//! Which studies are compared, in how little memory.

use super::*;

fn study(record: u64, title: &str, author: &str, doi: &str, pmid: &str) -> Identity {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let reference = Reference {
        title: title.to_owned(),
        authors: given(author).into_iter().collect(),
        year: Some(2020),
        doi: given(doi),
        pmid: given(pmid),
        ..Reference::default()
    };
    Identity::of(record, &reference)
}

/// The mark that each study gets in the end: its tier, and the record that it names.
fn marks(studies: &[Identity]) -> Vec<Option<(Tier, u64)>> {
    let mut matcher = Matcher::default();
    studies.iter().map(|study| mark(&mut matcher, studies, study)).collect()
}

fn mark(matcher: &mut Matcher, studies: &[Identity], study: &Identity) -> Option<(Tier, u64)> {
    let found = matcher.look(0, study).into_iter().filter_map(|(_, record)| {
        let earlier = studies.iter().find(|study| study.record == record)?;
        Some((study.repeats(&earlier.fields)?.0, record))
    });
    found.min_by_key(|(tier, record)| (std::cmp::Reverse(*tier), *record))
}

#[test]
fn the_surest_is_named_and_then_the_earliest() {
    let zinc = "Oral zinc for the prevention of colds";
    let studies = [
        study(1, zinc, "Kurugol, Z", "", ""),
        study(2, zinc, "Kurugol, Z", "10.1000/a", ""),
        study(3, "Oral zinc for the prevention of colds.", "KURUGOL Z", "10.1000/A", ""),
        study(4, zinc, "Kurugol, Z", "10.1000/b", ""),
        study(5, "Something else", "Smith, J", "", ""),
    ];
    let (certain, likely) = (Tier::Certain, Tier::Likely);
    assert_eq!(marks(&studies), [None, Some((likely, 1)), Some((certain, 2)), Some((likely, 1)), None]);
}

#[test]
fn what_is_only_possible_is_not_marked() {
    let versions = ["10.1002/14651858.cd1.pub2", "10.1002/14651858.cd1.pub3"];
    let studies =
        [1, 2].map(|n| study(n as u64, "Zinc for the common cold in children", "X, Y", versions[n - 1], ""));
    assert_eq!(marks(&studies), [None, None]);
}

/// Shown again for each share, each study is compared with the same others.
#[test]
fn however_little_memory_there_is_the_marks_are_the_same() {
    let studies: Vec<_> = (1..=400)
        .map(|n| {
            let named =
                |what: &str, of: u64| if n % 3 == 0 { String::new() } else { format!("{what}{}", n % of) };
            study(
                n,
                &format!("The title of number {} of ninety", n % 90),
                "Xu",
                &named("10.1000/", 90),
                &named("", 90),
            )
        })
        .collect();
    let expected = marks(&studies);
    assert!(expected.iter().flatten().count() > 300);
    // All of them have one key in common, of which the first 50 are kept.
    for most in [60, 200, 1_000] {
        let mut found = vec![None; studies.len()];
        let mut left = vec![Share::ALL];
        while let Some(share) = left.pop() {
            let mut matcher = Matcher { most, ..Matcher::of(share) };
            for (study, known) in studies.iter().zip(&mut found) {
                let new = mark(&mut matcher, &studies, study);
                let either = [*known, new].into_iter().flatten();
                *known = either.min_by_key(|(tier, record)| (std::cmp::Reverse(*tier), *record));
                left.extend(matcher.confine());
                assert!(matcher.places.len() <= most);
            }
        }
        assert_eq!(found, expected, "{most} keys");
    }
}

#[test]
fn giving_shares_up_makes_room_in_the_table_that_there_is() {
    let mut matcher = Matcher { most: 1_000, ..Matcher::default() };
    matcher.places = HashMap::with_capacity(1_400);
    let room = matcher.places.capacity();
    for n in 1..=30_000 {
        matcher.look(0, &study(n, "", "", &format!("10.1000/{n}"), ""));
        if n % 100 == 0 {
            matcher.confine();
        }
        assert_eq!(matcher.places.capacity(), room, "after {n} studies");
    }
    assert_ne!(matcher.share, Share::ALL);
}

/// However many have it.
#[test]
fn a_key_leads_to_the_earliest_that_have_it() {
    let mut matcher = Matcher::default();
    for n in 1..=200 {
        let found = matcher.look(n / 100, &study(n.into(), "Editorial", "", "", ""));
        let expected: Vec<_> = (1..n).take(50).map(|n| (n / 100, n.into())).collect();
        assert_eq!(found, expected, "{n}");
    }
}

#[test]
fn places_are_in_the_order_of_files_and_records() {
    let in_order = [(0, 1), (0, 2), (0, 1 << 40), (1, 1), (49, 7)];
    let places = in_order.map(|(position, record)| Place::new(position, record));
    assert!(places.is_sorted());
    assert_eq!(places.map(|place| (place.position(), place.record())), in_order);
}

#[test]
fn more_studies_only_add_marks_or_move_them_to_surer_or_earlier_ones() {
    let zinc = "Oral zinc for the prevention of colds";
    let all = [
        study(1, zinc, "Kurugol, Z", "", "7"),
        study(2, zinc, "Kurugol, Z", "10.1000/a", ""),
        study(3, "Oral zinc to prevent colds", "Akilli, M", "10.1000/a", "7"),
        study(4, "Oral zinc to prevent colds", "Akilli, M", "", ""),
        study(5, zinc, "Kurugol, Z", "10.1000/b", "7"),
    ];
    let rank = |(tier, record): (Tier, u64)| (std::cmp::Reverse(tier), record);
    let complete = marks(&all);
    for chosen in 0_u32..1 << all.len() {
        let some: Vec<_> =
            all.iter().filter(|study| chosen & (1 << (study.record - 1)) != 0).cloned().collect();
        for (study, mark) in some.iter().zip(marks(&some)) {
            let final_mark = complete[usize::try_from(study.record).unwrap() - 1];
            assert!(mark.is_none() || final_mark.is_some());
            assert!(mark.is_none() || final_mark.map(rank) <= mark.map(rank), "{study:?}");
        }
    }
}
