/** The screens for operators of another system, orders: its data, and the controls of an instance. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assertScreen, built, closeBrowser, heading, open, ROOT, Server, shot } from './harness.mjs';

const OPERATE = { program: built('orders-tools'), command: ['operate', 'serve', '--page', join(ROOT, 'infra/page/dist')] };

let server;
let orders;

before(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orders-'));
  const placed = spawnSync(built('orders'), ['--unpaid', '3', '--data-dir', folder]);
  assert.equal(placed.status, 0, String(placed.stderr));
  server = await Server.start({ folder, ...OPERATE });
  const { items } = await (await fetch(`${server.url}/admin/instances`)).json();
  // The program may end before the views of the first three orders show that they have ended.
  orders = items.filter((item) => item.view.number > 'A-3').map((item) => item.instance_id);
  assert.equal(orders.length, 3);
});
after(async () => {
  await closeBrowser();
  await server?.end();
});

const screens = () => [
  ['instances', '', 'Instances', 'tbody tr'],
  ['instance', `#/instances/${orders[2]}`, 'Instance', '.timeline li'],
  ['failures', '#/failures', 'Failures', '.group'],
  ['outbox', '#/outbox', 'Outbox', 'tbody tr'],
  ['health', '#/health', 'Health', '.stats'],
];
const SHAPES = [
  ['light', { viewport: { width: 1180, height: 800 }, colorScheme: 'light' }],
  ['dark', { viewport: { width: 1180, height: 800 }, colorScheme: 'dark' }],
  ['narrow', { viewport: { width: 320, height: 640 }, colorScheme: 'light', reducedMotion: 'reduce' }],
];

for (const [shape, options] of SHAPES) {
  test(`screens of orders, ${shape}`, async () => {
    for (const [name, hash, title, what] of screens()) {
      const page = await open(server, hash, options);
      await heading(page, title);
      await page.locator(what).first().waitFor();
      await page.locator('.connection.on').waitFor();
      assert.equal(await page.title(), `${title} · orders`);
      assert.equal(await page.getByText(/import/i).count(), 0, `${name}: nothing is about imports`);
      if (name === 'failures') {
        await page.locator('.group').first().click();
        await page.locator('.group-body li').first().waitFor();
      }
      await shot(page, `orders-${name}-${shape}`);
      await assertScreen(page, `orders ${name}, ${shape}`);
      await page.context().close();
    }
  });
}

for (const [shape, options] of [SHAPES[0], SHAPES[2]]) {
  test(`confirmation of a control, ${shape}`, async () => {
    const page = await open(server, `#/instances/${orders[2]}`, options);
    for (const control of ['Terminate', 'Send event']) {
      await page.getByRole('button', { name: control }).click();
      await page.getByRole('heading', { level: 2, name: control }).waitFor();
      if (control === 'Send event') await page.getByRole('option', { name: 'Paid (queue saga, version 1)' }).waitFor({ state: 'attached' });
      await shot(page, `orders-${control.split(' ')[0].toLowerCase()}-${shape}`);
      const { content, width } = await page.getByRole('dialog').evaluate((dialog) => ({ content: dialog.scrollWidth, width: dialog.clientWidth }));
      assert.ok(content <= width, `${control}, ${shape}: ${content} pixels in a dialog of ${width}`);
      await assertScreen(page, `${control}, ${shape}`);
      await page.getByRole('button', { name: 'Cancel' }).click();
    }
    await page.locator('.tag', { hasText: 'Running' }).waitFor();
    await page.context().close();
  });
}

test('instances are found by a field of their view', async () => {
  const page = await open(server);
  const field = page.getByLabel('Field of the view');
  await field.fill('number');
  assert.ok(await field.evaluate((input) => input.matches(':invalid')), 'a condition has a value');
  await field.fill('number=A-5');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.locator('caption', { hasText: /^1 instance that has not ended, the oldest on top$/ }).waitFor();
  await page.getByRole('link', { name: orders[1] }).waitFor();
  await page.locator('code', { hasText: "operate list --where 'number=A-5'" }).waitFor();
  await assertScreen(page, 'one instance');
  await field.fill('number=A-9');
  await field.press('Enter');
  await page.getByRole('heading', { level: 2, name: 'No matching instance' }).waitFor();
  await field.fill('');
  await field.press('Enter');
  await page.locator('caption', { hasText: 'the oldest on top' }).waitFor();
  await page.getByLabel('State').selectOption('Ended');
  await page.locator('caption', { hasText: / ended, the latest on top$/ }).waitFor();
  assert.match(page.url(), /ended=true/);
  await page.context().close();
});

test('an order is paused, paid and resumed', async () => {
  const page = await open(server);
  await page.getByRole('link', { name: orders[0] }).click();
  await heading(page, 'Instance');
  await page.getByRole('button', { name: 'Pause' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('wrong price');
  await dialog.getByRole('button', { name: 'Pause' }).click();
  await page.locator('.tag', { hasText: 'Paused' }).waitFor();
  await page.locator('.note', { hasText: /Paused by .*: wrong price/ }).waitFor();

  await page.getByRole('button', { name: 'Send event' }).click();
  await dialog.getByLabel('Event').selectOption({ label: 'Paid (queue saga, version 1)' });
  const data = dialog.getByLabel('Data, as JSON');
  for (const [text, problem] of [['cents', /The data is not JSON/], ['[]', /The data is not a JSON object/], ['{"cents":"many"}', /The data of Paid is malformed/]]) {
    await data.fill(text);
    await dialog.getByRole('button', { name: 'Send event' }).click();
    await dialog.getByRole('alert').filter({ hasText: problem }).waitFor();
  }
  await data.fill('{"cents": 1000}');
  await dialog.getByRole('button', { name: 'Send event' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.locator('.timeline', { hasText: 'sent by' }).waitFor();

  await page.getByRole('button', { name: 'Resume' }).click();
  await dialog.getByRole('button', { name: 'Resume' }).click();
  await page.locator('.tag', { hasText: 'Running' }).waitFor();
  await page.locator('.timeline', { hasText: 'resumed by' }).waitFor();
  await assertScreen(page, 'a resumed order');
  await page.context().close();
});

test('an order is terminated only with a reason', async () => {
  const page = await open(server, `#/instances/${orders[1]}`);
  await page.getByRole('button', { name: 'Terminate' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Terminate' }).click();
  assert.ok(await dialog.getByLabel('Reason').evaluate((input) => input.matches(':invalid')));
  await dialog.getByLabel('Reason').fill('a test order');
  await dialog.getByRole('button', { name: 'Terminate' }).click();
  await page.locator('.tag', { hasText: 'Terminated' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0);
  await assertScreen(page, 'a terminated order');
  await page.getByRole('link', { name: 'Failures' }).click();
  await page.getByRole('row').filter({ hasText: 'terminated' }).filter({ hasText: 'a test order' }).waitFor();
  await page.context().close();
});

test('failures are counted and retried', async () => {
  const page = await open(server, '#/failures');
  await page.locator('.group', { hasText: 'paid too little' }).click();
  await page.getByRole('link', { name: /^Instance of failure/ }).first().waitFor();
  // No worker runs that could process a first failure before the others.
  await page.getByLabel('Retry first').selectOption({ label: 'all' });
  await page.getByRole('button', { name: 'Dry run' }).click();
  await page.getByRole('button', { name: /^Retry \d+ failure/ }).click();
  await page.locator('tr', { hasText: 'done' }).waitFor();
  await page.locator('.empty', { hasText: 'No failures' }).waitFor();
  await page.context().close();
});

test('another machine needs the token', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orders-'));
  assert.equal(spawnSync(built('orders'), ['--unpaid', '1', '--data-dir', folder]).status, 0);
  const remote = await Server.start({ folder, listen: '0.0.0.0', reach: '127.0.0.1', ...OPERATE });
  try {
    const page = await open(remote);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('orders-tools operate serve').waitFor();
    await dialog.getByLabel('Token').fill(remote.token);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('caption', { hasText: 'not ended' }).waitFor();
    await page.locator('.connection.on').waitFor();
    await page.context().close();
  } finally {
    await remote.end();
  }
});
