//! Collects the name of a person from separate elements.

use super::{field::Field, names, tidy};

/// The parts of the current name: family, given, initials, suffix.
#[derive(Debug, Default)]
pub(super) struct Person([String; 4]);

impl Person {
    /// Adds a part of the name.
    pub(super) fn add(&mut self, field: Field, text: &str) {
        let at = match field {
            Field::FamilyName => 0,
            Field::GivenName => 1,
            Field::Initials => 2,
            _ => 3,
        };
        self.0[at] = tidy::line(text).unwrap_or_default();
    }

    /// Adds a given name after those before it.
    pub(super) fn add_given(&mut self, text: &str) {
        let name = tidy::line(text).unwrap_or_default();
        let given = &mut self.0[1];
        if !given.is_empty() && !name.is_empty() {
            given.push(' ');
        }
        given.push_str(&name);
    }

    /// Returns the name as `Family, Given, Suffix` once all parts are read, or `None` without any part.
    pub(super) fn finish(&mut self) -> Option<String> {
        let [family, given, initials, suffix] = std::mem::take(&mut self.0);
        let given = if given.is_empty() { initials } else { given };
        let given = if suffix.is_empty() { given } else { format!("{given}, {suffix}") };
        names::joined(&family, &given)
    }
}
