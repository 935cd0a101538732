// A tally as a row, and each event as a workflow with one step. DBOS recognizes duplicates
// of an event by the id of the workflow. A step may run again after a crash, so its statement is idempotent.
import { createServer } from "node:http";
import { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";

const [url, port] = process.argv.slice(2);
const CONNECTIONS = 40;
const WRITE = `INSERT INTO tally VALUES ($1, ARRAY[$2::int]) ON CONFLICT (key) DO UPDATE
  SET events = tally.events || $2::int WHERE NOT tally.events @> ARRAY[$2::int]`;

const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
await pool.query("CREATE TABLE tally (key text PRIMARY KEY, events int[] NOT NULL)");

const write = async (key, event) => void (await pool.query(WRITE, [key, event]));
const counted = DBOS.registerWorkflow(
  (key, event) => DBOS.runStep(() => write(key, event), { name: "write" }),
  { name: "counted" },
);

const take = async (key, { event }) => {
  const handle = await DBOS.startWorkflow(counted, { workflowID: `${key}-${event}` })(key, event);
  await handle.getResult();
  return {};
};

const look = async (key) => {
  const { rows } = await pool.query("SELECT events FROM tally WHERE key = $1", [key]);
  return { events: rows[0]?.events ?? [] };
};

const answer = async (request) => {
  const [, , key, what] = request.url.split("/");
  let body = "";
  for await (const part of request) body += part;
  return what === "event" ? take(key, JSON.parse(body)) : look(key);
};

DBOS.setConfig({ name: "tally", systemDatabaseUrl: url, systemDatabasePoolSize: CONNECTIONS, logLevel: "warn" });
await DBOS.launch();
createServer(async (request, response) => {
  try {
    const text = JSON.stringify(await answer(request));
    response.writeHead(200, { "content-type": "application/json" }).end(text);
  } catch (error) {
    response.writeHead(503).end(String(error));
  }
}).listen(Number(port), "127.0.0.1");
