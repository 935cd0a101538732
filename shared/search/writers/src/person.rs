//! Names of people, split into family name, given name and suffix.

use references::work::spend;

use crate::clean::line;

/// One name from a study's list of authors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Person {
        family: String,
        given: String,
        suffix: Option<String>,
    },
    /// A group, or a name whose parts cannot be distinguished.
    Whole(String),
}

impl Name {
    /// Parses `Family, Given` or `Family, Given, Suffix`; anything else is kept whole.
    pub(crate) fn parse(name: &str) -> Self {
        spend(name.len());
        let name = line(name);
        let parts: Vec<&str> = name.split(", ").collect();
        let is_part = |part: &&str| !part.is_empty() && !part.contains(',');
        match parts.as_slice() {
            parts if !parts.iter().all(is_part) => Self::Whole(name.into_owned()),
            [family, given] => {
                Self::Person { family: (*family).to_owned(), given: (*given).to_owned(), suffix: None }
            }
            [family, given, suffix] => Self::Person {
                family: (*family).to_owned(),
                given: (*given).to_owned(),
                suffix: Some((*suffix).to_owned()),
            },
            _ => Self::Whole(name.into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_names_stay_whole() {
        let whole = |name: &str| Name::Whole(name.to_owned());
        for group in ["WHO", "Health, Education, and, Welfare", "Smith,John", "Berg, "] {
            assert_eq!(Name::parse(group), whole(line(group).as_ref()), "{group}");
        }
        let person = Name::Person { family: "Smith".into(), given: "J".into(), suffix: Some("Jr.".into()) };
        assert_eq!(Name::parse("Smith, J, Jr."), person);
    }
}
