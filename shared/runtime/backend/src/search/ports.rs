//! The ports of the search import, as the modules that open them share them.

use imports::Ports;
#[cfg(any(feature = "embedded", feature = "search-services"))]
use saga::Engine;

use crate::ConfiguredPorts;

/// The ports of the search import, with its settings.
pub type Backend = ConfiguredPorts<Ports>;

/// Returns the engine of the search import, which reads the views of its earlier versions.
#[cfg(any(feature = "embedded", feature = "search-services"))]
pub(super) fn with_earlier_views(engine: Engine) -> Engine {
    Engine { earlier_view: imports::job::earlier_view, ..engine }
}
