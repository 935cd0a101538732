/** A server, a browser, and helpers for the tests of the page. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(HERE, '../..');
export const SAMPLES = join(ROOT, 'tests/samples');
export const PROJECT = '00000000-0000-0000-0000-000000000000';
export const SHOTS = process.env.SHOTS ?? join(HERE, 'shots');
/** Returns the path of a program that is built for tests. */
export const built = (program) => resolve(ROOT, process.env.CARGO_TARGET_DIR ?? 'target', 'debug', program);
export const PROGRAM = process.env.SEARCH_IMPORT ?? built('search-import');
/**
 * Maximum time for an expected change, in milliseconds. A test that passes never waits for it, so it is chosen for the
 * slowest machine with other tests beside it.
 */
export const TIMEOUT = 120_000;
/** The rules of WCAG 2.2 AA and the best practices of axe. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

export class Server {
  /**
   * Serves a data folder, by default a new one. `listen` is the address to bind, `reach` the address that clients use, and
   * `program` with `command` what serves.
   */
  static async start({ folder = mkdtempSync(join(tmpdir(), 'page-')), port = 0, listen = '127.0.0.1', reach = listen, program = PROGRAM, command = ['serve'] } = {}) {
    const server = new Server();
    server.folder = folder;
    Object.assign(server, { listen, reach, program, command });
    const all = [...command, '--data-dir', folder, '--listen', `${listen}:${port}`];
    server.child = spawn(program, all, { stdio: ['ignore', 'ignore', 'pipe'] });
    const lines = createInterface({ input: server.child.stderr });
    const output = [];
    server.url = await new Promise((done, fail) => {
      lines.on('line', (line) => {
        output.push(line);
        server.token = /Authorization: Bearer (\S+)/.exec(line)?.[1] ?? server.token;
        const found = /answering at (\S+)/.exec(line);
        if (found) done(found[1].replace(listen, reach));
      });
      server.child.on('exit', () => fail(new Error(`serve ended: ${output.join('\n')}`)));
    });
    server.port = Number(new URL(server.url).port);
    return server;
  }

  /** Kills the server, as a crash would. */
  kill() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return Promise.resolve();
    const ended = new Promise((done) => this.child.once('exit', done));
    this.child.kill('SIGKILL');
    return ended;
  }

  restart() {
    const { folder, port, listen, reach, program, command } = this;
    return Server.start({ folder, port, listen, reach, program, command });
  }

  async end() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  searches(project = PROJECT) {
    return `${this.url}/projects/${project}/searches`;
  }

  /** Imports files, each with a name and its bytes. Waits until the import has ended, unless `wait` is false. */
  async import(name, files, { project = PROJECT, wait = true } = {}) {
    const manifest = { name, files: files.map(({ name, bytes }) => ({ name, size_bytes: bytes.length })) };
    const announced = await json(await fetch(this.searches(project), post(manifest)));
    for (const [index, { upload }] of announced.files.entries()) {
      const form = new FormData();
      for (const [field, value] of Object.entries(upload.fields)) form.append(field, value);
      form.append('file', new Blob([files[index].bytes]));
      assert.equal((await fetch(upload.url, { method: 'POST', body: form })).status, 204);
    }
    if (wait) await this.ended(announced.search_id, project);
    return announced.search_id;
  }

  async ended(search, project = PROJECT) {
    return until('the import has ended', async () => {
      const found = await json(await fetch(`${this.searches(project)}/${search}`));
      return found.completed_at ? found : undefined;
    });
  }

  /** Creates an import whose files are never uploaded. */
  async announce(name, project = PROJECT) {
    const manifest = { name, files: [{ name: 'later.ris', size_bytes: 10 }] };
    return (await json(await fetch(this.searches(project), post(manifest)))).search_id;
  }
}

export const sample = (name) => ({ name: name.split('/').at(-1), bytes: readFileSync(join(SAMPLES, name)) });
export const text = (name, content) => ({ name, bytes: Buffer.from(content) });
/** Returns an archive of texts, by the names of their files. */
export function zip(name, files) {
  const program =
    'import io,json,sys,zipfile\nout=io.BytesIO()\nwith zipfile.ZipFile(out,"w") as at:\n' +
    ' for name,text in json.load(sys.stdin).items(): at.writestr(name,text)\nsys.stdout.buffer.write(out.getvalue())';
  const done = spawnSync('python3', ['-c', program], { input: JSON.stringify(files) });
  assert.equal(done.status, 0, String(done.stderr));
  return { name, bytes: done.stdout };
}
const post = (body) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

async function json(response) {
  assert.ok(response.ok, `${response.url}: ${response.status}`);
  return response.json();
}

/** Polls until `check` returns a truthy value, and returns it. */
export async function until(what, check, timeout = TIMEOUT) {
  for (const end = Date.now() + timeout; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    const found = await check();
    if (found) return found;
  }
  throw new Error(`not within ${timeout} ms: ${what}`);
}

/** Inserts rows into the database of a data folder whose server is stopped. */
export function sql(folder, statement, rows) {
  const program =
    'import json,sqlite3,sys\ndatabase,statement=sys.argv[1:3]\nrows=json.load(sys.stdin)\n' +
    'with sqlite3.connect(database) as at: at.executemany(statement,rows)';
  const done = spawnSync('python3', ['-c', program, join(folder, 'search-import.sqlite'), statement], {
    input: JSON.stringify(rows),
  });
  assert.equal(done.status, 0, String(done.stderr));
}

/** Adds dead letters to the saga's queue, as an outage would. */
export function deadLetter(folder, reasons) {
  const now = Date.now() * 1_000_000;
  sql(
    folder,
    'insert into message (queue, message_id, search_id, body, sent_at, visible_at, moved_at, turn, reason) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    reasons.map((reason, index) => {
      const id = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
      return ['saga-dead', id, id, `junk ${index}`, now, now, now, now, reason];
    }),
  );
}

/**
 * Unpacks the Chromium of the package into the folder for temporary files, once for each version. Several processes may
 * do so at the same time, and none may start a file that another one is writing. So the folder gets its name last.
 */
async function unpacked(folder) {
  const isThere = existsSync(folder);
  process.env.TMPDIR = isThere ? folder : mkdtempSync(`${folder}-`);
  const own = process.env.TMPDIR;
  await (await import('@sparticuz/chromium')).default.executablePath();
  if (!isThere) {
    try {
      renameSync(own, folder);
    } catch {
      // Another process was faster.
      rmSync(own, { recursive: true });
    }
    // The package has set paths in that folder, such as that of the libraries.
    for (const [name, value] of Object.entries(process.env)) process.env[name] = value.replaceAll(own, folder);
  }
  return join(folder, 'chromium');
}

let running;

/** Launches the Chromium of the package, or the one that CHROMIUM names. */
async function chromium() {
  const { chromium: playwright } = await import('playwright-core');
  let executablePath = process.env.CHROMIUM;
  if (!executablePath) {
    const version = JSON.parse(readFileSync(join(HERE, 'node_modules/@sparticuz/chromium/package.json'), 'utf8')).version;
    // If the system lacks the required libraries, use those that the package contains for Lambda.
    const hasLibraries = ['/usr/lib/x86_64-linux-gnu', '/usr/lib64', '/usr/lib'].some((folder) => existsSync(join(folder, 'libnss3.so')));
    if (!hasLibraries) process.env.AWS_EXECUTION_ENV ??= 'AWS_Lambda_nodejs22.x';
    executablePath = await unpacked(join(tmpdir(), `chromium-${version}`));
  }
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  return playwright.launch({ executablePath, headless: true, args });
}

export async function browser() {
  running ??= await chromium();
  return running;
}

export async function closeBrowser() {
  await running?.close();
  running = undefined;
}

/** Errors and foreign requests of each page, collected while it is open. */
const violationsOf = new WeakMap();

/** Opens a page in a new browser profile. Requests that match `blocked` fail. */
export async function open(server, hash = '', { blocked, ...options } = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1180, height: 800 }, locale: 'en-GB', ...options });
  if (blocked) await context.route(blocked, (each) => each.abort());
  return openIn(context, server, hash);
}

export async function openIn(context, server, hash = '') {
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT);
  const violations = [];
  violationsOf.set(page, violations);
  page.on('pageerror', (error) => violations.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith('http') && ![server.url, ...(server.others ?? [])].includes(origin)) violations.push(`foreign request: ${request.url()}`);
  });
  await page.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  await page.goto(`${server.url}/${hash}`);
  return page;
}

export const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();

/** Asserts the rules for every screen: accessible, not wider than the window, and without policy violations or errors. */
export async function assertScreen(page, what) {
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  // Contrast is undefined during a transition of colours.
  await page.evaluate(() => Promise.all(document.getAnimations().filter((each) => each.effect?.getTiming().iterations !== Infinity).map((each) => each.finished)));
  await page.evaluate(`${readFileSync(axe, 'utf8')};0`);
  const found = await page.evaluate((rules) => globalThis.axe.run(document, { runOnly: rules }), RULES);
  assert.deepEqual(found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => `${node.html.slice(0, 200)} ${node.any.map((check) => check.message)}`).join(' | ')}`), [], what);
  assert.ok(found.passes.length > 10, `${what}: axe checked the screen`);
  const { content, viewport } = await page.evaluate(() => ({ content: document.documentElement.scrollWidth, viewport: innerWidth }));
  assert.ok(content <= viewport, `${what}: ${content} pixels wide in a window of ${viewport}`);
  const cut = await page.evaluate(() => [...document.querySelectorAll('thead th, .stat')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1 && (cell.closest('thead')?.clientWidth ?? 2) > 1).map((cell) => cell.textContent));
  assert.deepEqual(cut, [], `${what}: the text of a cell is wider than the cell`);
  const broken = await page.evaluate(() => [...document.querySelectorAll('button, .button')].filter((each) => each.textContent.trim().length <= 12 && each.clientHeight > 2.5 * parseFloat(getComputedStyle(each).lineHeight)).map((each) => each.textContent));
  assert.deepEqual(broken, [], `${what}: a short label is broken into several lines`);
  assert.deepEqual(await page.evaluate(() => globalThis.violations), [], `${what}: no violation of the policy`);
  assert.deepEqual(violationsOf.get(page), [], `${what}: no error`);
}

export async function shot(page, name) {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: 'disabled' });
}
