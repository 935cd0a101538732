//! Converts authors' names to `"Family, Given"`.
//!
//! A name whose parts cannot be distinguished is kept unchanged: a wrong family name is worse than none, because
//! deduplication and screening use it.

mod additions;
mod capitals;
mod cells;
mod groups;
mod lists;
mod one;
mod scripts;
mod shapes;

pub(super) use additions::{is_degree, of_ovid, repeats_initials, without_additions, without_homonym};
pub(super) use capitals::{families_first, in_capitals, is_family_of_two, may_have_capitals};
pub(super) use cells::{in_natural_order, separator, split_cell};
pub(super) use groups::{is_group, is_organisation};
pub(super) use lists::{are_pairs, pairs_with_suffixes, split_decoded, without_others};
pub(super) use one::{family_first, one, with_suffix, without_address};
pub(super) use shapes::{
    are_initials, begins_with_particle, is_ideographic, is_natural, is_short, is_suffix, is_without_alphabet,
    joined,
};

#[cfg(test)]
mod tests {
    use super::{super::entities, *};

    fn of(value: &str) -> Vec<String> {
        split_decoded(&entities::decode(value)).collect()
    }

    #[test]
    fn names_in_cells_are_split() {
        assert_eq!(split_cell("Liu R., Adler D.G."), ["Liu, R.", "Adler, D.G."]);
        assert_eq!(split_cell("Smith J, van der Berg AB."), ["Smith, J", "van der Berg, AB"]);
        assert_eq!(split_cell("Liu, R., Adler, D.G."), ["Liu, R.", "Adler, D.G."]);
        assert_eq!(split_cell("Liu, Rui; Adler, Douglas G"), ["Liu, Rui", "Adler, Douglas G"]);
        assert_eq!(split_cell("['Marx, Karl', \"O'Neil, Ann\"]"), ["Marx, Karl", "O'Neil, Ann"]);
        assert_eq!(split_cell("Jane Doe, John Smith, Mary Major"), ["Jane Doe", "John Smith", "Mary Major"]);
        assert_eq!(split_cell("Doe, Jane Mary"), ["Doe, Jane Mary"]);
        assert_eq!(
            split_cell("Smith, John A. and Doe, Jane; and Roe, R"),
            ["Smith, John A.", "Doe, Jane", "Roe, R"]
        );
        assert_eq!(split_cell("Doe, Jane AND Roe, R"), ["Doe, Jane", "Roe, R"]);
        assert_eq!(split_cell("Liu R., Adler D.G. and Doe J."), ["Liu, R.", "Adler, D.G.", "Doe, J."]);
        assert_eq!(split_cell("JA Smith, A van der Berg"), ["Smith, JA", "van der Berg, A"]);
        assert_eq!(split_cell("Food and Drug Administration"), ["Food and Drug Administration"]);
        assert_eq!(split_cell("Roe J, et al"), ["Roe, J"]);
        assert_eq!(split_cell("A., Roe, Ann"), ["Roe, Ann"]);
        assert_eq!(split_cell("Roe, A., Doe, B., Jr."), ["Roe, A.", "Doe, B., Jr."]);
        assert_eq!(
            split_cell("Roe J*, Doe A (1,2), Test Study Group"),
            ["Roe, J", "Doe, A", "Test Study Group"]
        );
    }

    #[test]
    fn slashes_and_numbers_separate_names() {
        for (cell, names) in [
            ("Roe, A./Doe, B.", ["Roe, A.", "Doe, B."]),
            ("1. Roe A; 2. Doe B", ["Roe, A", "Doe, B"]),
            ("1) Roe, A; 2) Doe, B", ["Roe, A", "Doe, B"]),
            ("1. FC Tests; Doe, B", ["1. FC Tests", "Doe, B"]),
        ] {
            assert_eq!(split_cell(cell), names, "{cell}");
        }
    }

    #[test]
    fn particles_suffixes_and_accents_stay_with_names() {
        for (given, read) in [
            ("van der Berg AB", "van der Berg, AB"),
            ("van der Berg, Anna B.", "van der Berg, Anna B."),
            ("Smith, John, Jr.", "Smith, John, Jr."),
            ("Smith,John,Jr.", "Smith, John, Jr."),
            ("Smith ,John", "Smith, John"),
            ("Smith , John", "Smith, John"),
            ("Smith Jr., John", "Smith, John, Jr."),
            ("Smith, John Jr.", "Smith, John, Jr."),
            ("Smith, J. A. Jr", "Smith, J. A., Jr"),
            ("Smith, J. II", "Smith, J. II"),
            ("van der Berg III, Anna", "van der Berg, Anna, III"),
            ("Smith,  John ,", "Smith, John"),
            (", John", "John"),
            ("Smith JA Jr", "Smith, JA, Jr"),
            ("Smith J 3rd", "Smith, J, 3rd"),
            ("de la Cruz Núñez J-M", "de la Cruz Núñez, J-M"),
            ("M&uuml;ller, J&ouml;rg", "Müller, Jörg"),
            ("World Health Organization,", "World Health Organization"),
            ("Study Group UK,", "Study Group UK"),
            ("毛泽东", "毛泽东"),
            ("SMITH JA", "SMITH, JA"),
            ("SMITH J.A.B.", "SMITH, J.A.B."),
            ("JUNCHANG LÜ", "JUNCHANG LÜ"),
            ("IEEE COMP SOC", "IEEE COMP SOC"),
            ("Doe", "Doe"),
        ] {
            assert_eq!(of(given), [read], "{given}");
        }
    }

    #[test]
    fn names_in_one_value_are_split_by_shape() {
        for (given, names) in [
            ("Griff RR, John MW, Card MA", &["Griff, RR", "John, MW", "Card, MA"][..]),
            ("Breck A, Grob DE", &["Breck, A", "Grob, DE"]),
            ("Vollen F.X. and Vonto P. and Hell D.", &["Vollen, F.X.", "Vonto, P.", "Hell, D."]),
            ("Roe, Ann and Doe, Bob C.", &["Roe, Ann", "Doe, Bob C."]),
            ("Roe, Ann & Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
            ("Van Houten, Mary Beth and John Doe", &["Van Houten, Mary Beth", "John Doe"]),
            ("De la Cruz, Mary Beth, & John Doe", &["De la Cruz, Mary Beth", "John Doe"]),
            ("Van Houten, Mary B. Beth", &["Van Houten, Mary B. Beth"]),
            (
                "García Pérez, Ana María and Roe, Ann and John Doe",
                &["García Pérez, Ana María", "Roe, Ann", "John Doe"],
            ),
            (
                "García Pérez, Ana María and Roe Doe, Bob J. Kay and John Doe",
                &["García Pérez, Ana María", "Roe Doe, Bob J. Kay", "John Doe"],
            ),
            ("Roe, Ann and Doe, Bob and Test Study Group", &["Roe, Ann", "Doe, Bob", "Test Study Group"]),
            ("Ann Roe, Van Johnson and Kay Farm", &["Ann Roe", "Van Johnson", "Kay Farm"]),
            (
                "Kate R. Lyberg, Emily S. Bond, Kay J. Farm",
                &["Kate R. Lyberg", "Emily S. Bond", "Kay J. Farm"],
            ),
            ("Ann Roe, Bob C. Doe", &["Ann Roe", "Bob C. Doe"]),
            ("Liu, R., Adler, D.G.", &["Liu, R.", "Adler, D.G."]),
            ("Smith, Jones, Brown", &["Smith", "Jones", "Brown"]),
            ("Smith, Jones and Brown", &["Smith", "Jones", "Brown"]),
            ("Carha, R. and NA", &["Carha, R."]),
            ("Roe A, Doe B, et al.", &["Roe, A", "Doe, B"]),
            ("Roe, A., et al.", &["Roe, A."]),
            ("Roe A et al", &["Roe, A"]),
            ("Ann Roe, Bob Doe, and Kay Farm", &["Ann Roe", "Bob Doe", "Kay Farm"]),
            ("García, M., López, J. y Pérez, A.", &["García, M.", "López, J.", "Pérez, A."]),
            ("Dupont, J. et Durand, P.", &["Dupont, J.", "Durand, P."]),
            ("Schmidt H. und Meier K.", &["Schmidt, H.", "Meier, K."]),
            ("Ortega y Gasset, José", &["Ortega y Gasset, José"]),
            ("Ramón y Cajal S", &["Ramón y Cajal, S"]),
            ("王小明，李四", &["王小明", "李四"]),
            ("张三、李四", &["张三", "李四"]),
            ("王小明, 李四, 张三", &["王小明", "李四", "张三"]),
            ("山田 太郎, 鈴木 花子", &["山田 太郎", "鈴木 花子"]),
            ("山田 太郎 / 鈴木 花子", &["山田 太郎", "鈴木 花子"]),
            ("山田太郎(大学),鈴木花子", &["山田太郎", "鈴木花子"]),
            ("김철수, 이영희", &["김철수", "이영희"]),
            ("Roe A B, Doe C D", &["Roe, A B", "Doe, C D"]),
            ("Roe J. Doe A. B.", &["Roe, J.", "Doe, A. B."]),
            ("Roe J Jr, Doe A", &["Roe, J, Jr", "Doe, A"]),
            ("Roe J.R., Jr., Doe A.", &["Roe, J.R., Jr.", "Doe, A."]),
            ("Roe, A., Jr., Doe, B.", &["Roe, A., Jr.", "Doe, B."]),
            ("Roe, A., Doe, B. C., III, Poe, D.", &["Roe, A.", "Doe, B. C., III", "Poe, D."]),
            ("Roe, Ann B., Doe, Carl, Jr., Poe, Dan", &["Roe, Ann B.", "Doe, Carl, Jr.", "Poe, Dan"]),
            ("Roe, Jr., Doe, A., Poe", &["Roe, Jr., Doe, A., Poe"]),
            ("Roe, A., Jr., Sr., Doe, B.", &["Roe, A., Jr., Sr., Doe, B."]),
            ("Roe, Ann B., Doe, Carl D.", &["Roe, Ann B.", "Doe, Carl D."]),
            ("J.A. Roe, A.-M. Doe and K. Farm", &["Roe, J.A.", "Doe, A.-M.", "Farm, K."]),
            ("Roe, John, PhD", &["Roe, John"]),
            ("A.B., Roe, Ann B.; C., Doe, Carl", &["Roe, Ann B.", "Doe, Carl"]),
            ("on behalf of the Test Study Group", &["Test Study Group"]),
            ("Roe J on behalf of the Test Study Group", &["Roe, J", "Test Study Group"]),
            ("Roe & Doe LLC", &["Roe & Doe LLC"]),
            ("Grupo de Tests de la SEMI", &["Grupo de Tests de la SEMI"]),
            ("山田, 太郎", &["山田, 太郎"]),
            ("Null, Jane", &["Null, Jane"]),
            ("None, Guy", &["None, Guy"]),
            ("Team X", &["Team X"]),
            ("García Márquez, Gabriel José", &["García Márquez, Gabriel José"]),
            ("Smith, John, Jr.", &["Smith, John, Jr."]),
            ("Ministry of Health, Labour and Welfare", &["Ministry of Health, Labour and Welfare"]),
            ("National Heart and Lung Institute", &["National Heart and Lung Institute"]),
            ("Johnson and Johnson", &["Johnson and Johnson"]),
        ] {
            assert_eq!(of(given), names, "{given}");
        }
        assert_eq!(without_address("Roe, Ann (ann.roe@example.org)".into()).as_deref(), Some("Roe, Ann"));
        assert_eq!(without_address("ann.roe@example.org".into()), None);
        assert_eq!(without_address("Roe, E-mail: roe@example.org".into()).as_deref(), Some("Roe"));
        assert_eq!(without_address("-".into()), None);
        assert_eq!(without_address("And Others".into()), None);
    }

    #[test]
    fn group_names_are_not_split() {
        let group = "Department of Health and Human Services";
        assert_eq!(of(group), [group]);
        assert_eq!(of("Smith, John , "), ["Smith, John"]);
    }
}
