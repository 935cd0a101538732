//! Principals of requests and the projects that they can access.

use std::collections::{BTreeMap, HashMap};

use imports::ProjectId;
use operate::operator::{ALL, elements, name};
pub use operate::operator::{Operator, identity};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The role of a person in a review. Each role includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads and exports.
    Reader,
    /// Imports files, decides about duplicates and sets sources.
    Reviewer,
    /// Renames, archives and deletes the review, and changes its members.
    Owner,
}

/// The projects that a caller can access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectAccess {
    /// Every project as an owner: the caller is an operator, or was authorized by the host.
    All,
    /// The caller may access only these projects, each in a role.
    Only(BTreeMap<ProjectId, Role>),
}

impl ProjectAccess {
    /// Returns access to no project.
    pub const fn none() -> Self {
        Self::Only(BTreeMap::new())
    }

    /// Returns access to one project as an owner.
    pub fn to(project: ProjectId) -> Self {
        Self::Only(BTreeMap::from([(project, Role::Owner)]))
    }

    /// Returns the access of a caller from the claims of a token that the host has verified. It makes the caller an owner
    /// of each project that the token lists.
    ///
    /// `claim` names the claim that lists the projects: ids, or `*` for all, separated by spaces or commas, with or
    /// without the brackets that API Gateway puts around the elements of a list
    /// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html>). Other elements
    /// are ignored.
    ///
    /// If no claim is configured and there is no token, the host authorizes callers itself, and they can access every
    /// project. If only one of the two exists, the configuration is wrong, and the caller can access nothing.
    pub fn of(claim: Option<&str>, claims: Option<&HashMap<String, String>>) -> Self {
        match (claim, claims) {
            (None, None) => Self::All,
            (Some(claim), Some(claims)) => Self::listed(claims.get(claim).map_or("", String::as_str)),
            (Some(_), None) | (None, Some(_)) => Self::none(),
        }
    }

    fn listed(projects: &str) -> Self {
        if elements(projects).any(|project| project == ALL) {
            return Self::All;
        }
        let ids = elements(projects).filter_map(|id| Uuid::parse_str(id).ok());
        Self::Only(ids.map(|id| (ProjectId::from_uuid(id), Role::Owner)).collect())
    }

    /// Returns the role of the caller in a project.
    pub fn role(&self, project: ProjectId) -> Option<Role> {
        match self {
            Self::All => Some(Role::Owner),
            Self::Only(projects) => projects.get(&project).copied(),
        }
    }

    /// Returns `true` if the caller can read a project and its searches.
    pub fn can_access(&self, project: ProjectId) -> bool {
        self.role(project).is_some()
    }

    /// Restricts the access to one project.
    #[must_use]
    pub fn within(&self, project: ProjectId) -> Self {
        Self::Only(self.role(project).map(|role| (project, role)).into_iter().collect())
    }

    /// Restricts the access to the projects in which the caller has at least this role.
    #[must_use]
    pub fn at_least(self, role: Role) -> Self {
        match self {
            Self::All => Self::All,
            Self::Only(mut projects) => {
                projects.retain(|_, own| *own >= role);
                Self::Only(projects)
            }
        }
    }

    /// Adds the projects that the caller is a member of.
    #[must_use]
    pub fn with(self, memberships: BTreeMap<ProjectId, Role>) -> Self {
        match self {
            Self::All => Self::All,
            Self::Only(mut projects) => {
                for (project, role) in memberships {
                    let own = projects.entry(project).or_insert(role);
                    *own = role.max(*own);
                }
                Self::Only(projects)
            }
        }
    }
}

/// The principal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The projects that the caller can access, in addition to those that they are a member of.
    pub caller: ProjectAccess,
    /// The operator, if the caller is one.
    pub operator: Option<Operator>,
    /// The identity of the caller, which the host has verified: the `sub` of a token or the ARN of a signer. `None` if
    /// callers do not sign in.
    pub identity: Option<String>,
}

impl Principal {
    /// Returns the name of the caller, for records of their actions.
    pub fn name(&self) -> String {
        name(self.identity.as_deref())
    }

    /// Replaces the identity.
    #[must_use]
    pub fn identified(self, identity: &str) -> Self {
        let operator = self.operator.map(|_| Operator { name: identity.to_owned() });
        Self { operator, identity: Some(identity.to_owned()), ..self }
    }
}

impl From<ProjectAccess> for Principal {
    /// A caller that the host has authorized for every project is also an operator.
    fn from(caller: ProjectAccess) -> Self {
        let operator = (caller == ProjectAccess::All).then(Operator::unnamed);
        Self { caller, operator, identity: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naming_a_principal_grants_nothing() {
        let named = Principal::from(ProjectAccess::All).identified("arn:ann");
        assert_eq!(
            (named.name().as_str(), named.operator),
            ("arn:ann", Some(Operator { name: "arn:ann".into() }))
        );
        let unprivileged = Principal { caller: ProjectAccess::All, operator: None, identity: None };
        assert_eq!(unprivileged.identified("arn:ann").operator, None);
    }

    const ONE: &str = "8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77";
    const OTHER: &str = "019b76da-a800-700a-8000-000000000001";

    fn project(id: &str) -> ProjectId {
        ProjectId::from_uuid(Uuid::parse_str(id).unwrap())
    }

    fn with(claim: &str, value: &str) -> ProjectAccess {
        ProjectAccess::of(Some("projects"), Some(&HashMap::from([(claim.to_owned(), value.to_owned())])))
    }

    #[test]
    fn claim_lists_projects_in_any_notation() {
        for text in [
            format!("{ONE} {OTHER}"),
            format!("[{ONE} {OTHER}]"),
            format!("{ONE},{OTHER}"),
            format!(r#"["{ONE}", "{OTHER}"]"#),
        ] {
            assert_eq!(
                with("projects", &text),
                ProjectAccess::Only([(project(ONE), Role::Owner), (project(OTHER), Role::Owner)].into()),
                "{text}"
            );
        }
        for text in ["*", "[*]", "[viewer *]"] {
            assert_eq!(with("projects", text), ProjectAccess::All, "{text}");
        }
    }

    #[test]
    fn invalid_project_ids_grant_nothing() {
        for text in ["", "[]", "**", "*.*", "all", "8f0c6a52"] {
            assert_eq!(with("projects", text), ProjectAccess::none(), "{text}");
        }
        assert_eq!(with("groups", "*"), ProjectAccess::none(), "another claim");
    }

    #[test]
    fn claim_or_token_alone_grants_nothing() {
        let token = HashMap::from([("projects".to_owned(), "*".to_owned())]);
        assert_eq!(ProjectAccess::of(None, Some(&token)), ProjectAccess::none());
        assert_eq!(ProjectAccess::of(Some("projects"), None), ProjectAccess::none());
        assert_eq!(ProjectAccess::of(None, None), ProjectAccess::All);
    }

    #[test]
    fn access_within_one_project_excludes_others() {
        for caller in [ProjectAccess::All, with("projects", &format!("{ONE} {OTHER}"))] {
            let caller = caller.within(project(ONE));
            assert!(caller.can_access(project(ONE)) && !caller.can_access(project(OTHER)));
        }
        assert!(!with("projects", OTHER).within(project(ONE)).can_access(project(ONE)));
    }

    #[test]
    fn membership_never_lowers_token_access() {
        let caller = with("projects", ONE)
            .with(BTreeMap::from([(project(ONE), Role::Reader), (project(OTHER), Role::Reviewer)]));
        assert_eq!(caller.role(project(ONE)), Some(Role::Owner));
        assert_eq!(caller.role(project(OTHER)), Some(Role::Reviewer));
        assert_eq!(caller.within(project(OTHER)).role(project(OTHER)), Some(Role::Reviewer));
        assert_eq!(caller.clone().at_least(Role::Reviewer), caller);
        assert_eq!(caller.at_least(Role::Owner), ProjectAccess::to(project(ONE)));
        assert_eq!(ProjectAccess::All.with(BTreeMap::new()).at_least(Role::Owner), ProjectAccess::All);
    }
}
