//! What is tried again in place: conflicts alone.

use contracts::SearchId;

use crate::options::Invariant;
use crate::world::{World, short};

impl World {
    /// A call of whoever acts failed for good as far as this batch is concerned.
    pub(crate) fn gave_up(&mut self, search: SearchId) {
        self.checks.given_up_by.extend(self.acting.map(|process| (process, search)));
    }

    /// Whoever acts has received another batch.
    pub(crate) fn begin_anew(&mut self) {
        let acting = self.acting;
        self.checks.given_up_by.retain(|(process, _)| Some(*process) != acting);
    }

    /// Nobody goes back to a search on which it gave up, before its message is delivered again.
    pub(crate) fn check_scope(&mut self, search: SearchId) {
        if self.acting.is_some_and(|process| self.checks.given_up_by.contains(&(process, search))) {
            let detail = || format!("search {} was tried again in place after a failure", short(&search));
            self.violate(Invariant::RetriesAreScoped, detail);
        }
    }
}
