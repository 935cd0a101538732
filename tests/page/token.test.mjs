/** The page of a server that other machines can reach: without TLS, and with an access token. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { closeBrowser, heading, assertScreen, open, SAMPLES, Server, shot, until } from './harness.mjs';

/** An external address of this machine, if it has one; browsers treat pages from there as insecure. */
const elsewhere = Object.values(networkInterfaces()).flat().find((each) => each.family === 'IPv4' && !each.internal)?.address;

let server;

before(async () => {
  server = await Server.start({ listen: '0.0.0.0', reach: elsewhere ?? '127.0.0.1' });
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

async function signIn(page) {
  await page.getByRole('dialog').getByLabel('Token').fill(server.token);
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

test('data is shown only after the token is entered', async () => {
  const page = await open(server);
  await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
  await assertScreen(page, 'the token dialog');
  await shot(page, 'token');
  await page.getByLabel('Token').fill('made-up');
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('This token is not valid.').waitFor();
  await page.getByLabel('Token').fill(`Authorization: Bearer ${server.token}`);
  await page.getByRole('dialog').getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('No imports yet').waitFor();
  await page.locator('.connection.on').waitFor();
  assert.ok(!page.url().includes(server.token));
  await page.reload();
  await page.getByText('No imports yet').waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0, 'the tab has kept the token');
  await page.context().close();
  const stranger = await open(server);
  await stranger.getByRole('dialog').waitFor();
  assert.equal(await stranger.getByText('No imports yet').count(), 0);
  await stranger.context().close();
});

test('uploads, live changes and exports work with the token', async () => {
  const page = await open(server, '#/new');
  await signIn(page);
  await page.locator('input[type=file]').setInputFiles(join(SAMPLES, 'psycinfo.ris'));
  await page.getByLabel('Name of the import').fill('From another machine');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'From another machine');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  await page.getByLabel('Parts of this import').getByRole('link', { name: 'Studies', exact: true }).click();
  await page.locator('.study a').first().waitFor();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export', exact: true }).click()]);
  assert.equal(saved.suggestedFilename(), 'From-another-machine-studies.ris');
  assert.equal((await readFile(await saved.path(), 'utf8')).match(/^TY {2}- /gm).length, 3);
  await page.getByRole('link', { name: 'Operations' }).click();
  await page.getByRole('link', { name: 'Health' }).click();
  await page.locator('.stats').waitFor();
  await assertScreen(page, 'a screen after sign-in');
  await page.context().close();
});

test('input is kept while the token of a restarted server is entered', async () => {
  const page = await open(server, '#/new');
  await signIn(page);
  await page.locator('input[type=file]').setInputFiles(join(SAMPLES, 'utf-16.ris'));
  await page.getByLabel('Name of the import').fill('Before the restart');
  const before = server.token;
  await server.kill();
  server = await server.restart();
  assert.notEqual(server.token, before);
  await page.getByRole('button', { name: 'Import' }).click();
  await page.getByRole('dialog').waitFor();
  await signIn(page);
  await until('the upload resumes', async () => (await page.getByRole('heading', { level: 1, name: 'Before the restart' }).count()) > 0);
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  await page.context().close();
});
