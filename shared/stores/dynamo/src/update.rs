//! One conditional write of an item, based on the item that was read.

use messages::StoreError;

use crate::Dynamo;
use crate::item::{self, Item, text};
use crate::names::attributes::STAMP;
use crate::store::PutOutcome;

/// The decision about a stored item.
pub(crate) enum Change<T> {
    /// Replaces the item.
    Write(Item, T),
    /// Writes nothing.
    Keep(T),
}

/// The caller's knowledge of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The item has to be read.
    Nothing,
    /// The item is probably absent, so the first attempt needs no read.
    Absent,
}

impl Dynamo {
    /// Changes an item as `decide` decides from the stored one. If another writer comes first, the refusal contains the
    /// item, and the decision is repeated with it. A refusal by the own stamp means that a lost response is repeated.
    pub(crate) async fn change_item<T: Send>(
        &self,
        key: &str,
        known: Knowledge,
        doing: &str,
        decide: impl Fn(Option<&Item>) -> Result<Change<T>, StoreError> + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut stored = match known {
            Knowledge::Absent => None,
            Knowledge::Nothing => self.get(key, doing).await?,
        };
        let (mut round, mut refusals) = (0, 0);
        loop {
            let (mut next, outcome) = match decide(stored.as_ref())? {
                Change::Keep(outcome) => return Ok(outcome),
                Change::Write(next, outcome) => (next, outcome),
            };
            let stamp = self.stamp();
            item::set(&mut next, STAMP, text(&stamp));
            item::check(&next, doing)?;
            stored = match self.put(next, stored.as_ref().map(item::stamp), doing).await? {
                PutOutcome::Done => return Ok(outcome),
                PutOutcome::Refused(Some(found)) if item::stamp(&found) == stamp => return Ok(outcome),
                PutOutcome::Refused(found) => {
                    // The refusal returned the latest item, so the next attempt needs no delay unless other writers
                    // keep coming first.
                    refusals += 1;
                    if refusals > 2 {
                        self.wait(&mut round, doing).await?;
                    }
                    found
                }
                PutOutcome::InTransaction => {
                    self.wait(&mut round, doing).await?;
                    self.get(key, doing).await?
                }
            };
        }
    }
}
