/** Empty, loading, failed and offline screens, operation by keyboard alone, and hostile input. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { browser, closeBrowser, heading, assertScreen, open, PROJECT, sample, Server, shot, text, until } from './harness.mjs';

const SEARCHES = new RegExp(`/projects/${PROJECT}/searches`);
const problem = { status: 503, contentType: 'application/problem+json', body: JSON.stringify({ type: 'about:blank', title: 'Service Unavailable', status: 503, detail: 'the service cannot answer at the moment; please try again' }) };
const HOSTILE = '<img src=x onerror=alert(1)> \u202Egnp.exe';
const TITLE = '<script>alert("title")</script> & <b>bold</b>';
const RIS = `TY  - JOUR\nTI  - ${TITLE}\nAU  - <i>Mallory</i>, M.\nAB  - <svg onload=alert(2)>\nPY  - 2021\nER  - \n`;

let server;
let id;
let hostile;

before(async () => {
  server = await Server.start();
  id = await server.import('Gambling harms', [sample('psycinfo.ris'), sample('broken.ris')]);
  hostile = await server.import(HOSTILE, [text(`${HOSTILE}.ris`, RIS)]);
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

test('empty screens name the next step', async () => {
  const empty = await Server.start();
  try {
    const clean = await empty.import('Clean', [sample('utf-16.ris')]);
    const elsewhere = '?review=8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77';
    for (const [name, hash, says] of [
      ['searches', `#/searches${elsewhere}`, 'Import your first files'],
      ['filtered', '#/searches?text=nothing+like+it', 'show all imports'],
      ['not-imported', `#/searches/${clean}/unread`, 'All records were imported'],
      ['decisions', `#/searches/${clean}/duplicates`, 'No pair needs a decision'],
      ['duplicates', `#/searches/${clean}/duplicates?show=all`, 'No duplicates'],
      ['studies', `#/searches/${clean}/studies?text=zzz`, 'Show all studies'],
      ['failures', '#/failures', 'No failures'],
      ['all', '#/all?state=Uploading', 'Show all imports'],
      ['new', '#/new', 'Choose at least one file'],
      ['sources', `#/sources${elsewhere}`, 'No records yet'],
    ]) {
      const page = await open(empty, hash);
      await page.getByText(says).first().waitFor();
      await assertScreen(page, `empty ${name}`);
      await shot(page, `empty-${name}`);
      await page.context().close();
    }
  } finally {
    await empty.end();
  }
});

test('slow loads show a skeleton, failed loads an error and a retry button', async () => {
  const page = await open(server, '#/health');
  await heading(page, 'Health');
  let answer;
  await page.route(SEARCHES, async (route) => { await new Promise((done) => (answer = done)); await route.continue(); });
  await page.getByRole('link', { name: 'Imports', exact: true }).click();
  await page.getByRole('status', { name: 'Loading' }).waitFor();
  await shot(page, 'loading');
  await assertScreen(page, 'loading');
  answer();
  await page.getByRole('link', { name: 'Gambling harms' }).first().waitFor();
  await page.unroute(SEARCHES);

  await page.route(SEARCHES, (route) => route.fulfill(problem));
  await page.getByLabel('State').selectOption('Completed');
  const alert = page.getByRole('alert');
  await alert.getByText('The service cannot answer at the moment; please try again.').waitFor();
  assert.ok(await page.getByRole('link', { name: 'Gambling harms' }).first().isVisible(), 'the old rows stay');
  await alert.getByText(/The data below was loaded at/).waitFor();
  await shot(page, 'failing');
  await assertScreen(page, 'failing');
  await page.unroute(SEARCHES);
  await alert.getByRole('button', { name: 'Try again' }).click();
  await alert.waitFor({ state: 'detached' });
});

test('screens show a skeleton while loading and keep their data offline', async () => {
  for (const [name, hash, what] of [
    ['searches', '#/searches', 'tbody tr'],
    ['search', `#/searches/${id}`, '.balance'],
    ['not-imported', `#/searches/${id}/unread`, '.record'],
    ['duplicates', '#/duplicates', '.empty'],
    ['studies', `#/searches/${id}/studies`, '.study a'],
    ['timeline', `#/searches/${id}/timeline`, '.states'],
    ['sources', '#/sources', '.prisma'],
    ['all', '#/all', 'tbody tr'],
    ['failures', '#/failures', '.empty'],
    ['health', '#/health', '.stats'],
  ]) {
    const page = await open(server, '#/new');
    await page.locator('.connection.on').waitFor();
    let answer;
    const answered = new Promise((done) => (answer = done));
    // Ignores requests that are still open when the page is closed.
    await page.route(/\/(projects|admin)\//, (route) => answered.then(() => route.continue()).catch(() => undefined));
    await page.evaluate((hash) => { location.hash = hash; }, hash);
    await page.getByRole('status', { name: 'Loading' }).waitFor().catch((error) => assert.fail(`${name}: ${error.message}`));
    await assertScreen(page, `loading ${name}`);
    await shot(page, `loading-${name}`);
    answer();
    await page.locator(what).first().waitFor();
    await page.context().setOffline(true);
    await page.getByText('Not connected: the displayed data may be out of date').waitFor();
    assert.ok(await page.locator(what).first().isVisible(), `${name} stays`);
    await assertScreen(page, `offline ${name}`);
    await shot(page, `offline-${name}`);
    await page.context().close();
  }
});

test('screens show an error for data that cannot be loaded', async () => {
  for (const [hash, route] of [
    ['', SEARCHES],
    [`#/searches/${id}`, SEARCHES],
    [`#/searches/${id}/unread`, SEARCHES],
    [`#/searches/${id}/duplicates`, SEARCHES],
    [`#/searches/${id}/studies`, SEARCHES],
    [`#/searches/${id}/timeline`, SEARCHES],
    ['#/sources', '**/prisma'],
    ['#/all', '**/admin/searches**'],
    ['#/failures', '**/admin/**'],
    ['#/health', '**/admin/health'],
  ]) {
    // The stream begins with the current imports. If they arrived after the error, they would replace it.
    const page = await open(server, '#/new', { blocked: '**/events' });
    await heading(page, 'New import');
    await page.route(route, (each) => each.fulfill(problem));
    await page.evaluate((hash) => { location.hash = hash; }, hash || '#/searches');
    await page.getByRole('alert').getByText('The service cannot answer at the moment').first().waitFor().catch((error) => assert.fail(`${hash}: ${error.message}`));
    await assertScreen(page, `failing ${hash}`);
    await page.unroute(route);
    await page.getByRole('button', { name: 'Try again' }).first().click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await page.context().close();
  }
});

test('a lost connection is reported and the data stays', async () => {
  const page = await open(server);
  await page.getByRole('link', { name: 'Gambling harms', exact: true }).waitFor();
  await page.locator('.connection.on').waitFor();
  await page.context().setOffline(true);
  await page.getByText('Not connected: the displayed data may be out of date').waitFor();
  assert.ok(await page.getByRole('link', { name: 'Gambling harms', exact: true }).isVisible());
  await shot(page, 'offline');
  await assertScreen(page, 'offline');
  await page.context().setOffline(false);
  await page.locator('.connection.on').waitFor();
});

test('the keyboard alone reaches everything', async () => {
  const page = await open(server);
  await page.getByRole('link', { name: 'Gambling harms', exact: true }).waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.tagName);
  const tabTo = async (what) => {
    for (let i = 0; i < 60; i += 1) {
      await page.keyboard.press('Tab');
      if (what.test(await focused())) return;
    }
    assert.fail(`Tab does not reach ${what}`);
  };
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Skip to content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await tabTo(/^Gambling harms$/);
  await page.keyboard.press('Enter');
  await heading(page, 'Gambling harms');
  await until('the heading has the focus', async () => (await focused()) === 'Gambling harms');
  await tabTo(/^Delete$/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  assert.equal(await focused(), 'Keep the import', 'the safe choice has the focus');
  await assertScreen(page, 'a dialog');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.evaluate((id) => { location.hash = `#/searches/${id}/studies`; }, id);
  await page.locator('.study a').first().waitFor();
  await tabTo(/^Evening screen use/);
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Raw record' }).waitFor();
  await shot(page, 'study');
  await assertScreen(page, 'a study');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
});

test('filters are kept in the address', async () => {
  const page = await open(server);
  await page.getByLabel('Name').fill('gambling');
  await page.waitForURL(/text=gambling/);
  await page.getByLabel('State').selectOption('Completed');
  await page.waitForURL(/text=gambling&state=Completed/);
  await page.reload();
  await page.getByRole('link', { name: 'Gambling harms', exact: true }).waitFor();
  assert.equal(await page.getByLabel('Name').inputValue(), 'gambling');
  assert.equal(await page.locator('tbody tr').count(), 1);
});

test('a late response for an earlier filter does not replace the list', async () => {
  for (const [hash, requests] of [['#/all', /admin.searches/], ['#/searches', SEARCHES]]) {
    const page = await open(server, hash);
    const link = page.getByRole('link', { name: 'Gambling harms', exact: true });
    await link.waitFor();
    let answer;
    await page.route(requests, (route) => (route.request().url().includes('state=Uploading') ? void (answer = () => route.continue()) : route.continue()));
    await page.getByLabel('State').selectOption('Uploading');
    await until('the response is held back', () => answer);
    const [current, late] = ['Completed', 'Uploading'].map((state) => page.waitForResponse((response) => response.url().includes(`state=${state}`)));
    await page.getByLabel('State').selectOption('Completed');
    await (await current).finished();
    await answer();
    await (await late).finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await assertScreen(page, `a late response ${hash}`);
    assert.ok(await link.isVisible(), hash);
    await page.context().close();
  }
});

test('operators see the imports of all reviews with links into each review', async () => {
  const page = await open(server, '#/health');
  const review = '8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77';
  const asked = [];
  await page.route(/admin.searches/, (route) => {
    asked.push(new URL(route.request().url()).searchParams.get('older_than'));
    const item = { search_id: id, project_id: review, name: 'Stuck', state: 'Parsing', created_at: new Date(Date.now() - 7_200_000).toISOString(), completed_at: null, reason: null, studies: 0, files: [] };
    return route.fulfill({ json: { items: [item], next: null } });
  });
  await page.getByRole('link', { name: 'Operations' }).click();
  await page.getByLabel('Age').selectOption('3600');
  await page.waitForURL(/older_than=3600/);
  await until('the filter is requested', () => asked.includes('3600'));
  await page.getByText('2 hours').waitFor();
  await assertScreen(page, 'imports of all reviews');
  assert.match(await page.getByRole('link', { name: 'Stuck', exact: true }).getAttribute('href'), new RegExp(`review=${review}`));
  await page.context().close();
});

test('hostile names, titles and abstracts are shown as text', async () => {
  const page = await open(server);
  const asked = [];
  page.on('dialog', (dialog) => { asked.push(dialog.message()); void dialog.dismiss(); });
  const name = '<img src=x onerror=alert(1)> \\u{202e}gnp.exe';
  await page.getByRole('link', { name, exact: true }).click();
  await heading(page, name);
  await page.getByText(`${name}.ris`, { exact: true }).waitFor();
  await assertScreen(page, 'hostile import');
  await page.goto(`${server.url}/#/searches/${hostile}/studies`);
  await page.locator('.study a', { hasText: TITLE }).click();
  await page.getByRole('region', { name: 'Raw record' }).waitFor();
  await page.getByRole('definition').getByText('<svg onload=alert(2)>').waitFor();
  await assertScreen(page, 'hostile study');
  assert.deepEqual(asked, []);
});

test('foreign pages can link to the page but not write', async () => {
  const other = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end(`<a href="${server.url}/">there</a>`));
  await new Promise((done) => other.listen(0, '127.0.0.1', done));
  try {
    const context = await (await browser()).newContext();
    const page = await context.newPage();
    await page.goto(`http://localhost:${other.address().port}/`);
    const before = (await (await fetch(server.searches())).json()).items.length;
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      await page.evaluate(([url, type]) => fetch(url, { method: 'POST', mode: 'no-cors', headers: { 'content-type': type }, body: '{"name":"x","files":[{"name":"a.ris","size_bytes":1}]}' }).catch(() => undefined), [server.searches(), type]);
    }
    assert.equal((await (await fetch(server.searches())).json()).items.length, before);
    await page.getByRole('link').click();
    await heading(page, 'Imports');
    await context.close();
  } finally {
    other.close();
  }
});

test('requests for a foreign host are rejected', async () => {
  const { request } = await import('node:http');
  const status = await new Promise((done) => request(`${server.url}/`, { headers: { host: 'attacker.test' } }, (answer) => done(answer.resume().statusCode)).end());
  assert.equal(status, 421);
});
