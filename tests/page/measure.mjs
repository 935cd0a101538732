/**
 * Measures the numbers of docs/page.md and compares them with their limits:
 *
 *     node measure.mjs
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decidePairs, percentile } from './measure-pairs.mjs';
import { browser, closeBrowser, heading, open, openIn, ROOT, sample, Server, sql, text } from './harness.mjs';

const rows = [];
const measured = (what, value, limit, unit) => {
  rows.push([what, `${Math.round(value * 10) / 10} ${unit}`, `${limit} ${unit}`, value <= limit ? 'yes' : 'NO']);
  console.error(...rows.at(-1));
};

// The files that index.html names are the first load, all others are chunks.
const dist = join(ROOT, 'infra/page/dist');
const index = readFileSync(join(dist, 'index.html'), 'utf8');
const first = [...index.matchAll(/assets\/([\w.-]+\.(?:js|css))"/g)].map((found) => found[1]);
const kilobytes = (name) => statSync(join(dist, 'assets', `${name}.gz`)).size / 1000;
const chunks = readdirSync(join(dist, 'assets')).map((name) => name.replace(/\.gz$/, '')).filter((name) => name.endsWith('.js') && !first.includes(name));
measured('first load, compressed', first.reduce((sum, name) => sum + kilobytes(name), 0), 45, 'KB');
measured('largest chunk of a screen, compressed', Math.max(...chunks.map(kilobytes)), 30, 'KB');

const median = (values) => percentile(values, 0.5);

async function firstPaint(server, slower) {
  const paints = [];
  for (let i = 0; i < 5; i += 1) {
    const page = await open(server, '#/health');
    if (slower > 1) await (await page.context().newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: slower });
    await page.goto(`${server.url}/`);
    await heading(page, 'Imports');
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity));
    await page.context().close();
  }
  return median(paints);
}

const server = await Server.start();
try {
  await server.import('Gambling harms', [sample('psycinfo.ris')]);
  measured('first contentful paint, median of 5', await firstPaint(server, 1), 300, 'ms');
  measured('first contentful paint at a quarter of the processor', await firstPaint(server, 4), 600, 'ms');

  // A thousand imports, inserted into the database as they are stored.
  await server.kill();
  const now = Date.now();
  const jobs = Array.from({ length: 1_000 }, (_, n) => {
    const id = `01a10000-0000-7000-8000-${String(n).padStart(12, '0')}`;
    const at = new Date(now - n * 60_000).toISOString();
    const file = { file_id: id, name: `export ${n}.ris`, received: true, size_bytes: 1_000, outcome: { outcome: 'completed', encoding: 'UTF-8', encoding_certainty: 'certain', format: 'RIS', format_certainty: 'certain', records: 10, studies: 9, quarantined: 1 } };
    const project = '8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77';
    const job = { completed_at: at, created_at: at, files: [file], name: `Search ${n}`, project_id: project, reason: null, revision: 7, search_id: id, state: 'Completed' };
    return [id, 7, 1, (now - n * 60_000) * 1_000_000, JSON.stringify(job), project];
  });
  sql(server.folder, 'insert into job (search_id, revision, ended, created_at, job, project_id) values (?, ?, ?, ?, ?, ?)', jobs);
  const many = await server.restart();
  Object.assign(server, many);
  const lists = [];
  for (const slower of [1, 1, 1, 4]) {
    const page = await open(server, '#/health');
    if (slower > 1) await (await page.context().newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: slower });
    await heading(page, 'Health');
    const found = await page.evaluate(async () => {
      const tasks = [];
      new PerformanceObserver((list) => tasks.push(...list.getEntries().map((each) => each.duration))).observe({ entryTypes: ['longtask'] });
      const begun = performance.now();
      location.hash = '#/searches?review=8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77';
      while (document.querySelectorAll('tbody tr').length < 1_000) await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
      const took = performance.now() - begun;
      await new Promise((done) => setTimeout(done, 300));
      const asked = performance.getEntriesByType('resource').filter((each) => each.name.includes('/searches?')).reduce((sum, each) => sum + each.duration, 0);
      return { took, asked, longest: Math.max(0, ...tasks) };
    });
    console.error(`  listed in ${Math.round(found.took)} ms, of which requests took ${Math.round(found.asked)} ms`);
    if (slower === 1) lists.push(found.took);
    else measured('longest task while 1,000 imports are listed, at a quarter of the processor', found.longest, 200, 'ms');
    await page.context().close();
  }
  measured('1,000 imports listed, median of 3', median(lists), 700, 'ms');

  // A hundred thousand studies.
  const words = (n) => `TY  - JOUR\nTI  - Effects of intervention ${(n * 7919) % 100_003} on outcome ${n % 97}\nAU  - Author${n % 1_000}, A.\nPY  - ${1980 + (n % 46)}\nJO  - Journal ${n % 200}\nDO  - 10.5555/large.${n}\nER  - \n`;
  console.error('importing 100,000 studies');
  const large = await server.import('Large', [text('large.ris', Array.from({ length: 100_000 }, (_, n) => words(n)).join(''))], { wait: false });
  for (;;) {
    const search = await (await fetch(`${server.searches()}/${large}`)).json();
    if (search.completed_at) { assert.equal(search.studies, 100_000); break; }
    await new Promise((done) => setTimeout(done, 500));
  }
  const page = await open(server, `#/searches/${large}/studies`);
  page.setDefaultTimeout(300_000);
  await page.locator('.study a').first().waitFor();
  const loaded = Date.now();
  await page.evaluate(() => { const rows = document.querySelector('.rows'); rows.scrollTop = rows.scrollHeight; });
  await page.locator('.study a', { hasText: 'intervention' }).last().waitFor();
  await page.waitForFunction(() => document.querySelector('.rows .study:last-child a') !== null);
  console.error('all pages loaded in', Date.now() - loaded, 'ms');
  const frames = await page.evaluate(async () => {
    const rows = document.querySelector('.rows');
    const times = [];
    let last = performance.now();
    for (let i = 0; i < 240; i += 1) {
      rows.scrollTop = (i * (rows.scrollHeight - rows.clientHeight)) / 239;
      await new Promise(requestAnimationFrame);
      const at = performance.now();
      times.push(at - last);
      last = at;
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)];
  });
  measured('a frame while 100,000 studies scroll, 95th percentile', frames, 25, 'ms');
  await page.context().close();

  await decidePairs(server, measured, words);

  // A sparse file of the maximum size.
  const largest = join(server.folder, 'largest.ris');
  writeFileSync(largest, '');
  truncateSync(largest, 2 ** 30);
  const sending = await open(server, '#/new');
  sending.setDefaultTimeout(300_000);
  await sending.locator('input[type=file]').setInputFiles(largest);
  const sent = Date.now();
  await sending.getByRole('button', { name: 'Import' }).click();
  await heading(sending, 'largest');
  measured('a file of 1 GiB uploaded', (Date.now() - sent) / 1_000, 60, 's');
  await sending.context().close();

  // Twelve tabs.
  const context = await (await browser()).newContext({ locale: 'en-GB' });
  const tabs = [];
  for (let i = 0; i < 12; i += 1) tabs.push(await openIn(context, server));
  for (const tab of tabs) await tab.locator('.connection.on').waitFor();
  const waits = [];
  for (let n = 0; n < 5; n += 1) {
    const seen = Promise.all(tabs.map((tab) => tab.locator('tbody tr', { hasText: `Received by twelve ${n}` }).waitFor()));
    const begun = performance.now();
    await server.announce(`Received by twelve ${n}`);
    await seen;
    waits.push(performance.now() - begun);
  }
  measured('a change shown in all 12 tabs, median of 5', median(waits), 1_000, 'ms');
  await context.close();
} finally {
  await closeBrowser();
  await server.end();
}

console.log('| what | measured | limit | met |\n| --- | --- | --- | --- |');
for (const row of rows) console.log(`| ${row.join(' | ')} |`);
if (rows.some((row) => row[3] === 'NO')) process.exitCode = 1;
