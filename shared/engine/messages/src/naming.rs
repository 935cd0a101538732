//! Names that derive from the name of a system: databases, collections, environment variables and metric namespaces.

/// Returns the name in lower case with underscores, such as `fresh_orders` for `fresh-orders`.
pub fn snake(system: &str) -> String {
    let mapped = system.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    mapped.collect()
}

/// Returns the environment variable of a setting, such as `FRESH_ORDERS_MODE` for `MODE` of `fresh-orders`.
pub fn setting(system: &str, name: &str) -> String {
    format!("{}_{name}", snake(system).to_ascii_uppercase())
}

/// Returns the namespace of metrics, such as `FreshOrders` for `fresh-orders`.
pub fn namespace(system: &str) -> String {
    let capitalized = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_ascii_uppercase() + rest
    };
    snake(system).split('_').map(capitalized).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_derive_from_system() {
        assert_eq!(snake("fresh-orders"), "fresh_orders");
        assert_eq!(setting("fresh-orders", "LEDGER_TABLE"), "FRESH_ORDERS_LEDGER_TABLE");
        assert_eq!(namespace("fresh-orders"), "FreshOrders");
    }

    #[test]
    fn other_characters_become_underscores() {
        assert_eq!(snake("Fresh orders/2"), "fresh_orders_2");
        assert_eq!(snake("bücher"), "b_cher");
        assert_eq!(setting("orders", "MODE"), "ORDERS_MODE");
        assert_eq!(namespace("fresh--orders"), "FreshOrders");
    }
}
