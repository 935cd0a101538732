//! The contract of [`ReportProgress`] and [`ReadProgress`].

use imports::{Progress, ReadProgress, ReportProgress};
use messages::Host;

use crate::search;
use contracts::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// Reports.
    pub report: &'a dyn ReportProgress,
    /// Reads.
    pub read: &'a dyn ReadProgress,
    /// Ids.
    pub host: &'a dyn Host,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    later_report_replaces_the_earlier(ports).await
}

/// Each file has only its latest progress, in the order of the files and without those of other searches.
pub async fn later_report_replaces_the_earlier(ports: &Ports<'_>) -> CheckResult {
    let (search, other) = (sample::partition(ports.host), sample::partition(ports.host));
    let (one, two) = (search::file(ports.host), search::file(ports.host));
    assert_eq!(ports.read.progress(search).await?, []);
    let progress = |records| Progress { records, bytes: records * 100 };
    for (search, file, records) in
        [(search, two, 5), (search, one, 1), (other, search::file(ports.host), 9), (search, one, 2)]
    {
        ports.report.report(search, file, progress(records)).await?;
    }
    assert_eq!(ports.read.progress(search).await?, [(one, progress(2)), (two, progress(5))]);
    Ok(())
}
