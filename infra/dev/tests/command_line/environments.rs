//! The files of the folder `config`.

use dev::template::Limits;
use dev::template::environments::{ConfigError, Values, read};

#[test]
fn environment_has_parameters_and_limits() {
    let text = "[parameters]\nDays = 3\nProtect = true\nOrigins = ['https://a', 'https://b?x=1&y']\nUri = ''\n\
                [limits]\nmongodb_connections = 500\n";
    let found = read(text).unwrap();
    let expected =
        [("Days", "3"), ("Origins", "https://a,https://b?x=1&y"), ("Protect", "true"), ("Uri", "")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found.values, Values::from(expected));
    assert_eq!(found.limits, Limits { mongodb_connections: 500, ..Limits::default() });
}

#[test]
fn other_tables_and_values_are_rejected() {
    assert!(matches!(read("[parameter]\nA = 1\n"), Err(ConfigError::Toml(_))));
    assert!(matches!(read("[limits]\nconnections = 1\n"), Err(ConfigError::Toml(_))));
    assert!(matches!(read("[parameters.A]\nB = 1\n"), Err(ConfigError::Parameter(name)) if name == "A"));
}
