//! The members of reviews, for deployments where people sign in.
//!
//! A member has access that the token does not list. The members of a review form one record. The memberships of a
//! person form another record, because a request needs only these. Both change in one session, with an entry in the
//! history of the review.

use std::collections::BTreeMap;

use imports::{ProjectId, SearchId};
use jiff::Timestamp;
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, Record};
use saga::engine::OpenSession;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::activity::{self, Action, Activity};
use crate::tries::MAX_TRIES;
use crate::{Error, ProjectAccess, Role, SearchService, content};

/// The maximum number of members of a review. Deleting the review changes the memberships of all of them in one session.
const MAX_MEMBERS: usize = 50;
/// The maximum number of reviews that a person can be a member of.
pub(crate) const MAX_MEMBERSHIPS: usize = 200;
/// The maximum length of a member's name, in characters. The `sub` of a token has up to 255
/// (<https://openid.net/specs/openid-connect-core-1_0.html#IDToken>).
const MAX_MEMBER_CHARS: usize = 255;
/// The kind of the records that list the members of a review.
const MEMBERS: &str = "members";
/// The kind of the records that list the reviews of a person.
const MEMBERSHIPS: &str = "memberships";

/// A member of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The identity of the person: the `sub` of their token.
    pub name: String,
    /// The role of the member.
    pub role: Role,
    /// The time at which the user became a member.
    pub added_at: Timestamp,
    /// The user who added them.
    pub added_by: String,
}

/// Reasons to refuse a change of the members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberRefusal {
    /// The name does not identify a person.
    #[error("the name of a member has 1 to {MAX_MEMBER_CHARS} characters and no control characters")]
    Name,
    /// The review has the maximum number of members.
    #[error("the review has {MAX_MEMBERS} members, which is the maximum; remove one first")]
    TooManyMembers,
    /// The person is a member of the maximum number of reviews.
    #[error("the person is a member of {MAX_MEMBERSHIPS} reviews, which is the maximum")]
    TooManyReviews,
    /// The request would change the role of the last owner of a review.
    #[error("this is the only owner of the review; make another member an owner first, or delete the review")]
    LastOwner,
}

type Memberships = BTreeMap<ProjectId, Role>;

/// A change of the members of a review.
struct Edit {
    member: Member,
    is_change: bool,
}

fn members_key(project: ProjectId) -> Key {
    Key::new(MEMBERS, project.to_string())
}

fn memberships_key(name: &str) -> Key {
    Key::new(MEMBERSHIPS, name)
}

fn members(project: ProjectId, record: Option<Record>) -> Result<Vec<Member>, StoreError> {
    content::or_default(record, || format!("reading the members of review {project}"))
}

fn memberships(record: Option<Record>) -> Result<Memberships, StoreError> {
    content::or_default(record, || "reading the reviews of a person".to_owned())
}

/// Stores a user's role in a review, in the record of this user's memberships, with the commit of the session.
async fn write_membership(
    session: &mut OpenSession<'_>,
    name: &str,
    project: ProjectId,
    role: Option<Role>,
) -> Result<Result<(), MemberRefusal>, StoreError> {
    let key = memberships_key(name);
    let mut own = memberships(session.read(key.clone()).await?)?;
    match role {
        Some(role) => own.insert(project, role),
        None => own.remove(&project),
    };
    if own.len() > MAX_MEMBERSHIPS {
        return Ok(Err(MemberRefusal::TooManyReviews));
    }
    session.write(key, content::of(&own, "serializing the reviews of a person")?);
    Ok(Ok(()))
}

fn write_members(
    session: &mut OpenSession<'_>,
    project: ProjectId,
    members: &[Member],
) -> Result<(), StoreError> {
    session.write(members_key(project), content::of(&members, "serializing the members of a review")?);
    Ok(())
}

/// Makes a person the only member of a new review and its owner, with the commit of the session.
pub(crate) async fn begin(
    session: &mut OpenSession<'_>,
    project: ProjectId,
    owner: &str,
    now: Timestamp,
) -> Result<Result<(), MemberRefusal>, StoreError> {
    let member =
        Member { name: owner.to_owned(), role: Role::Owner, added_at: now, added_by: owner.to_owned() };
    write_members(session, project, &[member])?;
    write_membership(session, owner, project, Some(Role::Owner)).await
}

/// Removes all members of a review, with the commit of the session.
pub(crate) async fn clear(session: &mut OpenSession<'_>, project: ProjectId) -> Result<(), Error> {
    for member in members(project, session.read(members_key(project)).await?)? {
        // Fewer memberships are never too many.
        let _ = write_membership(session, &member.name, project, None).await?;
    }
    session.write(members_key(project), json!([]));
    Ok(())
}

/// The person who changes the members of a review.
#[derive(Debug, Clone, Copy)]
pub struct MemberEditor<'a> {
    /// The name.
    pub name: &'a str,
    /// `true` if a token makes the person an owner, even without a membership.
    pub owns_by_token: bool,
}

/// Sets the role of a person, or removes the person.
fn edited(
    members: &mut Vec<Member>,
    name: &str,
    role: Option<Role>,
    by: MemberEditor<'_>,
    now: Timestamp,
) -> Result<Option<Edit>, MemberRefusal> {
    let place = members.iter().position(|member| member.name == name);
    let owners = members.iter().filter(|member| member.role == Role::Owner).count();
    let gives_up = place.is_some_and(|place| members[place].role == Role::Owner) && role != Some(Role::Owner);
    // Two owners may remove each other at the same time, so a member may not be an owner any more.
    if gives_up && owners == 1 && (name == by.name || !by.owns_by_token) {
        return Err(MemberRefusal::LastOwner);
    }
    let (member, is_change) = match (place, role) {
        (None, None) => return Ok(None),
        (Some(place), None) => (members.remove(place), true),
        (Some(place), Some(role)) => {
            let is_change = members[place].role != role;
            members[place].role = role;
            (members[place].clone(), is_change)
        }
        (None, Some(_)) if members.len() >= MAX_MEMBERS => return Err(MemberRefusal::TooManyMembers),
        (None, Some(role)) => {
            let member = Member { name: name.to_owned(), role, added_at: now, added_by: by.name.to_owned() };
            members.push(member.clone());
            (member, true)
        }
    };
    Ok(Some(Edit { member, is_change }))
}

impl SearchService {
    /// Returns the members of a review, sorted by name.
    pub async fn members(&self, project: ProjectId) -> Result<Vec<Member>, StoreError> {
        let record = self.entry.sessions.records.record(&members_key(project)).await?;
        let mut members = members(project, record)?;
        members.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(members)
    }

    /// Returns the access of a caller together with the reviews that they are a member of.
    pub async fn access_of(
        &self,
        caller: ProjectAccess,
        identity: Option<&str>,
    ) -> Result<ProjectAccess, StoreError> {
        let Some(identity) = identity.filter(|_| caller != ProjectAccess::All) else { return Ok(caller) };
        let record = self.entry.sessions.records.record(&memberships_key(identity)).await?;
        Ok(caller.with(memberships(record)?))
    }

    /// Gives a person a role in a review, and makes them a member. The call is idempotent.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the role may or may not be changed.
    pub async fn set_member(
        &self,
        project: ProjectId,
        name: &str,
        role: Role,
        by: MemberEditor<'_>,
    ) -> Result<Result<Member, MemberRefusal>, Error> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_MEMBER_CHARS || name.contains(char::is_control) {
            return Ok(Err(MemberRefusal::Name));
        }
        let edited = self.edit_member(project, name, Some(role), by).await?;
        Ok(edited.and_then(|member| member.ok_or(MemberRefusal::Name)))
    }

    /// Removes a person from a review. Returns `None` if the person is not a member of the review.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the person may or may not be removed.
    pub async fn remove_member(
        &self,
        project: ProjectId,
        name: &str,
        by: MemberEditor<'_>,
    ) -> Result<Result<Option<Member>, MemberRefusal>, Error> {
        self.edit_member(project, name.trim(), None, by).await
    }

    async fn edit_member(
        &self,
        project: ProjectId,
        name: &str,
        role: Option<Role>,
        by: MemberEditor<'_>,
    ) -> Result<Result<Option<Member>, MemberRefusal>, Error> {
        for _ in 0..MAX_TRIES {
            let now = self.host().now();
            let mut session = self.entry.session(SearchId::from_uuid(project.as_uuid()));
            let mut members = members(project, session.read(members_key(project)).await?)?;
            let member = match edited(&mut members, name, role, by, now) {
                Ok(Some(Edit { member, is_change: true })) => member,
                Ok(unchanged) => return Ok(Ok(unchanged.map(|edit| edit.member))),
                Err(refusal) => return Ok(Err(refusal)),
            };
            if let Err(refusal) = write_membership(&mut session, name, project, role).await? {
                return Ok(Err(refusal));
            }
            write_members(&mut session, project, &members)?;
            let action = Action::ChangedMember { member: name.to_owned(), role };
            let entry = Activity { at: now, by: by.name.to_owned(), action };
            activity::append(&mut session, project, entry).await?;
            if self.committed(session, "changed the members of a review").await? {
                return Ok(Ok(Some(member)));
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn of(roles: &[(&str, Role)]) -> Vec<Member> {
        let member = |(name, role): &(&str, Role)| Member {
            name: (*name).to_owned(),
            role: *role,
            added_at: NOW,
            added_by: "ann".to_owned(),
        };
        roles.iter().map(member).collect()
    }

    fn edit(members: &mut Vec<Member>, name: &str, role: Option<Role>) -> Result<bool, MemberRefusal> {
        edited(members, name, role, MemberEditor { name: "ann", owns_by_token: false }, NOW)
            .map(|edit| edit.is_some_and(|edit| edit.is_change))
    }

    #[test]
    fn repeated_change_of_a_member_changes_nothing() {
        let mut members = of(&[("ann", Role::Owner)]);
        assert_eq!(edit(&mut members, "bob", Some(Role::Reader)), Ok(true));
        assert_eq!(edit(&mut members, "bob", Some(Role::Reader)), Ok(false));
        assert_eq!(edit(&mut members, "bob", Some(Role::Reviewer)), Ok(true));
        assert_eq!(members, of(&[("ann", Role::Owner), ("bob", Role::Reviewer)]));
        assert_eq!(edit(&mut members, "bob", None), Ok(true));
        assert_eq!(edit(&mut members, "bob", None), Ok(false));
    }

    #[test]
    fn only_owner_keeps_the_role() {
        let mut members = of(&[("ann", Role::Owner), ("bob", Role::Reviewer)]);
        for (role, name, owns_by_token) in [
            (None, "ann", false),
            (Some(Role::Reviewer), "ann", true),
            // Ann has removed Bob in the meantime.
            (None, "bob", false),
        ] {
            let by = MemberEditor { name, owns_by_token };
            let refused = edited(&mut members, "ann", role, by, NOW).err();
            assert_eq!(refused, Some(MemberRefusal::LastOwner), "{by:?}");
        }
        let operator = MemberEditor { name: "operator", owns_by_token: true };
        assert!(
            edited(&mut members.clone(), "ann", None, operator, NOW).is_ok(),
            "the operator remains an owner"
        );
        assert_eq!(edit(&mut members, "bob", Some(Role::Owner)), Ok(true));
        assert_eq!(edit(&mut members, "ann", None), Ok(true));
    }

    #[test]
    fn number_of_members_is_limited() {
        let mut members = Vec::new();
        for number in 0..MAX_MEMBERS {
            assert_eq!(edit(&mut members, &number.to_string(), Some(Role::Reader)), Ok(true));
        }
        assert_eq!(edit(&mut members, "bob", Some(Role::Reader)), Err(MemberRefusal::TooManyMembers));
        assert_eq!(edit(&mut members, "0", Some(Role::Owner)), Ok(true));
    }
}
