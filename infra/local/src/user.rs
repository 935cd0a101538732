//! The user who runs the program.

/// Returns the name of the user, for the history and the audit log.
pub fn user_name() -> String {
    let value = |name| std::env::var(name).ok().filter(|name| !name.is_empty());
    ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(value).unwrap_or_else(|| "unknown".to_owned())
}
