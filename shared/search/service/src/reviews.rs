//! The list of reviews: their names, and whether they are archived.
//!
//! All entries form one record, so names stay unique under concurrent requests. A review without an entry exists as
//! well: its id is derived from its name ([`ProjectId::named`]), and imports refer to the id alone.

use imports::{Job, ProjectId, SearchId};
use jiff::Timestamp;
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, ReadRecords, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::content;
use crate::members::MAX_MEMBERSHIPS;
use crate::tries::MAX_TRIES;
use crate::{Deletion, Error, ProjectAccess, SearchService, activity, decisions, members};

/// The maximum number of listed reviews: about 1.5 MB of the 16 MB that a MongoDB document can have.
pub const MAX_REVIEWS: usize = 1_000;
/// The maximum number of imports that one request deletes together with their review.
const MAX_DELETED: usize = 100;
/// The kind of the single record that lists the reviews.
const REVIEWS: &str = "reviews";

/// A listed review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The id of the review.
    pub project_id: ProjectId,
    /// The name of the review, which no other review has, regardless of case.
    pub name: String,
    /// The time at which the review was listed.
    pub created_at: Timestamp,
    /// The user who listed it.
    pub created_by: String,
    /// The time at which the review was archived; `None` if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
}

/// A change of a review.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewChange {
    /// The new name.
    pub name: Option<String>,
    /// `true` if the review is archived.
    pub archived: Option<bool>,
}

/// Reasons to refuse a change of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewRefusal {
    /// The name cannot be used.
    #[error("the name {0}")]
    Name(String),
    /// Another review has this name.
    #[error("there is already a review with the name \"{0}\"")]
    Taken(String),
    /// The list is full.
    #[error("there are {MAX_REVIEWS} reviews, which is the maximum; delete one first")]
    TooMany,
    /// The creator is a member of the maximum number of reviews.
    #[error("you are a member of {MAX_MEMBERSHIPS} reviews, which is the maximum; leave or delete one first")]
    TooManyOwn,
    /// A review that is not listed was archived without a name.
    #[error("the review has no name yet; give it one first")]
    Unnamed,
}

/// A created review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedReview {
    /// The review.
    pub review: Review,
    /// `false` if the review was listed before.
    pub is_new: bool,
}

/// The outcome of a request to delete a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewDeletion {
    /// The review and its imports are deleted.
    Accepted,
    /// Some imports are deleted. The request has to be repeated for the others.
    More,
    /// This import has not ended, or an unfinished import repairs it.
    Running(SearchId),
}

/// The listed reviews.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Reviews(Vec<Review>);

/// Returns the form in which names are compared: without case, and with single spaces.
fn folded(name: &str) -> String {
    name.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Returns the name without spaces around it, and the id that is derived from it.
fn checked(name: &str) -> Result<(String, ProjectId), ReviewRefusal> {
    let name = name.trim();
    let derived = ProjectId::named(name).map_err(|error| ReviewRefusal::Name(error.to_string()))?;
    // An id is accepted wherever a name is.
    if Uuid::parse_str(name).is_ok() {
        return Err(ReviewRefusal::Name("is an id; give another name".to_owned()));
    }
    Ok((name.to_owned(), derived))
}

impl Reviews {
    fn of(&self, project: ProjectId) -> Option<&Review> {
        self.0.iter().find(|review| review.project_id == project)
    }

    fn named(&self, name: &str) -> Option<&Review> {
        let name = folded(name);
        self.0.iter().find(|review| folded(&review.name) == name)
    }

    /// Lists a review under a name that is free.
    fn add(
        &mut self,
        project_id: ProjectId,
        name: String,
        by: &str,
        now: Timestamp,
    ) -> Result<Review, ReviewRefusal> {
        if self.0.len() >= MAX_REVIEWS {
            return Err(ReviewRefusal::TooMany);
        }
        let review =
            Review { project_id, name, created_at: now, created_by: by.to_owned(), archived_at: None };
        self.0.push(review.clone());
        Ok(review)
    }

    /// Changes a review, and lists it if it is not listed. Returns it, and whether anything changed.
    fn change(
        &mut self,
        project: ProjectId,
        change: &ReviewChange,
        by: &str,
        now: Timestamp,
    ) -> Result<(Review, bool), ReviewRefusal> {
        let name = change.name.as_deref().map(checked).transpose()?.map(|(name, _)| name);
        if let Some(other) =
            name.as_deref().and_then(|name| self.named(name)).filter(|other| other.project_id != project)
        {
            return Err(ReviewRefusal::Taken(other.name.clone()));
        }
        let before = self.of(project).cloned();
        if before.is_none() {
            self.add(project, name.clone().ok_or(ReviewRefusal::Unnamed)?, by, now)?;
        }
        let Some(review) = self.0.iter_mut().find(|review| review.project_id == project) else {
            return Err(ReviewRefusal::Unnamed);
        };
        if let Some(name) = name {
            review.name = name;
        }
        match (change.archived, review.archived_at) {
            (Some(true), None) => review.archived_at = Some(now),
            (Some(false), Some(_)) => review.archived_at = None,
            _ => {}
        }
        let review = review.clone();
        let is_changed = before.as_ref() != Some(&review);
        Ok((review, is_changed))
    }
}

fn key() -> Key {
    Key::new(REVIEWS, "all")
}

fn read(record: Option<Record>) -> Result<Reviews, StoreError> {
    content::or_default(record, || "reading the list of reviews".to_owned())
}

/// Returns the listed review with a name, regardless of case.
pub async fn review_named(records: &dyn ReadRecords, name: &str) -> Result<Option<Review>, StoreError> {
    let record = records.record(&key()).await?;
    Ok(read(record)?.named(name).cloned())
}

impl SearchService {
    async fn all_reviews(&self) -> Result<Reviews, StoreError> {
        let record = self.entry.sessions.records.record(&key()).await?;
        read(record)
    }

    /// Returns the listed reviews that the caller can access, sorted by name.
    pub async fn reviews(&self, caller: &ProjectAccess) -> Result<Vec<Review>, StoreError> {
        let Reviews(mut reviews) = self.all_reviews().await?;
        reviews.retain(|review| caller.can_access(review.project_id));
        reviews.sort_by_cached_key(|review| folded(&review.name));
        Ok(reviews)
    }

    /// Returns a review if it is listed.
    pub async fn review(&self, project: ProjectId) -> Result<Option<Review>, StoreError> {
        Ok(self.all_reviews().await?.of(project).cloned())
    }

    /// Lists a review, or returns the one with this name. The call is idempotent.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the review may or may not be listed.
    pub async fn create_review(
        &self,
        name: &str,
        by: &str,
    ) -> Result<Result<CreatedReview, ReviewRefusal>, Error> {
        let (name, derived) = match checked(name) {
            Ok(checked) => checked,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let fresh = || ProjectId::from_uuid(self.host().fresh_id());
        self.edit_reviews(|reviews| {
            if let Some(review) = reviews.named(&name) {
                return Ok((CreatedReview { review: review.clone(), is_new: false }, false));
            }
            // A review that had this name earlier keeps the id that is derived from it.
            let project = if reviews.of(derived).is_none() { derived } else { fresh() };
            let review = reviews.add(project, name.clone(), by, self.host().now())?;
            Ok((CreatedReview { review, is_new: true }, true))
        })
        .await
    }

    /// Creates a review whose owner is a person without access to all reviews, or returns the one of this name if the
    /// person can access it. The call is idempotent.
    ///
    /// The id of the review is new. An id derived from the name may already belong to imports that other users
    /// announced.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the review may or may not be created.
    pub async fn create_own_review(
        &self,
        name: &str,
        caller: &ProjectAccess,
        owner: &str,
    ) -> Result<Result<CreatedReview, ReviewRefusal>, Error> {
        let name = match checked(name) {
            Ok((name, _)) => name,
            Err(refusal) => return Ok(Err(refusal)),
        };
        for _ in 0..MAX_TRIES {
            let now = self.host().now();
            let mut session = self.entry.session(SearchId::from_uuid(Uuid::nil()));
            let mut reviews = read(session.read(key()).await?)?;
            match reviews.named(&name) {
                Some(known) if caller.can_access(known.project_id) => {
                    return Ok(Ok(CreatedReview { review: known.clone(), is_new: false }));
                }
                Some(known) => return Ok(Err(ReviewRefusal::Taken(known.name.clone()))),
                None => {}
            }
            let project = ProjectId::from_uuid(self.host().fresh_id());
            let review = match reviews.add(project, name.clone(), owner, now) {
                Ok(review) => review,
                Err(refusal) => return Ok(Err(refusal)),
            };
            session.write(key(), written(&reviews)?);
            if members::begin(&mut session, project, owner, now).await?.is_err() {
                return Ok(Err(ReviewRefusal::TooManyOwn));
            }
            if self.committed(session, "created a review").await? {
                return Ok(Ok(CreatedReview { review, is_new: true }));
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Renames, archives or restores a review. A review that is not listed becomes listed under its new name.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the review may or may not be changed.
    pub async fn change_review(
        &self,
        project: ProjectId,
        change: &ReviewChange,
        by: &str,
    ) -> Result<Result<Review, ReviewRefusal>, Error> {
        self.edit_reviews(|reviews| reviews.change(project, change, by, self.host().now())).await
    }

    /// Deletes a review with all of its imports and decisions, up to 100 imports per call. The call is idempotent.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; some imports may be deleted.
    pub async fn delete_review(&self, project: ProjectId) -> Result<ReviewDeletion, Error> {
        // An import that is still running may be behind the first page.
        if let Some(open) = self.jobs.open(project, 1).await?.iter().find(|job| !job.state.has_ended()) {
            return Ok(ReviewDeletion::Running(open.search_id));
        }
        let page = self.jobs.of_project(project, None, MAX_DELETED).await?;
        let caller = ProjectAccess::to(project);
        for job in &page.items {
            match self.delete(&caller, job.search_id).await? {
                Deletion::Accepted | Deletion::Unknown => {}
                Deletion::Running => return Ok(ReviewDeletion::Running(job.search_id)),
                Deletion::Needed(by) => return Ok(ReviewDeletion::Running(by)),
            }
        }
        if page.next.is_some() {
            return Ok(ReviewDeletion::More);
        }
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(SearchId::from_uuid(project.as_uuid()));
            let mut reviews = read(session.read(key()).await?)?;
            reviews.0.retain(|review| review.project_id != project);
            session.write(key(), written(&reviews)?);
            session.write(decisions::key(project), json!([]));
            decisions::bulk::clear(&mut session, project).await?;
            activity::clear(&mut session, project).await?;
            members::clear(&mut session, project).await?;
            if self.committed(session, "deleted a review").await? {
                // A client may have announced an import since the list was read. The next call deletes it.
                let left = self.jobs.of_project(project, None, MAX_DELETED).await?.items;
                let is_deleted =
                    |job: &Job| page.items.iter().any(|deleted| deleted.search_id == job.search_id);
                let is_complete = left.iter().all(is_deleted);
                return Ok(if is_complete { ReviewDeletion::Accepted } else { ReviewDeletion::More });
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Changes the list. `edit` returns its result and whether it changed the list.
    async fn edit_reviews<T>(
        &self,
        edit: impl Fn(&mut Reviews) -> Result<(T, bool), ReviewRefusal>,
    ) -> Result<Result<T, ReviewRefusal>, Error> {
        for _ in 0..MAX_TRIES {
            // A session belongs to a partition, but none of the reviews' changes sends a message.
            let mut session = self.entry.session(SearchId::from_uuid(Uuid::nil()));
            let mut reviews = read(session.read(key()).await?)?;
            let result = match edit(&mut reviews) {
                Ok((result, true)) => result,
                Ok((result, false)) => return Ok(Ok(result)),
                Err(refusal) => return Ok(Err(refusal)),
            };
            session.write(key(), written(&reviews)?);
            if self.committed(session, "changed the list of reviews").await? {
                return Ok(Ok(result));
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }
}

fn written(reviews: &Reviews) -> Result<Value, StoreError> {
    content::of(reviews, "serializing the list of reviews")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn project(id: u128) -> ProjectId {
        ProjectId::from_uuid(Uuid::from_u128(id))
    }

    fn renamed(name: &str) -> ReviewChange {
        ReviewChange { name: Some(name.to_owned()), archived: None }
    }

    #[test]
    fn names_are_unique_ignoring_case_and_spaces() {
        let mut reviews = Reviews::default();
        reviews.add(project(1), "Statins in  Heart failure".to_owned(), "ann", NOW).unwrap();
        assert_eq!(reviews.named("statins IN heart failure").unwrap().project_id, project(1));
        assert!(reviews.named("statins").is_none());
        let taken = reviews.change(project(2), &renamed(" STATINS in heart failure "), "ann", NOW);
        assert_eq!(taken, Err(ReviewRefusal::Taken("Statins in  Heart failure".to_owned())));
        // A review may change the case of its own name.
        let (review, is_changed) =
            reviews.change(project(1), &renamed("Statins in heart failure"), "ann", NOW).unwrap();
        assert_eq!((review.name.as_str(), is_changed), ("Statins in heart failure", true));
    }

    #[test]
    fn unlisted_review_is_listed_by_its_first_name() {
        let mut reviews = Reviews::default();
        let archive = ReviewChange { archived: Some(true), ..ReviewChange::default() };
        assert_eq!(reviews.change(project(1), &archive, "ann", NOW), Err(ReviewRefusal::Unnamed));
        let (review, is_changed) = reviews.change(project(1), &renamed("Sleep"), "ann", NOW).unwrap();
        assert_eq!((review.created_by.as_str(), is_changed), ("ann", true));
        assert!(reviews.change(project(1), &archive, "bob", NOW).unwrap().0.archived_at.is_some());
        assert!(!reviews.change(project(1), &archive, "bob", NOW).unwrap().1, "it is archived already");
    }

    #[test]
    fn invalid_names_and_excess_reviews_are_refused() {
        let long = "ä".repeat(256);
        for name in ["", "  ", "a\nb", long.as_str(), "00000000-0000-0000-0000-000000000000"] {
            assert!(matches!(checked(name), Err(ReviewRefusal::Name(_))), "{name:?}");
        }
        let mut reviews = Reviews::default();
        for id in 0..MAX_REVIEWS as u128 {
            reviews.add(project(id), id.to_string(), "ann", NOW).unwrap();
        }
        assert_eq!(
            reviews.change(project(5_000), &renamed("one more"), "ann", NOW),
            Err(ReviewRefusal::TooMany)
        );
    }
}
