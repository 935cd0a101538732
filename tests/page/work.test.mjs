/** Complete workflows of reviewers and operators. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { browser, closeBrowser, deadLetter, heading, assertScreen, open, openIn, PROGRAM, sample, SAMPLES, Server, shot, SHOTS, text, until } from './harness.mjs';

let server;

before(async () => {
  server = await Server.start();
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

const decideIn = (pair, name) => pair.getByRole('button', { name }).click();
const drop = (page, names) => page.locator('input[type=file]').setInputFiles(names.map((name) => join(SAMPLES, name)));

test('an import accounts for every record of its files', async () => {
  const page = await open(server, '#/new');
  await drop(page, ['psycinfo.ris', 'broken.ris', 'pubmed.nbib']);
  await page.getByLabel('Name of the import').fill('Gambling harms');
  await assertScreen(page, 'chosen files');
  await shot(page, 'chosen');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'Gambling harms');
  await page.getByRole('region', { name: 'Every record is accounted for' }).getByText('8 studies = 8 unique + 0 duplicates').waitFor();
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  await assertScreen(page, 'a completed import');
  await page.context().close();
});

test('problems are shown next to their file, and input is kept', async () => {
  const page = await open(server, '#/new');
  await page.locator('input[type=file]').setInputFiles([
    { name: 'empty.ris', mimeType: 'text/plain', buffer: Buffer.alloc(0) },
    { name: 'good.ris', mimeType: 'text/plain', buffer: Buffer.from('TY  - JOUR\nTI  - A\nER  - \n') },
  ]);
  const empty = page.locator('.files li', { hasText: 'empty.ris' });
  await empty.getByText('The file is empty.').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Import' }).isDisabled());
  await assertScreen(page, 'a problem next to its file');
  await shot(page, 'fault');
  await empty.getByRole('button', { name: /Remove/ }).click();

  // The server rejects the file of the request.
  await page.route('**/searches', (route) => route.request().method() === 'POST'
    ? route.fulfill({ status: 422, contentType: 'application/problem+json', body: JSON.stringify({ type: 'about:blank', title: 'Unprocessable', status: 422, detail: 'the manifest is not valid', errors: [{ file: 0, detail: 'the name has a control character' }] }) })
    : route.continue());
  await page.getByRole('button', { name: 'Import' }).click();
  await page.locator('.files li', { hasText: 'good.ris' }).getByText('The name has a control character.').waitFor();
  await page.reload();
  await page.locator('.files li', { hasText: 'good.ris' }).waitFor();
  assert.equal(await page.getByLabel('Name of the import').inputValue(), 'empty', 'input survives a reload');
  await page.context().close();
});

test('a file that was imported before is reported', async () => {
  const project = crypto.randomUUID();
  await server.import('The first time', [sample('psycinfo.ris')], { project });
  const page = await open(server, `#/new?review=${project}`);
  await page.locator('input[type=file]').setInputFiles([join(SAMPLES, 'psycinfo.ris'), join(SAMPLES, 'utf-16.ris')]);
  const note = page.locator('.files li', { hasText: 'psycinfo.ris' }).getByText('A file with this name and size was imported before');
  await note.waitFor();
  assert.equal(await page.getByText('was imported before').count(), 1);
  await assertScreen(page, 'a file that was imported before');
  await shot(page, 'imported-before');
  await page.context().close();
});

test('an import is limited to fifty files', async () => {
  const page = await open(server, `#/new?review=${crypto.randomUUID()}`);
  const files = Array.from({ length: 51 }, (_, n) => ({ name: `${n}.ris`, mimeType: 'text/plain', buffer: Buffer.from(`TY  - JOUR\nTI  - Study ${n} of fifty\nER  - \n`) }));
  await page.locator('input[type=file]').setInputFiles(files);
  await page.getByRole('alert').getByText('An import can have up to 50 files. Remove 1.').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Import' }).isDisabled());
  await page.getByRole('button', { name: 'Remove 50.ris' }).click();
  await page.getByLabel('Name of the import').fill('Fifty files');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'Fifty files');
  await page.locator('.facts .tag', { hasText: 'Done' }).waitFor();
  await page.getByRole('region', { name: 'Every record is accounted for' }).getByText('50 studies = ').waitFor();
  await assertScreen(page, 'fifty files');
  await page.context().close();
});

test('an interrupted upload resumes with the same key after a reload', async () => {
  const page = await open(server, '#/new');
  const keys = new Set();
  page.on('request', (request) => { const key = request.headers()['idempotency-key']; if (key) keys.add(key); });
  let uploads = 0;
  await page.route('**/uploads', (route) => { uploads += 1; return uploads === 1 ? route.continue() : route.abort('connectionreset'); });
  await drop(page, ['psycinfo.ris', 'pubmed.nbib', 'embase.csv']);
  await page.getByLabel('Name of the import').fill('Interrupted');
  await page.getByRole('button', { name: 'Import' }).click();
  await page.getByText(/could not be uploaded\. The uploaded files are kept/).waitFor();
  await assertScreen(page, 'an interrupted upload');
  await shot(page, 'interrupted');
  await page.unroute('**/uploads');
  await page.reload();
  await heading(page, 'Interrupted');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  assert.equal(keys.size, 1, [...keys].join());
  const { items } = await (await fetch(`${server.searches()}?text=Interrupted`)).json();
  assert.equal(items.length, 1, 'repeated requests create one import');
  await page.context().close();
});

test('an upload resumes when a killed server is restarted', async () => {
  const page = await open(server, '#/new');
  await page.locator('.connection.on').waitFor();
  await drop(page, ['psycinfo.ris']);
  await page.getByLabel('Name of the import').fill('Through a crash');
  await server.kill();
  await page.locator('.connection.off').waitFor();
  await page.getByRole('button', { name: 'Import' }).click();
  await page.getByRole('alert').getByText('The server does not respond.').waitFor();
  await assertScreen(page, 'without a server');
  server = await server.restart();
  await heading(page, 'Through a crash');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  await page.context().close();
});

test('an expired upload form is replaced', async () => {
  const page = await open(server, '#/new');
  let answers = 0;
  await page.route('**/searches', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    const response = await route.fetch();
    const body = await response.json();
    answers += 1;
    if (answers === 1) for (const file of body.files) file.upload.expires_at = '2020-01-01T00:00:00Z';
    return route.fulfill({ response, json: body });
  });
  await drop(page, ['utf-16.ris']);
  await page.getByLabel('Name of the import').fill('Expired');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'Expired');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  assert.equal(answers, 2);
  await page.context().close();
});

test('a corrected record is imported, and both imports link to each other', async () => {
  // A separate review, because others contain duplicates of these studies.
  const project = '20000000-0000-4000-8000-000000000001';
  const id = await server.import('To be corrected', [sample('broken.ris')], { project });
  const page = await open(server, `#/searches/${id}/unread?review=${project}`);
  await page.getByRole('button', { name: /Show and correct/ }).click();
  const box = page.getByLabel('Record in the file');
  await box.fill('TY  - JOUR\nTI  - Corrected by hand\nAU  - Doe, J.\nPY  - 2020\nER  - \n');
  await page.reload();
  await page.getByRole('button', { name: 'Import 1 corrected record' }).waitFor();
  assert.match(await box.inputValue(), /Corrected by hand/, 'input survives a reload');
  await shot(page, 'correcting');
  await assertScreen(page, 'a corrected record');
  await page.getByRole('button', { name: 'Import 1 corrected record' }).click();
  await page.locator('.tag', { hasText: 'Corrected' }).waitFor();
  await page.getByRole('link', { name: 'by this import' }).click();
  await page.getByText('This import repairs').waitFor();
  await page.locator('.tag', { hasText: 'Done' }).first().waitFor();
  await page.getByRole('link', { name: 'an earlier import' }).click();
  await page.getByRole('link', { name: /1 record corrected by another import/ }).waitFor();
  await page.getByText('3 studies = 3 unique + 0 duplicates').waitFor();
  await assertScreen(page, 'a repaired import');
  await shot(page, 'repaired');
  await page.context().close();
});

test('a failed file is replaced, and a rejection is shown next to it', async () => {
  const id = await server.import('To be replaced', [sample('library.tsv'), { name: 'notes.pdf', bytes: Buffer.from('%PDF-1.4 no references') }]);
  const page = await open(server, `#/searches/${id}`);
  const row = page.locator('tbody tr', { hasText: 'notes.pdf' });
  await row.locator('input[type=file]').setInputFiles({ name: 'x.ris', mimeType: 'text/plain', buffer: Buffer.alloc(0) });
  await row.getByRole('alert').waitFor();
  await assertScreen(page, 'a rejected replacement');
  await row.locator('input[type=file]').setInputFiles(join(SAMPLES, 'psycinfo.ris'));
  await page.getByText('This import repairs').waitFor();
  await page.locator('.tag', { hasText: 'Done' }).first().waitFor();
  await page.context().close();
});

test('an import is cancelled, and deleted in every tab', async () => {
  const id = await server.announce('To be cancelled');
  const context = await (await browser()).newContext({ locale: 'en-GB' });
  const [list, page] = [await openIn(context, server), await openIn(context, server, `#/searches/${id}`)];
  await list.getByRole('link', { name: 'To be cancelled' }).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the import' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete the import' }).click();
  await heading(page, 'Imports');
  for (const each of [page, list]) await each.getByRole('link', { name: 'To be cancelled' }).waitFor({ state: 'detached' });
  await context.close();
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
  await polling.goto(server.url);
  await polling.locator('.connection.on').waitFor();
  await server.announce('Polled');
  await polling.reload();
  await server.announce('Polled again');
  await polling.locator('tbody tr', { hasText: 'Polled again' }).waitFor();
  assert.equal(streams, 0);
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

test('sources entered before the upload survive a reload', async () => {
  const project = crypto.randomUUID();
  const page = await open(server, `#/new?review=${project}`);
  await drop(page, ['psycinfo.ris', 'utf-16.ris']);
  const file = page.locator('.files li', { hasText: 'utf-16.ris' });
  await file.getByText('Enter the source').click();
  await file.getByLabel('Database or register').fill('Embase');
  await file.getByLabel('Date of search').fill('2026-05-17');
  await assertScreen(page, 'a source before the upload');
  await shot(page, 'source-before');
  await page.reload();
  await file.getByText('Source entered').click();
  assert.equal(await file.getByLabel('Database or register').inputValue(), 'Embase');
  await page.getByRole('button', { name: 'Import' }).click();
  await page.locator('tr', { hasText: 'utf-16.ris' }).getByText('From Embase, 2026-05-17').waitFor();
  await page.locator('tr', { hasText: 'psycinfo.ris' }).getByText('Unknown source').waitFor();
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

test('an export contains what the filter shows, with corrected records', async () => {
  const project = crypto.randomUUID();
  const review = await fetch(`${server.url}/projects/${project}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: `Exported ${project}` }) });
  assert.equal(review.status, 200);
  const bad = 'TY  - JOUR\nTI  - Kept\nAB  - Melatonin at night\nER  - \n\nTY  - JOUR\nTI  - Bad \u0001\u0001\u0001\u0001\u0001\u0001 title\nER  - \n';
  const search = await server.import('With a mistake', [text('a.ris', bad)], { project });
  await server.import('Another import', [text('b.ris', 'TY  - JOUR\nTI  - Elsewhere\nER  - \n')], { project });
  const page = await open(server, `#/searches/${search}/unread?review=${project}`);
  await page.getByRole('button', { name: /Show and correct/ }).click();
  await page.getByLabel('Record in the file').fill('TY  - JOUR\nTI  - Corrected\nER  - \n');
  await page.getByRole('button', { name: 'Import 1 corrected record' }).click();
  await page.locator('.tag', { hasText: 'Corrected' }).waitFor();
  const shown = () => page.locator('.study a').allInnerTexts();
  const exported = async () => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export', exact: true }).click()]);
    assert.match(download.suggestedFilename(), /^Exported-/);
    return (await readFile(await download.path(), 'utf8')).match(/(?<=TI {2}- ).*(?=\r)/g) ?? [];
  };
  for (const [hash, expected] of [
    [`#/searches/${search}/studies?review=${project}`, ['Kept', 'Corrected']],
    [`#/studies?review=${project}`, ['Corrected', 'Elsewhere', 'Kept']],
    [`#/studies?review=${project}&text=MELATONIN`, ['Kept']],
  ]) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await until(`the studies at ${hash}`, async () => String([...(await shown())].sort()) === String([...expected].sort()));
    assert.deepEqual(await exported(), await shown(), hash);
  }
  await assertScreen(page, 'studies of a review');
  await shot(page, 'studies-review');
  await page.context().close();
});

test('studies are exported, directly or after the deployment has prepared the file', async () => {
  const search = await server.import('To be exported', [text('a.ris', 'TY  - JOUR\nTI  - Nowhere else\nER  - \n')]);
  const page = await open(server, `#/searches/${search}/studies`);
  await heading(page, 'Studies');
  const button = page.getByRole('button', { name: 'Export', exact: true });
  const saved = async () => {
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    return (await readFile(await download.path(), 'utf8')).trim().split('\n').map((line) => JSON.parse(line).id);
  };
  await page.getByLabel('Export for').selectOption('JSON lines');
  const all = await saved();
  assert.equal(all[0], '0-1');

  const warning = page.getByText('Do not open this file in a spreadsheet');
  for (const [format, isWarned] of [['Rayyan', true], ['CSV', false], ['ASReview', true], ['Excel workbook', false]]) {
    await page.getByLabel('Export for').selectOption(format);
    assert.equal(await warning.count(), isWarned ? 1 : 0, format);
  }
  await page.getByLabel('Export for').selectOption('Covidence');
  await page.getByRole('combobox', { name: 'Duplicates' }).selectOption('Without duplicates');
  await page.locator('.study a').first().waitFor();
  await assertScreen(page, 'the export options');
  const [ris] = await Promise.all([page.waitForEvent('download'), button.click()]);
  assert.equal(ris.suggestedFilename(), 'To-be-exported-studies.ris');
  assert.match(await readFile(await ris.path(), 'utf8'), /^TY {2}- [A-Z]+\r\nID {2}- /);
  await page.getByLabel('Export for').selectOption('JSON lines');
  await page.getByRole('combobox', { name: 'Duplicates' }).selectOption('All studies');

  // A Lambda function first responds that the export is being made, then with the address of the file.
  let polls = 0;
  const view = (state, url) => ({ contentType: 'application/json', body: JSON.stringify({ export_id: search, search_id: search, state, url, expires_at: null, size_bytes: null }) });
  await page.route('**/exports', (route) => route.fulfill({ status: 202, ...view('being_made', null) }));
  await page.route('**/exports/*', (route) => {
    polls += 1;
    return route.fulfill({ status: 200, ...(polls === 1 ? view('being_made', null) : view('ready', `${server.searches()}/${search}/export`)) });
  });
  assert.deepEqual(await saved(), all);
  assert.equal(polls, 2);

  await page.route('**/exports', (route) => route.fulfill({ status: 429, contentType: 'application/problem+json', body: JSON.stringify({ type: 'about:blank', title: 'Too Many Requests', status: 429, detail: 'the search has as many exports as it may; they are kept for a day' }) }));
  await button.click();
  await page.getByText('The search has as many exports as it may; they are kept for a day.').waitFor();
  await assertScreen(page, 'a rejected export');
  await page.context().close();
});

test('sources are detected, changed, and counted for PRISMA', async () => {
  const record = 'TY  - JOUR\nTI  - One\nDB  - psyh\nDP  - EBSCOhost\nER  - \n';
  const project = '10000000-0000-4000-8000-000000000001';
  const search = await server.import('Two databases', [text('a.ris', record), text('b.ris', record.replace('One', 'Two').replace('psyh', '=1+1'))], { project });
  const page = await open(server, `#/searches/${search}?review=${project}`);
  await heading(page, 'Two databases');
  const row = page.locator('tr', { hasText: 'a.ris' });
  await row.getByText('From APA PsycInfo (EBSCOhost), detected').waitFor();
  await row.getByRole('button', { name: 'Change' }).click();
  await row.getByLabel('Database or register').fill('MEDLINE');
  await row.getByLabel('Platform').fill('Ovid');
  await row.getByLabel('Date of search').fill('2026-05-17');
  await assertScreen(page, 'a source being entered');
  await page.reload();
  assert.equal(await row.getByLabel('Platform').inputValue(), 'Ovid', 'input survives a reload');
  await row.getByRole('button', { name: 'Save' }).click();
  await row.getByText('From MEDLINE (Ovid), 2026-05-17').waitFor();

  await page.getByLabel('Main').getByRole('link', { name: 'Sources' }).click();
  await heading(page, 'Sources');
  await page.locator('tbody tr', { hasText: 'MEDLINE (Ovid), 2026-05-17' }).waitFor();
  await page.getByText('2 records were identified from 2 databases (=1+1 (EBSCOhost) (n = 1); MEDLINE (Ovid), 2026-05-17 (n = 1)).').waitFor();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as CSV' }).click()]);
  const csv = await readFile(await saved.path(), 'utf8');
  assert.ok(csv.includes("database,'=1+1,EBSCOhost,,yes,1,1,0,1,0,1\r\n") && csv.includes('database,MEDLINE,Ovid,2026-05-17,no,1,1,0,1,0,1\r\n'), csv);
  const [drawn] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as SVG' }).click()]);
  const svg = await readFile(await drawn.path(), 'utf8');
  assert.ok(svg.startsWith('<svg') && svg.includes('Records to be screened (n = 2)'), svg);
  const [picture] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as PNG' }).click()]);
  const png = await readFile(await picture.path());
  assert.deepEqual([...png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  await writeFile(join(SHOTS, 'prisma.png'), png);
  const [table] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as a table for Word' }).click()]);
  const rtf = await readFile(await table.path(), 'latin1');
  assert.ok(rtf.startsWith('{\\rtf1') && rtf.includes('MEDLINE (Ovid) [Databases]\\cell') && rtf.trimEnd().endsWith('}'), rtf);
  await assertScreen(page, 'sources');

  // A source is changed in place for all its files, and the platform of a register is kept.
  const line = page.locator('tbody tr', { hasText: '=1+1' });
  await line.getByRole('button', { name: 'Change' }).click();
  await line.getByLabel('Database or register').fill('clinicaltrials.gov');
  await assertScreen(page, 'a source changed in place');
  await shot(page, 'source-changed');
  await line.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('rowheader', { name: 'Registers' }).waitFor();
  await page.getByText('1 register (ClinicalTrials.gov (EBSCOhost) (n = 1))').waitFor();
  await page.getByLabel('One date of search for all files').fill('2026-06-01');
  await page.getByRole('button', { name: 'Set the date' }).click();
  await page.getByText('MEDLINE (Ovid), 2026-06-01 (n = 1)').first().waitFor();
  await page.getByText('ClinicalTrials.gov (EBSCOhost), 2026-06-01 (n = 1)').first().waitFor();
  await page.context().close();
});

test('studies of one work are shown side by side and decided separately', async () => {
  const project = crypto.randomUUID();
  const record = (n) => `TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - Berg, A${'nna'.slice(0, n)}.\nPY  - 2020\nDO  - 10.1000/zinc\nER  - \n`;
  for (const n of [0, 1, 2, 3]) await server.import(`search ${n}`, [text(`${n}.ris`, record(n))], { project });
  const page = await open(server, `#/duplicates?show=all&review=${project}`);
  const card = page.locator('.pair');
  await card.getByRole('heading', { name: '3 studies repeat one' }).waitFor();
  assert.equal(await card.count(), 1);
  assert.equal(await card.locator('thead th').count(), 4);
  assert.equal(await card.locator('.differs td.other').count(), 3, 'the authors');
  await assertScreen(page, 'a cluster');
  await shot(page, 'cluster');
  await page.setViewportSize({ width: 320, height: 640 });
  await assertScreen(page, 'a narrow cluster');
  await shot(page, 'cluster-narrow');
  await card.getByRole('button', { name: /^Not a duplicate/ }).nth(1).click();
  await card.getByText('Marked as different works. The list is updated in a moment.').waitFor();
  await until('the study is no longer a duplicate', async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return card.getByRole('heading', { name: '2 studies repeat one' }).isVisible();
  });
  await page.context().close();
});

test('pairs that need a decision are decided with the keyboard', async () => {
  const project = crypto.randomUUID();
  const titles = ['Zinc for the common cold in children', 'Iron tablets in tired marathon runners', 'Night shifts and sleep of hospital nurses', 'Early walking after hip fracture surgery', 'Something else entirely'];
  const record = (n, author, doi) => `TY  - JOUR\nTI  - ${titles[n]}\nAU  - ${author}\nPY  - 2020\n${doi ? `DO  - 10.1000/zinc.${n}\n` : ''}ER  - \n`;
  const all = [...Array(4).keys()];
  await server.import('first', [text('a.ris', all.map((n) => record(n, 'Berg, A.', true)).join('\n'))], { project });
  await server.import('second', [text('b.ris', all.map((n) => record(n, 'Berg, Anna', false)).join('\n'))], { project });
  const page = await open(server, `#/duplicates?review=${project}`);
  const pair = page.locator('.pair');
  await pair.first().waitFor();
  assert.equal(await pair.count(), 4);
  assert.match(await page.locator('main').innerText(), /4 pairs need a decision/);
  await page.getByRole('button', { name: 'Decide with the keyboard' }).click();
  const decisions = async () => (await (await fetch(`${server.url}/projects/${project}/duplicates/decisions`)).json()).items.map(({ decision }) => decision);
  await page.keyboard.press('d');
  await until('the first decision is stored', async () => (await decisions()).length === 1);
  await page.keyboard.press('s');
  await until('the second decision is stored', async () => (await decisions()).length === 2);
  await page.keyboard.press('n');
  await page.keyboard.press('k');
  await until('the third decision is stored', async () => (await decisions()).length === 4);
  assert.deepEqual(await decisions(), ['keep', 'same', 'same', 'different'], 'keeping a study also confirms the pair');
  await page.keyboard.press('u');
  await until('the decision is undone', async () => (await decisions())[0] === 'undo');
  await assertScreen(page, 'decided pairs');
  await shot(page, 'duplicates-keyboard');
  // An import of a colleague does not move the list.
  await server.import('third', [text('c.ris', record(4, 'Else, B.', true))], { project });
  await page.getByText('The duplicates have changed.').waitFor();
  assert.equal(await pair.count(), 4);
  await page.getByRole('button', { name: 'Show the current duplicates' }).click();
  await until('decided pairs leave the list', async () => (await pair.count()) < 4);
  await page.context().close();
});

test('decisions made while pairs are loaded do not load them twice', async () => {
  const project = crypto.randomUUID();
  const record = (n, author, doi) => `TY  - JOUR\nTI  - Zinc number ${n} for the common cold in children of region ${n * 7919}\nAU  - ${author}\nPY  - 2020\n${doi ? `DO  - 10.1000/zinc.${n}\n` : ''}ER  - \n`;
  const all = [...Array(40).keys()];
  await server.import('first', [text('a.ris', all.map((n) => record(n, 'Berg, A.', true)).join('\n'))], { project });
  await server.import('second', [text('b.ris', all.map((n) => record(n, 'Berg, Anna', false)).join('\n'))], { project });
  const page = await open(server, `#/duplicates?review=${project}`);
  await page.locator('.pair').first().waitFor();
  const stored = async () => (await (await fetch(`${server.url}/projects/${project}/duplicates/progress`)).json()).decided;
  const held = [];
  let isHolding = true;
  await page.route(/\/duplicates\?.*after=/, (route) => (isHolding ? void held.push(route) : route.continue()));
  await page.getByRole('button', { name: 'Decide with the keyboard' }).click();
  const decide = async (from, to) => {
    for (let n = from; n < to; n += 1) {
      await page.keyboard.press('d');
      await until(`decision ${n} is stored`, async () => (await stored()) === n + 1);
    }
  };
  await decide(0, 24);
  assert.ok(held.length > 1, 'several decisions ask for more pairs');
  isHolding = false;
  for (const route of held) await route.continue();
  await until('the next pairs are shown', async () => (await page.locator('.pair').count()) === 40);
  // A pair that was loaded twice would keep the focus.
  await decide(24, 40);
  await page.context().close();
});

test('reviewers see the decisions of others, and who decided first', async () => {
  const project = crypto.randomUUID();
  const titles = ['Zinc for the common cold in children', 'Iron tablets in tired marathon runners', 'Night shifts and sleep of hospital nurses'];
  const record = (title, author, doi) => `TY  - JOUR\nTI  - ${title}\nAU  - ${author}\nPY  - 2020\n${doi ? `DO  - ${doi}\n` : ''}ER  - \n`;
  await server.import('first', [text('a.ris', titles.map((title, n) => record(title, 'Berg, A.', `10.1000/zinc.${n}`)).join('\n'))], { project });
  await server.import('second', [text('b.ris', titles.map((title) => record(title, 'Berg, Anna')).join('\n'))], { project });
  const [ann, bob] = [await open(server, `#/duplicates?review=${project}`), await open(server, `#/duplicates?review=${project}`)];
  const pairOf = (page, title) => page.locator('.pair', { hasText: title });
  for (const page of [ann, bob]) {
    await pairOf(page, titles[2]).waitFor();
    await page.locator('.connection.on').waitFor();
  }
  await decideIn(pairOf(ann, titles[0]), /^Same work/);
  await pairOf(bob, titles[0]).getByText(/^Marked as the same work by a user, /).waitFor();
  assert.equal(await bob.locator('.pair').count(), 3, 'the list keeps its position');
  await bob.getByText('1 of 3 decided').waitFor();

  // A third reviewer sends a decision while Ann sends hers.
  const late = await open(server, `#/duplicates?review=${project}`);
  await late.route('**/duplicates/decisions', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    // The decision of Ann is stored before that of the third reviewer.
    await decideIn(pairOf(ann, titles[1]), /^Same work/);
    await until('the decision of Ann is stored', async () => (await (await fetch(`${server.url}/projects/${project}/duplicates/decisions`)).json()).items.length === 2);
    return route.continue();
  });
  await pairOf(late, titles[1]).waitFor();
  await pairOf(late, titles[1]).getByRole('button', { name: /^Not a duplicate/ }).click();
  await late.getByText(/^Not saved: a user decided first, .*: marked as the same work\./).waitFor();
  await assertScreen(late, 'a conflict of decisions');
  await shot(late, 'duplicates-conflict');
  for (const page of [ann, bob, late]) await page.context().close();
});

test('many pairs are decided by a rule, and undone together', async () => {
  const project = crypto.randomUUID();
  const titles = Array.from({ length: 30 }, (_, n) => `Effects of intervention ${'abcdefghij'[n % 10]}${'klmnopqrst'[Math.floor(n / 3)]} on the outcome of patients`);
  const record = (title, n) => `TY  - JOUR\nTI  - ${title}\nAU  - Berg${n}, A.\nPY  - 2020\nDO  - 10.1000/many.${n}\nER  - \n`;
  for (const name of ['a.ris', 'b.ris']) await server.import(name, [text(name, titles.map(record).join('\n'))], { project });
  const page = await open(server, `#/duplicates?review=${project}`);
  const accept = page.getByRole('button', { name: 'Accept 30 certain pairs' });
  await accept.waitFor();
  await assertScreen(page, 'certain pairs');
  await accept.click();
  const actions = page.getByRole('list', { name: 'Bulk actions' });
  await actions.getByText('Accepted the certain pairs: 30').waitFor();
  await page.getByText(/30 of \d+ decided/).waitFor();
  await assertScreen(page, 'a bulk action');
  await shot(page, 'duplicates-bulk');
  const counted = async () => (await (await fetch(`${server.url}/projects/${project}/duplicates/progress`)).json());
  await until('the marks follow', async () => (await counted()).certain === 0);
  await actions.getByRole('button', { name: /^Undo/ }).click();
  await actions.getByText(/undone by a user/).waitFor();
  await until('the marks are as before', async () => (await counted()).certain === 30 && (await counted()).decided === 0);
  await page.context().close();
});

test('a reviewer rejects a duplicate and undoes the decision', async () => {
  const record = (author) => `TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - ${author}\nPY  - 2020\nDO  - 10.1000/zinc\nER  - \n`;
  const review = crypto.randomUUID();
  for (const [name, author] of [['first', 'Berg, A.'], ['second', 'Berg, Anna']]) {
    const page = await open(server, `#/new?review=${review}`);
    await page.locator('input[type=file]').setInputFiles([{ name: `${name}.ris`, mimeType: 'text/plain', buffer: Buffer.from(record(author)) }]);
    await page.getByRole('button', { name: 'Import' }).click();
    await heading(page, name);
    await page.locator('.tag', { hasText: 'Done' }).waitFor();
    await page.context().close();
  }
  const page = await open(server, `#/duplicates?show=all&review=${review}`);
  await heading(page, 'Duplicates');
  await page.locator('.pair').waitFor();
  assert.match(await page.locator('.pair thead').innerText(), /first\.ris, first.*second\.ris, second/s);
  await assertScreen(page, 'duplicates of a review');
  await shot(page, 'duplicates-review');
  await page.getByRole('button', { name: /^Not a duplicate/ }).click();
  await page.getByText('Marked as different works. The list is updated in a moment.').waitFor();
  await assertScreen(page, 'a decision');
  await shot(page, 'duplicates-decided');
  await until('the mark is removed', async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return page.getByText('No study of this review repeats another one.').isVisible();
  });
  const decision = page.locator('.decisions li');
  assert.match(await decision.innerText(), /Marked as different works: record 1 of .*\.ris and record 1 of .*\.ris/);
  await decision.getByRole('button', { name: /^Undo/ }).click();
  await until('the mark is restored', async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return page.locator('.pair').isVisible();
  });
  await page.context().close();
});

// The steps are those of docs/page.md.
test('six exports become one file for Covidence', async () => {
  const page = await open(server, '#/reviews');
  await page.getByLabel('New review').fill('Gambling harms');
  await page.getByRole('button', { name: 'Create' }).click();
  await heading(page, 'Imports');
  await page.getByLabel('Main').getByRole('link', { name: 'New import' }).click();
  await heading(page, 'New import');
  await drop(page, ['psycinfo.ris', 'pubmed.nbib', 'same-library/library.ris', 'same-library/library.csv', 'endnote.xml', 'utf-16.ris']);
  await page.getByLabel('One date of search for all files').fill('2026-11-02');
  await page.getByLabel('Name of the import').fill('Searches of November');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'Searches of November');
  await page.locator('.facts .tag', { hasText: 'Done' }).waitFor();
  await page.getByLabel('Main').getByRole('link', { name: 'Duplicates' }).click();
  await page.getByRole('button', { name: /^Accept \d+ certain pairs?$/ }).click();
  await page.getByText(/^Accepted the certain pairs: \d+/).waitFor();
  await page.getByLabel('Main').getByRole('link', { name: 'Sources' }).click();
  await page.getByText(/2026-11-02 \(n = /).first().waitFor();
  const saving = (name) => Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
  await saving('Save as a table for Word');
  await saving('Save as PNG');
  await page.getByLabel('Main').getByRole('link', { name: 'Studies' }).click();
  await page.getByRole('combobox', { name: 'Duplicates' }).selectOption('Without duplicates');
  await page.getByLabel('Export for').selectOption('Covidence');
  const [file] = await saving('Export');
  assert.match(file.suggestedFilename(), /Gambling.*\.ris$/i);
  assert.ok((await readFile(await file.path(), 'utf8')).includes('TY  - '));
  await page.context().close();
});
