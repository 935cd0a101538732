/** Uploads, corrections and cancellations of imports. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { assertScreen, browser, closeBrowser, heading, open, openIn, sample, SAMPLES, Server, shot, text, zip } from './harness.mjs';

let server;

before(async () => {
  server = await Server.start();
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

const drop = (page, names) => page.locator('input[type=file]').setInputFiles(names.map((name) => join(SAMPLES, name)));
/** Waits until the page has created its database of chosen files. Opening it earlier would create an empty one. */
const databaseCreated = (page) => page.waitForFunction(() => indexedDB.databases().then((all) => all.some(({ name }) => name === 'search-import')));
/** Waits until the page has stored the chosen files of a review, which a reload would lose before. */
const filesStored = async (page, project) => {
  await databaseCreated(page);
  await page.waitForFunction((project) => new Promise((done) => {
    const opening = indexedDB.open('search-import', 1);
    opening.onsuccess = () => {
      const counting = opening.result.transaction('uploads').objectStore('uploads').count(project);
      counting.onsuccess = () => (opening.result.close(), done(counting.result > 0));
    };
  }), project);
};

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

test('a request that may still take effect keeps its key until the user starts over', async () => {
  const page = await open(server, '#/new');
  const keys = [];
  await page.route('**/searches', (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length === 3) return route.continue();
    return route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ type: 'about:blank', title: 'Conflict', status: 409, detail: 'try again in a few minutes, or use a new key' }) });
  });
  const fail = async (button) => {
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('alert').getByText('An earlier attempt to import these files may still succeed.').waitFor();
  };
  await drop(page, ['psycinfo.ris']);
  await page.getByLabel('Name of the import').fill('Not stored yet');
  await fail('Import');
  await assertScreen(page, 'an upload that may still succeed');
  await shot(page, 'may-still-succeed');
  await fail('Continue the upload');
  assert.equal(new Set(keys).size, 1, 'the same request is repeated');
  await page.getByRole('button', { name: 'Start over' }).click();
  await drop(page, ['psycinfo.ris']);
  await page.getByLabel('Name of the import').fill('With a new key');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'With a new key');
  assert.equal(new Set(keys).size, 2, 'another upload has another key');
  await page.context().close();
});

/** Cancels an import that waits for its files, and waits until it has ended. */
async function cancel(project, found) {
  const { items } = await (await fetch(server.searches(project))).json();
  const id = items.find(found).search_id;
  assert.equal((await fetch(`${server.searches(project)}/${id}/cancel`, { method: 'POST' })).status, 202);
  await server.ended(id, project);
}

test('the files of an import that ended without them are kept, and imported under a new key', async () => {
  const project = crypto.randomUUID();
  const page = await open(server, `#/new?review=${project}`);
  const keys = new Set();
  page.on('request', (request) => { const key = request.headers()['idempotency-key']; if (key) keys.add(key); });
  await page.route('**/uploads', (route) => route.abort('connectionreset'));
  await drop(page, ['psycinfo.ris']);
  await page.getByLabel('Name of the import').fill('Ended early');
  await page.getByRole('button', { name: 'Import' }).click();
  await page.getByText(/could not be uploaded\. The uploaded files are kept/).waitFor();
  await page.unroute('**/uploads');
  await cancel(project, () => true);
  await page.getByRole('button', { name: 'Continue the upload' }).click();
  await page.getByRole('alert').getByText('The import ended before all files arrived').waitFor();
  await assertScreen(page, 'an upload whose import has ended');
  await page.reload();
  await page.locator('.files li', { hasText: 'psycinfo.ris' }).waitFor();
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'Ended early');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  assert.equal(keys.size, 2, [...keys].join());
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

test('a file of a failed import is reported if it was read', async () => {
  const project = crypto.randomUUID();
  const unread = text('notes.pdf', '%PDF-1.4 no references');
  await server.import('Read in part', [sample('psycinfo.ris'), unread], { project });
  const cancelled = await server.announce('Cancelled', project);
  assert.equal((await fetch(`${server.searches(project)}/${cancelled}/cancel`, { method: 'POST' })).status, 202);
  await server.ended(cancelled, project);
  const page = await open(server, `#/new?review=${project}`);
  const { name, bytes } = sample('psycinfo.ris');
  const files = [{ name, buffer: bytes }, { name: unread.name, buffer: unread.bytes }, { name: 'later.ris', buffer: Buffer.alloc(10, ' ') }];
  await page.locator('input[type=file]').setInputFiles(files.map((file) => ({ ...file, mimeType: 'text/plain' })));
  await page.locator('.files li', { hasText: name }).getByText('was imported before: Read in part').waitFor();
  assert.equal(await page.getByText('was imported before').count(), 1);
  await page.context().close();
});

test('a file that is chosen twice is reported', async () => {
  const page = await open(server, `#/new?review=${crypto.randomUUID()}`);
  const file = (name, title) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(`TY  - JOUR\nTI  - ${title}\nER  - \n`) });
  const note = page.getByText('Another chosen file has this name and size.');
  await page.locator('input[type=file]').setInputFiles([file('export.ris', 'One'), file('other.ris', 'One'), file('export.ris', 'Of another size'), file('export.ris', 'One')]);
  await page.locator('.files li').nth(3).filter({ has: note }).waitFor();
  assert.equal(await note.count(), 1, 'only the second one of the same name and size');
  await assertScreen(page, 'a file that is chosen twice');
  await shot(page, 'chosen-twice');
  await page.getByRole('button', { name: 'Remove export.ris' }).first().click();
  await note.waitFor({ state: 'detached' });
  await page.context().close();
});

test('sizes of small files are exact', async () => {
  const page = await open(server, `#/new?review=${crypto.randomUUID()}`);
  const sizes = [[1_023, '1,023 bytes'], [1_536, '1.5 KiB'], [1_046_528, '1,022 KiB']];
  const files = sizes.map(([length]) => ({ name: `${length}.ris`, mimeType: 'text/plain', buffer: Buffer.alloc(length, ' ') }));
  await page.locator('input[type=file]').setInputFiles(files);
  for (const [length, size] of sizes) await page.locator('.files li', { hasText: `${length}.ris` }).getByText(size, { exact: true }).waitFor();
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

test('two tabs of a review keep their own files', async () => {
  const project = crypto.randomUUID();
  const hash = `#/new?review=${project}`;
  const context = await (await browser()).newContext({ locale: 'en-GB' });
  const [first, second] = [await openIn(context, server, hash), await openIn(context, server, hash)];
  const note = second.getByText('These files are not stored in this browser.');
  const file = (page, name) => page.locator('.files li', { hasText: name });
  // The second tab has looked for stored files before the first one stores any.
  await heading(second, 'New import');
  await databaseCreated(second);
  await second.evaluate(() => new Promise((done) => { indexedDB.open('search-import', 1).onsuccess = ({ target }) => done(target.result.close()); }));
  await drop(first, ['psycinfo.ris']);
  await filesStored(first, project);
  await first.reload();
  await file(first, 'psycinfo.ris').waitFor();
  await drop(second, ['utf-16.ris']);
  await note.waitFor();
  await assertScreen(second, 'files that are not stored');
  await first.reload();
  await file(first, 'psycinfo.ris').waitFor();
  await first.getByRole('button', { name: 'Import' }).click();
  await heading(first, 'psycinfo');
  await file(second, 'utf-16.ris').getByText('Enter the source').click();
  await file(second, 'utf-16.ris').getByLabel('Database or register').fill('Embase');
  await note.waitFor({ state: 'detached' });
  await second.reload();
  await file(second, 'utf-16.ris').getByText('Source entered').waitFor();
  await context.close();
});

test('an upload is continued in another tab, with each file under its name', async () => {
  const names = ['psycinfo.ris', 'pubmed.nbib', 'embase.csv'];
  const filesOf = async (project, id) => (await (await fetch(`${server.searches(project)}/${id}`)).json()).files.map(({ name, outcome }) => [name, outcome.format, outcome.records]);
  const project = crypto.randomUUID();
  const expected = await filesOf(project, await server.import('Expected', names.map(sample), { project }));
  for (const isStored of [true, false]) {
    const project = crypto.randomUUID();
    const context = await (await browser()).newContext({ locale: 'en-GB' });
    const first = await openIn(context, server, `#/new?review=${project}`);
    let uploads = 0;
    await first.route('**/uploads', (route) => { uploads += 1; return uploads === 1 ? route.continue() : route.abort('connectionreset'); });
    await drop(first, names);
    await filesStored(first, project);
    const second = await openIn(context, server, `#/new?review=${project}`);
    await second.locator('.files li').nth(2).waitFor();
    await first.getByRole('button', { name: 'Import' }).click();
    await first.getByText(/could not be uploaded\. The uploaded files are kept/).waitFor();
    await first.close();
    await second.getByText('Enter the source').first().click();
    await second.getByLabel('Database or register').first().fill('Embase');
    await second.getByText('These files are not stored in this browser.').waitFor();
    if (!isStored) await second.evaluate(() => new Promise((done) => (indexedDB.deleteDatabase('search-import').onsuccess = done)));
    await second.getByRole('button', { name: 'Import' }).click();
    await heading(second, 'psycinfo');
    const { items } = await (await fetch(server.searches(project))).json();
    assert.equal(items.length, 1);
    await server.ended(items[0].search_id, project);
    assert.deepEqual(await filesOf(project, items[0].search_id), expected);
    await context.close();
  }
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

test('corrections in several files of an archive are imported separately', async () => {
  const project = crypto.randomUUID();
  const bad = (title) => `TY  - JOUR\nTI  - ${title}\nER  - \n\nTY  - JOUR\nTI  - Bad \u0001\u0001\u0001\u0001\u0001 title\nER  - \n`;
  const id = await server.import('An archive', [zip('both.zip', { 'a.ris': bad('First'), 'b.ris': bad('Second') })], { project });
  const page = await open(server, `#/searches/${id}/unread?review=${project}`);
  const boxes = page.getByLabel('Record in the file');
  for (const [n, title] of ['Third', 'Fourth'].entries()) {
    await page.getByRole('button', { name: /Show and correct/ }).first().click();
    await boxes.nth(n).fill(`TY  - JOUR\nTI  - ${title}\nER  - \n`);
  }
  await page.getByRole('button', { name: 'Import 2 corrected records' }).click();
  await page.locator('.tag', { hasText: 'Corrected' }).nth(1).waitFor();
  const { items } = await (await fetch(server.searches(project))).json();
  const repairs = items.filter((search) => search.repairs === id);
  assert.equal(repairs.length, 2, 'each file of the archive is repaired by an import of its own');
  for (const { search_id } of repairs) assert.equal((await server.ended(search_id, project)).studies, 1);
  await page.context().close();
});

test('corrections of many records survive a reload, and those of a colleague', async () => {
  const project = crypto.randomUUID();
  const sixty = (title) => [...Array(60).keys()].map((n) => `TY  - JOUR\nTI  - ${title} number ${n}\nER  - \n`).join('\n');
  const id = await server.import('Many to correct', [text('bad.ris', `${sixty('Good')}\n${sixty('Bad \u0001\u0001\u0001\u0001\u0001')}`)], { project });
  const [ann, bob] = [await open(server, `#/searches/${id}/unread?review=${project}`), await open(server, `#/searches/${id}/unread?review=${project}`)];
  const record = (page, n) => page.locator('.record').nth(n);
  const correct = async (page, n) => {
    await record(page, n).getByRole('button', { name: /Show and correct/ }).click();
    await record(page, n).getByLabel('Record in the file').fill(`TY  - JOUR\nTI  - Corrected title ${n}\nER  - \n`);
  };
  const send = (page, text) => page.getByRole('button', { name: `Import ${text}` });
  await correct(ann, 2);
  await ann.getByRole('button', { name: 'Show more' }).click();
  await correct(ann, 55);
  await ann.reload();
  await send(ann, '1 corrected record').waitFor();
  await ann.getByRole('button', { name: 'Show more' }).click();
  await send(ann, '2 corrected records').waitFor();
  assert.match(await record(ann, 55).getByLabel('Record in the file').inputValue(), /Corrected title 55/);
  await ann.locator('.connection.on').waitFor();
  await correct(bob, 2);
  await send(bob, '1 corrected record').click();
  await record(ann, 2).locator('.tag', { hasText: 'Corrected' }).waitFor();
  assert.equal(await ann.locator('.record').count(), 60, 'the list keeps its length');
  await send(ann, '1 corrected record').click();
  await record(ann, 55).locator('.tag', { hasText: 'Corrected' }).waitFor();
  for (const page of [ann, bob]) await page.context().close();
});

test('a correction survives a repair that ended without it', async () => {
  const project = crypto.randomUUID();
  const id = await server.import('To be corrected twice', [sample('broken.ris')], { project });
  const page = await open(server, `#/searches/${id}/unread?review=${project}`);
  await page.getByRole('button', { name: /Show and correct/ }).click();
  const box = page.getByLabel('Record in the file');
  await box.fill('TY  - JOUR\nTI  - Corrected by hand\nER  - \n');
  await page.route('**/uploads', (route) => route.abort('connectionreset'));
  const send = page.getByRole('button', { name: 'Import 1 corrected record' });
  await send.click();
  await page.getByRole('alert').waitFor();
  await page.unroute('**/uploads');
  await cancel(project, (search) => search.repairs === id);
  await send.click();
  await page.getByRole('alert').getByText('An earlier attempt ended before all files arrived.').waitFor();
  assert.match(await box.inputValue(), /Corrected by hand/);
  await send.click();
  await page.locator('.tag', { hasText: 'Corrected' }).waitFor();
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

test('an interrupted upload of a correction or a replacement is continued', async () => {
  const project = crypto.randomUUID();
  const id = await server.import('Interrupted repairs', [sample('broken.ris'), { name: 'notes.pdf', bytes: Buffer.from('%PDF-1.4 no references') }], { project });
  const page = await open(server, `#/searches/${id}/unread?review=${project}`);
  await page.getByRole('button', { name: /Show and correct/ }).click();
  await page.getByLabel('Record in the file').fill('TY  - JOUR\nTI  - Corrected by hand\nER  - \n');
  await page.route('**/uploads', (route) => route.abort('connectionreset'));
  await page.getByRole('button', { name: 'Import 1 corrected record' }).click();
  await page.getByRole('alert').getByText('Continue the upload when the server is back.').waitFor();
  await page.getByText('An upload of corrected records was interrupted.').waitFor();
  await assertScreen(page, 'an interrupted correction');
  await shot(page, 'correction-interrupted');
  await page.unroute('**/uploads');
  await page.reload();
  await page.locator('.tag', { hasText: 'Being corrected' }).waitFor();
  await page.getByRole('button', { name: 'Continue the upload' }).click();
  await page.locator('.tag.good', { hasText: 'Corrected' }).waitFor();

  await page.getByRole('link', { name: 'Overview' }).click();
  await page.route('**/uploads', (route) => route.abort('connectionreset'));
  const chooser = page.locator('tbody tr', { hasText: 'notes.pdf' }).locator('input[type=file]');
  await chooser.setInputFiles(join(SAMPLES, 'psycinfo.ris'));
  const unsent = page.getByText('Continue the upload of psycinfo.ris');
  await unsent.waitFor();
  await page.unroute('**/uploads');
  await page.reload();
  await unsent.waitFor();
  await chooser.setInputFiles(join(SAMPLES, 'utf-16.ris'));
  await page.getByRole('alert').getByText('Choose this file again.').waitFor();
  await assertScreen(page, 'an interrupted replacement');
  await shot(page, 'replacement-interrupted');
  await chooser.setInputFiles(join(SAMPLES, 'psycinfo.ris'));
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
