//! Publication dates, split into year, month and day.

use references::Reference;

/// The known parts of a date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DateParts {
    pub(crate) year: Option<i32>,
    pub(crate) month: Option<u8>,
    pub(crate) day: Option<u8>,
}

/// The names of months as in PubMed. BibTeX uses them in lower case.
pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl DateParts {
    /// The date of publication.
    pub(crate) fn from_reference(reference: &Reference) -> Self {
        let year = reference.year;
        let date = reference.date.as_deref().unwrap_or_default();
        let mut parts = date.split('-');
        if parts.next().and_then(|part| part.parse().ok()) != year || year.is_none() {
            return Self { year, ..Self::default() };
        }
        let month = number(parts.next(), 12);
        Self { year, month, day: number(parts.next(), 31).filter(|_| month.is_some()) }
    }

    pub(crate) fn month_name(self) -> Option<&'static str> {
        MONTHS.get(usize::from(self.month?).checked_sub(1)?).copied()
    }
}

fn number(part: Option<&str>, max: u8) -> Option<u8> {
    part?.parse().ok().filter(|number| (1..=max).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_contradicting_the_year_is_omitted() {
        let of = |year, date: &str| {
            let date = Some(date.to_owned());
            DateParts::from_reference(&Reference { year, date, ..Reference::default() })
        };
        let parts = |year, month, day| DateParts { year: Some(year), month, day };
        assert_eq!(of(Some(2018), "2018-05-17"), parts(2018, Some(5), Some(17)));
        assert_eq!(of(Some(2018), "2018-12"), parts(2018, Some(12), None));
        assert_eq!(of(Some(2018), "2018-13-01"), parts(2018, None, None));
        assert_eq!(of(Some(2018), "2019-01-01"), parts(2018, None, None));
        assert_eq!(of(None, "2019-01-01"), DateParts::default());
        assert_eq!(parts(2018, Some(12), None).month_name(), Some("Dec"));
    }
}
