//! Variants that programs, languages and libraries write, of names, identifiers, placeholders and columns.

use references::Reference;

use crate::references;

/// The reference of a RIS record with these lines.
fn with(lines: &[&str]) -> Reference {
    let text = format!("TY  - JOUR\nTI  - A trial of tests\n{}\nER  - \n", lines.join("\n"));
    references(&text).remove(0)
}

fn people(value: &str) -> Vec<String> {
    with(&[&format!("AU  - {value}")]).authors
}

#[test]
fn lists_of_people_are_split_by_the_shape_of_names() {
    for (value, names) in [
        ("Roe, Ann|Doe, Bob", &["Roe, Ann", "Doe, Bob"][..]),
        ("Roe, Ann / Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
        ("ROE A, DOE BC", &["ROE, A", "DOE, BC"]),
        ("Ramón y Cajal S, Golgi C", &["Ramón y Cajal, S", "Golgi, C"]),
        ("García-Pérez, J. y López, M.", &["García-Pérez, J.", "López, M."]),
        ("Roe A1, Doe B1,2", &["Roe, A", "Doe, B"]),
        ("Roe, A., Test Study Group", &["Roe, A.", "Test Study Group"]),
        ("Test Study Group, Roe A, Doe B", &["Test Study Group", "Roe, A", "Doe, B"]),
        ("王伟[1],李娜[2]", &["王伟", "李娜"]),
        ("王伟1)、李娜2)", &["王伟", "李娜"]),
        ("王小明,李娜", &["王小明", "李娜"]),
        ("欧阳娜娜,司马光", &["欧阳娜娜", "司马光"]),
        ("王伟 李娜 张三", &["王伟", "李娜", "张三"]),
        ("山田太郎, 鈴木花子", &["山田太郎", "鈴木花子"]),
        ("日本循環器学会, 日本心臓病学会", &["日本循環器学会", "日本心臓病学会"]),
        // A comma between family and given name.
        ("山田, 太郎", &["山田, 太郎"]),
        ("高橋, 健太郎", &["高橋, 健太郎"]),
        ("山田 太郎", &["山田 太郎"]),
        // Organisations are whole.
        ("Test Institute, Boston MA", &["Test Institute, Boston MA"]),
        ("Ministerio de Salud y Protección Social", &["Ministerio de Salud y Protección Social"]),
    ] {
        assert_eq!(people(value), names, "{value}");
    }
}

#[test]
fn additions_in_other_languages_are_no_names() {
    for (value, names) in [
        ("Иванов И.И. и др.", &["Иванов, И.И."][..]),
        ("Петров П.П. [и др.]", &["Петров, П.П."]),
        ("Roe A et coll.", &["Roe, A"]),
        ("Roe A y cols.", &["Roe, A"]),
        ("Roe A u.a.", &["Roe, A"]),
        ("王伟 等", &["王伟"]),
        ("王伟,李娜,等", &["王伟", "李娜"]),
        ("王伟，李娜等", &["王伟", "李娜"]),
        ("Roe, Ann https://orcid.org/0000-0002-1825-0097", &["Roe, Ann"]),
        ("Roe, Ann (correspondence)", &["Roe, Ann"]),
        ("佚名", &[]),
        ("[Без автора]", &[]),
        ("s.n.", &[]),
        ("nan", &[]),
        ("17", &[]),
        ("ann.roe@example.org", &[]),
    ] {
        assert_eq!(people(value), names, "{value}");
    }
}

#[test]
fn placeholders_of_programs_are_empty_values() {
    let found =
        with(&["VL  - nan", "IS  - NaN", "SP  - 12", "EP  - nan", "JO  - [object Object]", "UR  - 暂无"]);
    assert_eq!((found.volume, found.issue, found.pages.as_deref()), (None, None, Some("12")));
    assert_eq!((found.journal, found.url), (None, None));
    assert_eq!(with(&["AB  - Resumen no disponible"]).r#abstract, None);
}

#[test]
fn identifiers_are_found_in_links_through_proxies() {
    let found = with(&[
        "UR  - https://doi-org.proxy.example.org/10.5555/a",
        "L2  - https://pubmed-ncbi-nlm-nih-gov.proxy.example.org/30000001/",
    ]);
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a"), Some("30000001")));
    let entry = "@article{a, title = {Tests}, eprint = {30000001}, eprinttype = {pmid}}";
    assert_eq!(references(entry)[0].pmid.as_deref(), Some("30000001"));
}
