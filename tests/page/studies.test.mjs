/** Studies of reviews: sources, duplicates and exports. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assertScreen, closeBrowser, heading, open, openIn, SAMPLES, Server, shot, SHOTS, sql, text, until } from './harness.mjs';

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

test('an export contains what the filter shows, with corrected records', async () => {
  const project = crypto.randomUUID();
  const review = await fetch(`${server.url}/projects/${project}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: `Exported ${project}` }) });
  assert.equal(review.status, 200);
  const bad = 'TY  - JOUR\nTI  - Kept\nAB  - Melatonin at night\nER  - \n\nTY  - JOUR\nTI  - Bad \u0001\u0001\u0001\u0001\u0001\u0001 title\nER  - \n';
  const search = await server.import('With a mistake', [text('a.ris', bad)], { project });
  await server.import('Another import', [text('b.ris', 'TY  - JOUR\nTI  - Elsewhere\nER  - \n')], { project });
  const page = await open(server, `#/searches/${search}/studies?review=${project}`);
  await page.getByText('1 study', { exact: true }).waitFor();
  const correcting = await openIn(page.context(), server, `#/searches/${search}/unread?review=${project}`);
  await correcting.getByRole('button', { name: /Show and correct/ }).click();
  await correcting.getByLabel('Record in the file').fill('TY  - JOUR\nTI  - Corrected\nER  - \n');
  await correcting.getByRole('button', { name: 'Import 1 corrected record' }).click();
  await correcting.locator('.tag', { hasText: 'Corrected' }).waitFor();
  // The open list offers the corrected study as soon as it is stored.
  await page.getByRole('button', { name: 'Show the current studies' }).click();
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

test('a screen that is left while it loads changes no other one', async () => {
  const record = 'TY  - JOUR\nTI  - Left while it was loading\nAU  - Roe, A\nPY  - 2001\nER  - \n';
  const search = await server.import('Left', [text('a.ris', `${record}\n${record}`)]);
  const page = await open(server, '#/');
  const warnings = [];
  page.on('console', (line) => ['warning', 'error'].includes(line.type()) && warnings.push(line.text()));
  const leave = async () => {
    await page.evaluate(() => (location.hash = '#/sources'));
    await heading(page, 'Sources');
  };
  // The screen is left before one answer, which arrives on the next one. It makes the screen load nothing more.
  for (const [hash, awaited, further] of [
    [`#/searches/${search}/studies`, `/searches/${search}`, '/studies'],
    [`#/searches/${search}/duplicates`, `/searches/${search}/duplicates`, `/searches/${search}`],
  ]) {
    let answer;
    const asked = new Promise((done) => {
      const hold = (route) => {
        answer = () => route.continue();
        done();
      };
      void page.route((url) => url.pathname.endsWith(awaited), hold, { times: 1 });
    });
    await page.evaluate((hash) => (location.hash = hash), hash);
    await asked;
    await leave();
    const late = [];
    const note = (request) => new URL(request.url()).pathname.endsWith(further) && late.push(request.url());
    const [answered] = await Promise.all([page.waitForResponse((response) => new URL(response.url()).pathname.endsWith(awaited)), answer()]);
    page.on('request', note);
    await answered.finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    page.off('request', note);
    assert.deepEqual([late, warnings], [[], []], hash);
  }
  await page.context().close();
});

test('a text that is typed before a screen is left filters no other one', async () => {
  const search = await server.import('Typed', [text('a.ris', 'TY  - JOUR\nTI  - Typed\nER  - \n')]);
  const page = await open(server, '#/');
  await page.clock.install();
  for (const [hash, label] of [['#/', 'Name'], [`#/searches/${search}/studies`, 'Text']]) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await page.getByRole('searchbox', { name: label }).fill('typed');
    await page.evaluate(() => (location.hash = '#/sources'));
    await heading(page, 'Sources');
    await page.clock.runFor(10_000);
    assert.equal(new URL(page.url()).hash, '#/sources');
  }
  await page.context().close();
});

test('a damaged study is named, and the others are listed', async () => {
  const damaged = await Server.start();
  const record = (title) => `TY  - JOUR\nTI  - ${title}\nER  - \n\n`;
  const search = await damaged.import('Damaged', [text('disk.ris', ['First', 'Second', 'Third'].map(record).join(''))]);
  await damaged.kill();
  sql(damaged.folder, "update study set study = '{', packed = null where record = ?", [[2]]);
  const again = await damaged.restart();
  const page = await open(again, `#/searches/${search}/studies`);
  await page.getByText('1 study is damaged and not shown: record 2 of disk.ris').waitFor();
  for (const title of ['First', 'Third']) await page.getByText(title, { exact: true }).waitFor();
  assert.equal(await page.getByText('Second', { exact: true }).count(), 0);
  await assertScreen(page, 'a damaged study');
  await shot(page, 'studies-damaged');
  await page.context().close();
  await again.end();
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
  await page.getByLabel('Complete with duplicates').check();
  await page.getByText('including duplicates. Each study has the most complete values').waitFor();
  await page.getByLabel('Complete with duplicates').uncheck();
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

test('a review with too many imports to be counted is listed', async () => {
  const project = crypto.randomUUID();
  const record = (n) => `TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - Berg, A${'nna'.slice(0, n)}.\nPY  - 2020\nDO  - 10.1000/zinc\nER  - \n`;
  for (const n of [0, 1]) await server.import(`search ${n}`, [text(`${n}.ris`, record(n))], { project });
  const page = await open(server, `#/new?review=${project}`);
  const detail = 'the review has more than 1,000 imports';
  await page.route(/\/(prisma|progress)$/, (route) => route.fulfill({ status: 422, contentType: 'application/problem+json', body: JSON.stringify({ type: 'about:blank', title: 'Unprocessable', status: 422, detail }) }));
  const main = page.getByRole('navigation', { name: 'Main' });
  await main.getByRole('link', { name: 'Studies' }).click();
  await page.getByText('2 studies').waitFor();
  assert.equal(await page.locator('.study a').count(), 2);
  await assertScreen(page, 'studies without counts');
  await main.getByRole('link', { name: 'Duplicates' }).click();
  await page.getByLabel('Show').selectOption('all');
  await page.locator('.pair').waitFor();
  await page.getByRole('button', { name: 'Apply the rule' }).waitFor();
  await assertScreen(page, 'duplicates without counts');
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

test('studies show how certain their duplicates are', async () => {
  const project = crypto.randomUUID();
  // Only a title is known of the last study.
  const records = (author) => `TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - ${author}\nPY  - 2020\nDO  - 10.1000/zinc\nER  - \n\nTY  - JOUR\nTI  - Iron tablets in tired marathon runners\nER  - \n`;
  await server.import('first', [text('a.ris', records('Berg, A.'))], { project });
  const search = await server.import('second', [text('b.ris', records('Berg, Anna'))], { project });
  const page = await open(server, `#/searches/${search}/studies?review=${project}`, { viewport: { width: 320, height: 640 } });
  const marks = page.locator('.study .tag');
  await marks.nth(1).waitFor();
  assert.deepEqual(await marks.allTextContents(), ['⧉Duplicate', '⧉Possible duplicate']);
  await assertScreen(page, 'marked studies, narrow');
  await marks.nth(1).scrollIntoViewIfNeeded();
  await shot(page, 'studies-marked-narrow');
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
  // A held key decides about one pair.
  for (let n = 0; n < 3; n += 1) await page.keyboard.down('d');
  await page.keyboard.up('d');
  await until('the first decision is stored', async () => (await decisions()).length === 1);
  await page.keyboard.press('s');
  await until('the second decision is stored', async () => (await decisions()).length === 2);
  await page.keyboard.press('n');
  await page.keyboard.press('k');
  await until('the third decision is stored', async () => (await decisions()).length === 4);
  assert.deepEqual(await decisions(), ['keep', 'same', 'same', 'different'], 'keeping a study also confirms the pair');
  // The response arrives after the server has stored the decision.
  await until('the third decision is shown', async () => (await pair.getByRole('button', { name: /^Undo/ }).count()) === 3);
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
  const reject = page.getByRole('button', { name: /^Not a duplicate/ });
  await page.route('**/duplicates/decisions', (route) => (route.request().method() === 'POST' ? route.abort('connectionreset') : route.continue()));
  await reject.click();
  await page.getByRole('alert').getByText('The server does not respond. The action may have had no effect.').waitFor();
  await page.unroute('**/duplicates/decisions');
  await reject.click();
  await page.getByText('Marked as different works. The list is updated in a moment.').waitFor();
  await assertScreen(page, 'a decision');
  await shot(page, 'duplicates-decided');
  await until('the mark is removed', async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return page.getByText('No study of this review repeats another one.').isVisible();
  });
  const decision = page.locator('.decisions li');
  assert.match(await decision.innerText(), /Marked as different works: record 1 of .*\.ris and record 1 of .*\.ris/);
  // A colleague decides about the same studies before the user undoes the listed decision.
  let isColleagueFaster = true;
  await page.route('**/duplicates/decisions', async (route) => {
    const body = route.request().postDataJSON();
    if (isColleagueFaster && body?.decision === 'undo') {
      isColleagueFaster = false;
      await route.fetch({ postData: { ...body, decision: 'same', undoes: null } });
    }
    return route.continue();
  });
  await decision.getByRole('button', { name: /^Undo/ }).click();
  await decision.getByText(/Not saved: .* decided first/).waitFor();
  await page.getByRole('button', { name: 'Refresh' }).click();
  await decision.nth(1).waitFor();
  await decision.first().getByRole('button', { name: /^Undo/ }).click();
  await until('the mark is restored', async () => {
    await page.getByRole('button', { name: 'Refresh' }).click();
    return page.locator('.pair').isVisible();
  });
  await decision.nth(2).waitFor();
  assert.equal(await decision.getByRole('button', { name: /^Undo/ }).count(), 0, 'an earlier decision cannot be undone');
  await page.context().close();
});

test('decisions link to studies whose pairs are not listed', async () => {
  const project = crypto.randomUUID();
  const record = (author) => `TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - ${author}\nPY  - 2020\nDO  - 10.1000/zinc\nER  - \n`;
  const placeIn = async (search_id) => ({ search_id, file_id: (await (await fetch(`${server.searches(project)}/${search_id}`)).json()).files[1].file_id, record: 1 });
  const imports = [];
  for (const [name, author, title] of [['first', 'Berg, A.', 'Early walking after hip fracture surgery'], ['second', 'Berg, Anna', 'Night shifts and sleep of hospital nurses']]) {
    imports.push(await server.import(name, [text('other.ris', `TY  - JOUR\nTI  - ${title}\nER  - \n`), text(`${name}.ris`, record(author))], { project }));
  }
  const studies = await Promise.all(imports.map(placeIn));
  const decide = async (decision) => assert.ok((await fetch(`${server.url}/projects/${project}/duplicates/decisions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ decision, studies }) })).ok);
  await decide('different');
  const page = await open(server, `#/reviews?review=${project}`);
  const requested = [];
  page.on('request', (request) => { const search = /searches\/([^/]*)$/.exec(request.url())?.[1]; if (search) requested.push(search); });
  await page.evaluate((hash) => { location.hash = hash; }, `#/duplicates?review=${project}`);
  const decisions = page.locator('.decisions li', { hasText: 'Marked as' });
  await decisions.getByText('Marked as different works: record 1 of first.ris and record 1 of second.ris').waitFor();
  await page.locator('.connection.on').waitFor();
  await decide('same');
  await decisions.nth(1).waitFor();
  assert.deepEqual(requested.sort(), [...imports].sort(), 'each import is requested once');
  await assertScreen(page, 'decisions with links');
  await shot(page, 'duplicates-decisions');
  await decisions.first().getByRole('link', { name: 'record 1 of second.ris' }).click();
  const study = page.getByRole('dialog', { name: 'Study 1-1' });
  await study.getByText('second.ris of second, line 1, record 1').waitFor();

  assert.ok((await fetch(`${server.searches(project)}/${imports[1]}`, { method: 'DELETE' })).ok);
  await page.goto(`${server.url}/#/duplicates?review=${project}`);
  await page.reload();
  await decisions.first().getByText(`record 1 of first.ris and record 1 of import ${imports[1].slice(0, 8)}`).waitFor();
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
