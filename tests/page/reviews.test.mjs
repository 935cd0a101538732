/** Reviews, live changes of their imports, and the screens of operators. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assertScreen, browser, closeBrowser, deadLetter, heading, open, openIn, PROGRAM, PROJECT, sample, SAMPLES, Server, shot, text, until } from './harness.mjs';

let server;

before(async () => {
  server = await Server.start();
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

test('an import deleted by another client disappears from the list', async () => {
  const id = await server.import('Deleted elsewhere', [sample('utf-16.ris')]);
  const page = await open(server);
  const link = page.getByRole('link', { name: 'Deleted elsewhere', exact: true });
  await link.waitFor();
  await page.locator('.connection.on').waitFor();
  assert.ok((await fetch(`${server.searches()}/${id}`, { method: 'DELETE' })).ok);
  await link.waitFor({ state: 'detached' });
  await page.context().close();
});

test('an open page reconnects to a restarted server', async () => {
  const page = await open(server);
  await page.locator('.connection.on').waitFor();
  await server.kill();
  await page.locator('.connection.off').waitFor();
  server = await server.restart();
  await page.locator('.connection.on').waitFor();
  await server.import('After the crash', [sample('utf-16.ris')]);
  await page.locator('tbody tr', { hasText: 'After the crash' }).getByText('Done').waitFor();
  await page.context().close();
});

test('a late response does not replace a newer state', async () => {
  const project = crypto.randomUUID();
  for (const [hash, requests] of [[() => `#/searches?review=${project}`, /searches\?limit=200/], [(id) => `#/searches/${id}?review=${project}`, /searches\/[^/]*$/]]) {
    const id = await server.announce('Overtaken', project);
    const page = await open(server, `#/health?review=${project}`);
    await page.locator('.connection.on').waitFor();
    let late;
    let answer;
    await page.route(requests, async (route) => {
      if (late) return route.continue();
      late = route.request();
      const response = await route.fetch();
      answer = () => route.fulfill({ response });
    });
    await page.evaluate((hash) => { location.hash = hash; }, hash(id));
    await until('the response is held back', () => answer);
    assert.equal((await fetch(`${server.searches(project)}/${id}/cancel`, { method: 'POST' })).status, 202);
    await server.ended(id, project);
    const failed = page.locator('tr, .facts', { hasText: 'Failed' }).first();
    await failed.waitFor();
    await answer();
    await (await late.response()).finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    assert.ok(await failed.isVisible(), hash(id));
    await page.context().close();
  }
});

test('the counts of imports follow decisions and repairs', async () => {
  const project = crypto.randomUUID();
  const record = (title, author) => `TY  - JOUR\nTI  - ${title}\nAU  - ${author}\nPY  - 2020\nDO  - 10.1000/zinc\nER  - \n`;
  const [first, second] = [
    await server.import('Kept', [text('a.ris', record('Zinc for the common cold in children', 'Berg, A.'))], { project }),
    await server.import('Repeated', [text('b.ris', record('Zinc for the common cold in children', 'Berg, Anna')), sample('broken.ris')], { project }),
  ];
  const [list, overview] = [await open(server, `#/searches?review=${project}`), await open(server, `#/searches/${second}?review=${project}`)];
  const row = list.locator(`tr[data-id="${second}"]`);
  const cell = (of, name, value) => of.locator(`td[data-label="${name}"]`, { hasText: new RegExp(`^${value}(?!\\d)`) });
  const file = overview.locator('tr', { hasText: 'b.ris' });
  await cell(row, 'Duplicates', '1').waitFor();
  await cell(file, 'Duplicates', '1').waitFor();
  for (const page of [list, overview]) await page.locator('.connection.on').waitFor();
  const fileOf = async (search_id) => ({ search_id, file_id: (await (await fetch(`${server.searches(project)}/${search_id}`)).json()).files[0].file_id, record: 1 });
  const body = JSON.stringify({ decision: 'different', studies: [await fileOf(second), await fileOf(first)] });
  assert.ok((await fetch(`${server.url}/projects/${project}/duplicates/decisions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).ok);
  await cell(row, 'Duplicates', '0').waitFor();
  await cell(file, 'Duplicates', '0').waitFor();
  await cell(row, 'Not imported', '1').waitFor();
  await overview.getByRole('link', { name: 'Not imported', exact: true }).click();
  await overview.getByRole('button', { name: /Show and correct/ }).click();
  await overview.getByLabel('Record in the file').fill('TY  - JOUR\nTI  - Corrected by hand\nER  - \n');
  await overview.getByRole('button', { name: 'Import 1 corrected record' }).click();
  await cell(row, 'Not imported', '0').waitFor();
  for (const page of [list, overview]) await page.context().close();
});

test('the history links to the import whose sources changed', async () => {
  const project = crypto.randomUUID();
  const id = await server.import('With a source', [sample('utf-16.ris'), sample('psycinfo.ris')], { project });
  const { files } = await (await fetch(`${server.searches(project)}/${id}`)).json();
  const source = { database: 'Embase', platform: null, searched_on: null };
  const body = JSON.stringify({ files: files.map(({ file_id }) => ({ file_id, source })) });
  assert.ok((await fetch(`${server.searches(project)}/${id}/sources`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).ok);
  const page = await open(server, `#/team?review=${project}`);
  await page.getByText('a user set the source of 2 files in this import').waitFor();
  await assertScreen(page, 'a changed source in the history');
  await page.getByRole('link', { name: 'this import' }).click();
  await heading(page, 'With a source');
  await page.context().close();
});

test('tabs share one stream, and another tab leads after the leader is closed', async () => {
  const context = await (await browser()).newContext({ locale: 'en-GB' });
  let streams = 0;
  context.on('request', (request) => { if (request.url().endsWith('/events')) streams += 1; });
  const tabs = [];
  for (let i = 0; i < 8; i += 1) tabs.push(await openIn(context, server));
  for (const tab of tabs) await tab.locator('.connection.on').waitFor();
  assert.equal(streams, 1);
  await tabs.shift().close();
  await server.import('Received by all', [sample('utf-16.ris')]);
  for (const tab of tabs) await tab.locator('tbody tr', { hasText: 'Received by all' }).getByText('Done').waitFor();
  await context.close();
});

test('a tab stays connected while the timers of the leader are stopped', async () => {
  const context = await (await browser()).newContext({ locale: 'en-GB' });
  // The browser hardly runs the timers of a hidden tab. The test runs those of the other tab.
  await context.addInitScript(() => {
    const now = Date.now;
    Object.assign(globalThis, { intervals: [], passed: 0, setInterval: (act) => globalThis.intervals.push(act) });
    Date.now = () => now() + globalThis.passed;
  });
  const leader = await openIn(context, server);
  await leader.locator('.connection.on').waitFor();
  const other = await openIn(context, server);
  await other.locator('.connection.on').waitFor();
  await other.evaluate((name) => {
    globalThis.answers = 0;
    new BroadcastChannel(name).onmessage = ({ data }) => { if (data.on) globalThis.answers += 1; };
    new MutationObserver(() => { if (document.querySelector('.connection.off')) globalThis.wasOff = true; }).observe(document.body, { subtree: true, childList: true, attributes: true });
  }, `searches of ${PROJECT}`);
  for (let n = 1; n < 6; n += 1) {
    await other.evaluate(() => {
      globalThis.passed += 5_000;
      for (const act of globalThis.intervals) act();
    });
    await until('the leader has answered', () => other.evaluate((n) => globalThis.answers >= n, n));
  }
  assert.equal(await other.evaluate(() => globalThis.wasOff), undefined);
  // Without answers, the tab shows that it is not connected.
  await leader.evaluate(() => { BroadcastChannel.prototype.postMessage = () => undefined; });
  await until('the tab is not connected', async () => {
    await other.evaluate(() => { for (const act of globalThis.intervals) act(); });
    return other.locator('.connection.off').isVisible();
  });
  await context.close();
});

test('the page polls if the deployment does not stream', async () => {
  const page = await open(server, '#/new');
  const context = page.context();
  await page.close();
  const polling = await context.newPage();
  let streams = 0;
  polling.on('request', (request) => { if (request.url().endsWith('/events')) streams += 1; });
  await polling.route('**/config.json', async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    body.features.live = false;
    return route.fulfill({ response, json: body });
  });
  await polling.addInitScript(() => {
    const signals = [];
    const add = document.addEventListener;
    document.addEventListener = (type, act, options) => {
      if (type === 'visibilitychange') signals.push(options?.signal);
      add.call(document, type, act, options);
    };
    globalThis.listening = () => signals.filter((signal) => !signal?.aborted).length;
  });
  await polling.goto(server.url);
  await polling.locator('.connection.on').waitFor();
  // Live updates begin again after an answer that the page does not understand.
  await polling.route('**/changes?*', (route) => route.fulfill({ json: { items: [null], next: 'unknown' } }), { times: 1 });
  await polling.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await polling.locator('.connection.off').waitFor();
  await polling.locator('.connection.on').waitFor();
  await server.announce('Polled');
  await polling.reload();
  const id = await server.announce('Polled again');
  const link = polling.getByRole('link', { name: 'Polled again' });
  await link.click();
  await polling.locator('.connection.on').waitFor();
  await polling.getByText('Not uploaded yet').waitFor();
  assert.equal((await fetch(`${server.searches()}/${id}/cancel`, { method: 'POST' })).status, 202);
  await server.ended(id);
  await polling.locator('.facts', { hasText: 'Failed' }).waitFor();
  await polling.getByText('Not read').waitFor();
  await polling.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Imports' }).click();
  await link.waitFor();
  assert.ok((await fetch(`${server.searches()}/${id}`, { method: 'DELETE' })).ok);
  await link.waitFor({ state: 'detached' });
  assert.equal(streams, 0);
  assert.ok((await polling.evaluate(() => globalThis.listening())) <= 1, 'a pause removes its listeners');
  await context.close();
});

test('a second retry of one cause is rejected', async () => {
  await server.kill();
  deadLetter(server.folder, [...Array(40).keys()].map((n) => `storing partition ${n} failed: no MongoDB server answers`));
  server = await server.restart();
  const [ann, ben] = [await open(server, '#/failures'), await open(server, '#/failures')];
  for (const page of [ann, ben]) {
    await page.getByText('40', { exact: true }).waitFor();
    await page.locator('.group').first().click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByRole('button', { name: 'Retry 40 failures' }).waitFor();
  }
  await assertScreen(ann, 'a dry run');
  await shot(ann, 'dry-run');
  const archive = ann.getByRole('button', { name: /^Archive failure/ }).first();
  await archive.click();
  await ann.getByLabel('Reason', { exact: true }).fill("it's known");
  await ann.locator('code', { hasText: "--reason 'it'\\''s known'" }).waitFor();
  await archive.click();
  await ann.getByLabel('Maximum per second').fill('1');
  // Ben's page must not learn of the running retry before he starts his own.
  await ben.route('**/admin/{operations,failures/groups}', () => undefined);
  await ann.getByRole('button', { name: 'Retry 40 failures' }).click();
  await ann.getByRole('region', { name: 'Running retry' }).waitFor();
  await assertScreen(ann, 'a running retry');
  await shot(ann, 'retry');
  await ben.getByRole('button', { name: 'Retry 40 failures' }).click();
  const alert = ben.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.innerText(), /running|another/i);
  await ann.getByRole('button', { name: 'Stop', exact: true }).click();
  await ann.getByRole('region', { name: 'Running retry' }).waitFor({ state: 'detached' });
  await until('the retry is in the audit log', async () => (await ann.getByText('began a retry').count()) > 0);
  for (const page of [ann, ben]) await page.context().close();
});

test('a decision highlights its cell in the state machine', async () => {
  const project = crypto.randomUUID();
  const id = await server.import('Decided', [sample('psycinfo.ris'), sample('utf-16.ris')], { project });
  const page = await open(server, `#/searches/${id}/timeline?review=${project}`);
  const lit = page.locator('.states td.lit');
  await lit.waitFor();
  assert.equal(await lit.count(), 1);
  const cell = () => lit.evaluate((td) => [td.closest('table').querySelectorAll('thead tr > *')[td.cellIndex].textContent, td.parentElement.cells[0].textContent]);
  assert.equal((await cell())[0], 'Initial', 'the first decision of the state machine');
  // The state machine must list each handled message as possible in its state.
  const buttons = page.locator('button.state');
  for (let n = 0; n < (await buttons.count()); n += 1) {
    const [, state, message] = /^in (\w+)\s*: show (\w+)/.exec(await buttons.nth(n).innerText());
    await buttons.nth(n).click();
    assert.deepEqual(await cell(), [state, message]);
    const verdict = await buttons.nth(n).evaluate((button) => button.closest('.decision').querySelector('.tag').textContent);
    if (verdict.includes('Handled')) assert.match(await lit.innerText(), /handled/);
  }
  await buttons.last().click();
  assert.deepEqual(await cell(), ['Parsing', 'ReferenceFileParsingCompleted']);
  await page.getByText('the last file, all good: leads to Completed').waitFor();
  await assertScreen(page, 'the state machine');
  await shot(page, 'states');
  await page.context().close();
});

test('a name opens the review of the command line, in upper or lower case', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'page-'));
  const done = spawnSync(PROGRAM, ['import', join(SAMPLES, 'psycinfo.ris'), '--project', 'Gambling, 2026', '--data-dir', folder]);
  assert.equal(done.status, 0, String(done.stderr));
  const named = await Server.start({ folder });
  try {
    const page = await open(named);
    await page.locator('.review summary').click();
    await page.getByLabel('Open a review').fill('gambling,  2026');
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('link', { name: 'psycinfo' }).waitFor();
    await page.reload();
    await page.locator('.review summary', { hasText: 'Gambling, 2026' }).click();
    await assertScreen(page, 'reviews');
    await shot(page, 'reviews');
    // The page opens the last review, in another tab as well.
    const again = await openIn(page.context(), named);
    await again.getByRole('link', { name: 'psycinfo' }).waitFor();
    assert.match(await again.title(), /^Imports · Gambling, 2026 · /);
    await page.getByRole('button', { name: 'Default review' }).click();
    await page.getByText('No imports yet').waitFor();
    await page.context().close();
  } finally {
    await named.end();
  }
});

test('reviews are created, renamed, archived and deleted', async () => {
  const reviewed = await Server.start();
  try {
    const page = await open(reviewed);
    await page.locator('.review summary').click();
    await page.getByLabel('Open a review').fill('Sleep apnoea');
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('alert').getByText('There is no review Sleep apnoea yet.').waitFor();
    await assertScreen(page, 'an unknown review');
    await shot(page, 'review-unknown');
    await page.getByRole('button', { name: 'Create this review' }).click();
    await page.locator('.review summary', { hasText: 'Sleep apnoea' }).waitFor();
    const project = /review=([0-9a-f-]+)/.exec(page.url())[1];
    await reviewed.import('Of this review', [sample('psycinfo.ris')], { project });
    await page.getByRole('link', { name: 'Of this review' }).waitFor();

    await page.locator('.review summary').click();
    await page.getByRole('link', { name: 'All reviews' }).click();
    await heading(page, 'Reviews');
    await page.getByLabel('New review').fill('SLEEP APNOEA');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    // The name is that of the existing review, which is opened.
    await page.getByRole('link', { name: 'Of this review' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Rename Sleep apnoea' }).click();
    await page.getByLabel('New name of Sleep apnoea').fill('Sleep');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Archive Sleep' }).click();
    await page.getByLabel('Show 1 archived review').check();
    await page.getByRole('button', { name: 'Restore Sleep' }).waitFor();
    await assertScreen(page, 'reviews');
    await shot(page, 'reviews-light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await shot(page, 'reviews-dark');
    await page.setViewportSize({ width: 320, height: 640 });
    await assertScreen(page, 'reviews, narrow');
    await shot(page, 'reviews-narrow');
    await page.getByRole('button', { name: 'Delete Sleep' }).click();
    await page.getByRole('button', { name: 'Delete the review' }).click();
    await until('the review and its imports are deleted', async () => {
      const listed = await (await fetch(`${reviewed.url}/projects`)).json();
      const imports = await (await fetch(reviewed.searches(project))).json();
      return !listed.items.length && !imports.items.length;
    });
    await page.context().close();
  } finally {
    await reviewed.end();
  }
});
