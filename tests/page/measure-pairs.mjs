/** Measures the review of many possible duplicates, for `measure.mjs`. */
import assert from 'node:assert/strict';
import { heading, open, PROJECT, text } from './harness.mjs';

const UNDECIDED = 2_000;
const DECISIONS = 300;
/** After these decisions, the memory is the reference for the memory after all of them. */
const WARM = 100;

export const percentile = (values, part) => [...values].sort((a, b) => a - b)[Math.floor(values.length * part)];

/** Imports likely duplicates of the first records, and decides some of them with the keyboard. `record` returns a record. */
export async function decidePairs(server, measured, record) {
  // Other exports of the same works, with a first name and without a DOI and a journal.
  const copy = (n) => record(n).replace(/^AU  - .*$/m, `AU  - Author${n % 1_000}, Anna`).replace(/^(DO|JO)  - .*\n/gm, '');
  await server.import('Again', [text('again.ris', Array.from({ length: UNDECIDED }, (_, n) => copy(n)).join(''))]);
  const progress = await (await fetch(`${server.url}/projects/${PROJECT}/duplicates/progress`)).json();
  assert.ok(progress.open >= UNDECIDED, JSON.stringify(progress));

  const page = await open(server, '#/health');
  page.setDefaultTimeout(300_000);
  await heading(page, 'Health');
  const opened = performance.now();
  await page.evaluate(() => (location.hash = '#/duplicates'));
  await page.locator('.pair').first().waitFor();
  measured('opening the duplicates of 102,000 studies, with 2,000 undecided pairs', performance.now() - opened, 2_000, 'ms');

  await page.getByRole('button', { name: 'Decide with the keyboard' }).click();
  const developer = await page.context().newCDPSession(page);
  const state = async () => {
    await developer.send('HeapProfiler.collectGarbage');
    const { usedSize } = await developer.send('Runtime.getHeapUsage');
    return { bytes: usedSize, elements: await page.evaluate(() => document.querySelectorAll('*').length) };
  };
  const times = [];
  let warm;
  for (let n = 0; n < DECISIONS; n += 1) {
    if (n === WARM) warm = await state();
    const stored = page.waitForResponse((response) => response.url().endsWith('/duplicates/decisions') && response.request().method() === 'POST');
    const pressed = performance.now();
    await page.keyboard.press('d');
    await stored;
    times.push(performance.now() - pressed);
    await page.waitForFunction(() => document.activeElement?.matches('.pair') && !document.activeElement.querySelector('[role=status]'));
  }
  measured('a decision with one key until it is stored, median of 300', percentile(times, 0.5), 100, 'ms');
  measured('a decision with one key until it is stored, 95th percentile', percentile(times, 0.95), 250, 'ms');
  const end = await state();
  measured('elements of the document after 300 decisions, compared with 100', end.elements / warm.elements, 1.5, 'times');
  measured('memory of scripts after 300 decisions, compared with 100', end.bytes / warm.bytes, 1.5, 'times');
  console.error(`  after ${WARM} decisions: ${warm.elements} elements, ${(warm.bytes / 1e6).toFixed(1)} MB`);
  await page.context().close();

  const began = performance.now();
  const rule = { id: crypto.randomUUID(), rule: 'same_doi' };
  for (let after = ''; after !== null; ) {
    const step = await fetch(`${server.url}/projects/${PROJECT}/duplicates/bulk`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...rule, ...(after ? { after } : {}) }),
    });
    after = (await step.json()).next;
  }
  measured('a rule that examines all pairs', performance.now() - began, 10_000, 'ms');
}
