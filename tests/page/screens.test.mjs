/** Every screen with data, in wide and narrow windows, light and dark. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { closeBrowser, deadLetter, heading, assertScreen, open, sample, Server, shot, text } from './harness.mjs';

const HOSTILE = '<img src=x onerror=alert(1)> \u202Egnp.exe';
const hostile = `TY  - JOUR\nTI  - <script>alert("title")</script> & <b>bold</b>\nAU  - <i>Mallory</i>, M.\nAB  - <svg onload=alert(2)> \u202Edesrever\nPY  - 2021\nER  - \n`;

let server;
let id;
let broken;

before(async () => {
  server = await Server.start();
  id = await server.import('Gambling harms, November 2026', ['psycinfo.ris', 'broken.ris', 'pubmed.nbib', 'same-library/library.ris', 'same-library/library.csv'].map(sample));
  await server.import(HOSTILE, [text(`${HOSTILE}.ris`, hostile)]);
  await server.import('Sleep and shift work', [sample('endnote.xml'), sample('utf-16.ris')]);
  broken = await server.import('Exports of a colleague', [sample('library.tsv'), text('notes.pdf', '%PDF-1.4 not a reference file')]);
  await server.announce('Still to be uploaded');
  await server.kill();
  deadLetter(server.folder, [...Array(12).keys()].map((n) => `storing partition ${n} failed: no MongoDB server answers within 5000 ms`).concat(['the message has no name that is known']));
  server = await server.restart();
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

const screens = () => [
  ['searches', '', 'Imports', 'tbody tr'],
  ['new', '#/new', 'New import', '.drop'],
  ['search', `#/searches/${id}`, 'Gambling harms, November 2026', '.balance'],
  ['failed', `#/searches/${broken}`, 'Exports of a colleague', '.balance'],
  ['not-imported', `#/searches/${id}/unread`, 'Records not imported', '.record'],
  ['duplicates', `#/searches/${id}/duplicates?show=all`, 'Duplicates', '.pair'],
  ['duplicates-review-wide', '#/duplicates?show=all', 'Duplicates', '.pair'],
  ['studies', `#/searches/${id}/studies`, 'Studies', '.study a'],
  ['studies-review', '#/studies', 'Studies', '.study a'],
  ['reviews', '#/reviews', 'Reviews', 'tbody tr'],
  ['timeline', `#/searches/${id}/timeline`, 'Timeline', '.states td.lit'],
  ['sources', '#/sources', 'Sources', '.prisma svg'],
  ['all', '#/all', 'All imports', 'tbody tr'],
  ['failures', '#/failures', 'Failures', '.group'],
  ['health', '#/health', 'Health', '.stats'],
  ['fail', '#/fail', 'Fault injection', 'main form'],
];
const SHAPES = [
  ['light', { viewport: { width: 1180, height: 800 }, colorScheme: 'light' }],
  ['dark', { viewport: { width: 1180, height: 800 }, colorScheme: 'dark' }],
  ['narrow', { viewport: { width: 320, height: 640 }, colorScheme: 'light', reducedMotion: 'reduce' }],
];

for (const [shape, options] of SHAPES) {
  test(`screens with data, ${shape}`, async () => {
    for (const [name, hash, title, what] of screens()) {
      const page = await open(server, hash, options);
      await heading(page, title);
      await page.locator(what).first().waitFor();
      await page.locator('.connection.on').waitFor();
      if (name === 'failures') await page.locator('.group').first().click();
      if (name === 'fail') {
        await page.getByRole('button', { name: 'Inject faults' }).click();
        await page.locator('.stat', { hasText: '6 of 6' }).waitFor();
      }
      if (name === 'not-imported') await page.getByRole('button', { name: /Show and correct/ }).first().click();
      await shot(page, `${name}-${shape}`);
      await assertScreen(page, `${name}, ${shape}`);
      await page.context().close();
    }
  });
}

test('an unknown address is reported, and an unknown filter ignored', async () => {
  for (const address of ['#/nonsense', '#/searches/zzz', `#/searches/${crypto.randomUUID()}/sources`]) {
    const page = await open(server, address);
    await heading(page, 'Page not found');
    await page.getByRole('link', { name: 'Show the imports' }).click();
    await heading(page, 'Imports');
    await page.context().close();
  }
  const page = await open(server, '#/searches?state=unknown');
  await heading(page, 'Imports');
  await page.locator('tbody tr').first().waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});
