"""Parameters of earlier versions of the template that no longer exist.

CloudFormation would drop their values without notice. A value that differs from the earlier default would
then change what the functions do, or lose work: with another prefix of keys, uploads are not noticed.
"""

from collections.abc import Collection, Mapping

from scripts.errors import Failure

# The default of an earlier version, and the replacement of the parameter.
RETIRED = {
    "MongoPoolSize": ("10", "the variable SEARCH_IMPORT_MONGODB_POOL_SIZE of Globals"),
    "ApiAuthorization": ("IAM", "JwtIssuer"),
    "ReadScopes": ("searches:read", "ScopePrefix"),
    "WriteScopes": ("searches:write", "ScopePrefix"),
    "OperatorScope": ("searches:operate", "ScopePrefix"),
    "Page": ("false", "infra/templates/page.yaml"),
    "CollectorEndpoint": ("", "CollectorLayerArn"),
    "Tracing": ("PassThrough", "template.yaml"),
    "KeyPrefix": ("uploads/", "the variable SEARCH_IMPORT_KEY_PREFIX of Globals"),
    "MaxFileBytes": ("1073741824", "the variable SEARCH_IMPORT_MAX_FILE_BYTES of Globals"),
    "MaxRecordBytes": ("4194304", "the variable SEARCH_IMPORT_MAX_RECORD_BYTES of Globals"),
    "MaxRecords": ("2000000", "the variable SEARCH_IMPORT_MAX_RECORDS of Globals"),
    "MaxQuarantinedPercent": ("50", "the variable SEARCH_IMPORT_MAX_QUARANTINED_PERCENT of Globals"),
    "UploadValidSeconds": ("3600", "the variable SEARCH_IMPORT_UPLOAD_VALID_SECONDS of Globals"),
    "UploadTimeoutSeconds": ("3600", "the variable SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS of Globals"),
    "ParseTimeoutSeconds": ("86400", "the variable SEARCH_IMPORT_PARSE_TIMEOUT_SECONDS of Globals"),
    "MaxOpenSearches": ("1000", "the variable SEARCH_IMPORT_MAX_OPEN_SEARCHES of Globals"),
    "MaxOpenBytes": ("1099511627776", "the variable SEARCH_IMPORT_MAX_OPEN_BYTES of Globals"),
    "AdmitUntokened": ("false", "the variable SEARCH_IMPORT_ADMIT_UNTOKENED of Globals"),
    "Mode": ("ledger", "the variable SEARCH_IMPORT_MODE of Globals"),
    "SagaBatchSize": ("10", "template.yaml"),
    "SagaBatchWindowSeconds": ("0", "template.yaml"),
    "Concurrency": ("10", "the variable SEARCH_IMPORT_CONCURRENCY of Globals"),
    "SagaRetentionSeconds": ("604800", "the variable SEARCH_IMPORT_SAGA_RETENTION_SECONDS of Globals"),
    "MessageLifetimeSeconds": ("1209600", "the variable SEARCH_IMPORT_MESSAGE_LIFETIME_SECONDS of Globals"),
    "HistorySeconds": ("2592000", "the variable SEARCH_IMPORT_HISTORY_SECONDS of Globals"),
    "UploadsQueueRetentionSeconds": ("345600", "template.yaml"),
    "SagaQueueRetentionSeconds": ("345600", "template.yaml"),
    "ParseQueueRetentionSeconds": ("345600", "template.yaml"),
    "ParseDeadRetentionSeconds": ("864000", "template.yaml"),
    "ControlQueueRetentionSeconds": ("345600", "template.yaml"),
    "EventsQueueRetentionSeconds": ("864000", "template.yaml"),
    "DeadLetterRetentionSeconds": ("1209600", "template.yaml"),
    "RestoredLedgerTable": ("", "RestoredTables"),
    "RestoredProcessedTable": ("", "RestoredTables"),
    "OutboxGiveUpSeconds": ("86400", "the variable SEARCH_IMPORT_OUTBOX_GIVE_UP_SECONDS of Globals"),
    "OutboxMaxDelaySeconds": ("300", "the variable SEARCH_IMPORT_OUTBOX_MAX_DELAY_SECONDS of Globals"),
    "OutboxStuckSeconds": ("300", "the variable SEARCH_IMPORT_OUTBOX_STUCK_SECONDS of Globals"),
    "OutboxBatch": ("250", "the variable SEARCH_IMPORT_OUTBOX_BATCH of Globals"),
    "OutboxSendTimeoutSeconds": ("15", "the variable SEARCH_IMPORT_OUTBOX_SEND_TIMEOUT_SECONDS of Globals"),
    "OutboxRetentionSeconds": ("604800", "the variable SEARCH_IMPORT_OUTBOX_RETENTION_SECONDS of Globals"),
    "SessionMaxCommitSeconds": ("15", "the variable SEARCH_IMPORT_SESSION_MAX_COMMIT_SECONDS of Globals"),
    "SessionIncrementSeconds": ("2", "the variable SEARCH_IMPORT_SESSION_INCREMENT_SECONDS of Globals"),
}


# Values that earlier environments set, and the template now has in every environment.
NOW_CONSTANT = {"MongoPoolSize": "5"}


def check_retired(deployed: Mapping[str, str], dropped: Collection[str]) -> None:
    """Fails if a stack has a value that the new template would drop, unless it may."""
    lost = {
        name: value
        for name, value in deployed.items()
        if name in RETIRED and value not in (RETIRED[name][0], NOW_CONSTANT.get(name)) and name not in dropped
    }
    if not lost:
        return
    lines = [f"  {name}={value}: see {RETIRED[name][1]}" for name, value in sorted(lost.items())]
    options = " ".join(f"--drop {name}" for name in sorted(lost))
    raise Failure(
        "the stack has values of parameters that no longer exist:\n"
        + "\n".join(lines)
        + f"\ndocs/deploy.md describes the migration. To drop the values: {options}"
    )
