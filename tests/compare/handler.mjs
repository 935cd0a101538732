// A JavaScript version of run-saga for a batch without effects, for the cold start benchmark.
// The loop is that of a custom runtime; Lambda's own Node runtime does more.

const API = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TYPES = new Set(["SearchUploadStarted", "SearchUploadSaved", "UploadTimeout"]);

function isEvent(body) {
  try {
    const { specversion, type, correlationid, token, data } = JSON.parse(body);
    const kind = /^search-import\.(\w+)\.v1$/.exec(type);
    return (
      specversion === "1.0" &&
      TYPES.has(kind?.[1]) &&
      UUID.test(correlationid) &&
      token.split(":")[1] === correlationid.slice(-12) &&
      "file_id" in data
    );
  } catch {
    return false;
  }
}

function handle(event) {
  const failed = event.Records.filter((record) => !isEvent(record.body));
  return { batchItemFailures: failed.map((record) => ({ itemIdentifier: record.messageId })) };
}

for (;;) {
  const invocation = await fetch(`${API}/next`);
  const request = invocation.headers.get("lambda-runtime-aws-request-id");
  const answer = JSON.stringify(handle(await invocation.json()));
  await fetch(`${API}/${request}/response`, { method: "POST", body: answer });
}
