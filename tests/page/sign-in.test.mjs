/** The deployed page: the API requires a token, and users sign in at an identity provider. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { closeBrowser, heading, assertScreen, open, PROJECT, ROOT, sample, Server, shot, until } from './harness.mjs';

const DIST = join(ROOT, 'infra/page/dist');
const CLIENT = 'the-page';
const CONTENT_TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };

const listen = (answer) =>
  new Promise((done) => {
    const server = createServer(answer);
    server.listen(0, '127.0.0.1', () => done({ server, url: `http://localhost:${server.address().port}` }));
  });

/**
 * An identity provider that responds like Cognito. It signs every user in immediately, unless `refuses` is set, and grants
 * no tokens while `isDown` is set.
 */
class SignIn {
  static async start() {
    const provider = new SignIn();
    Object.assign(provider, { codes: new Map(), tokens: new Set(), refreshable: new Set(), visits: 0, refuses: false, isDown: false, signOuts: 0 });
    Object.assign(provider, await listen((request, response) => provider.respond(request, response)));
    return provider;
  }

  async respond(request, response) {
    const url = new URL(request.url, 'http://localhost');
    response.setHeader('access-control-allow-origin', '*');
    if (url.pathname === '/oauth2/authorize') return this.authorize(url.searchParams, response);
    if (url.pathname === '/logout') { this.signOuts += 1; return response.end('signed out'); }
    if (this.isDown) { response.writeHead(503); return response.end(); }
    let body = '';
    for await (const part of request) body += part;
    const given = this.granted(new URLSearchParams(body));
    response.writeHead(given ? 200 : 400, { 'content-type': 'application/json' });
    return response.end(JSON.stringify(given ?? { error: 'invalid_grant' }));
  }

  authorize(query, response) {
    this.visits += 1;
    this.scope = query.get('scope');
    assert.equal(query.get('response_type'), 'code');
    assert.equal(query.get('code_challenge_method'), 'S256');
    const back = new URL(query.get('redirect_uri'));
    back.searchParams.set('state', query.get('state'));
    if (this.refuses) {
      back.searchParams.set('error', 'access_denied');
      back.searchParams.set('error_description', 'you are not a reviewer <img src=x>');
    } else {
      const code = randomUUID();
      this.codes.set(code, { challenge: query.get('code_challenge'), redirect: query.get('redirect_uri') });
      back.searchParams.set('code', code);
    }
    response.writeHead(302, { location: back.href }).end();
  }

  granted(form) {
    if (form.get('client_id') !== CLIENT) return undefined;
    if (form.get('grant_type') === 'refresh_token') {
      // A refresh token is valid for a single use.
      return this.refreshable.delete(form.get('refresh_token')) ? this.mint() : undefined;
    }
    const code = this.codes.get(form.get('code'));
    this.codes.delete(form.get('code'));
    const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
    return code?.challenge === challenge && code.redirect === form.get('redirect_uri') ? this.mint() : undefined;
  }

  mint() {
    const [access_token, refresh_token] = [randomUUID(), randomUUID()];
    this.tokens.add(access_token);
    this.refreshable.add(refresh_token);
    return { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600 };
  }
}

/** The page's files and the API under one origin. The API requires a token and does not stream. */
function gateway(program, signIn) {
  const meta = JSON.stringify({ url: signIn.url, client: CLIENT, scope: 'openid', operator_scope: 'operate' }).replaceAll('"', '&quot;');
  const policy = `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ${program.url} ${signIn.url}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html`;
  const file = (path) => {
    if (path !== '/' && !path.startsWith('/assets/')) return undefined;
    if (path === '/') return readFileSync(join(DIST, 'index.html'), 'utf8').replace('<title>', `<meta name="sign-in" content="${meta}" /><title>`);
    return gunzipSync(readFileSync(join(DIST, `${path}.gz`)));
  };
  return listen((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const found = request.method === 'GET' ? file(pathname) : undefined;
    if (found !== undefined) {
      response.writeHead(200, { 'content-type': CONTENT_TYPES[pathname.split('.').at(-1)] ?? CONTENT_TYPES.html, 'content-security-policy': policy });
      return response.end(found);
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    // Uploads go to a bucket, which does not check tokens.
    if (pathname !== '/uploads' && !signIn.tokens.has(token)) {
      response.writeHead(401, { 'content-type': 'application/json' });
      return response.end('{"message":"Unauthorized"}');
    }
    if (pathname.startsWith('/admin/') && signIn.scope !== 'openid operate') {
      response.writeHead(403, { 'content-type': 'application/problem+json' });
      return response.end('{"title":"Forbidden","status":403,"detail":"this is for operators of the deployment"}');
    }
    const { host: _, origin: __, authorization: ___, ...headers } = request.headers;
    for (const name of Object.keys(headers)) if (name.startsWith('sec-')) delete headers[name];
    const forwarded = ask(program.url + request.url, { method: request.method, headers }, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () => {
        let body = Buffer.concat(chunks);
        if (pathname === '/config.json') {
          const config = JSON.parse(body.toString());
          config.features.live = false;
          // The claims of a token determine the caller.
          Object.assign(config.caller, signIn.caller);
          body = Buffer.from(JSON.stringify(config));
        }
        if (pathname === '/projects' && request.method === 'GET' && signIn.role) {
          const list = JSON.parse(body.toString());
          for (const review of list.items) review.role = signIn.role;
          body = Buffer.from(JSON.stringify(list));
        }
        const { 'content-length': _length, 'transfer-encoding': _encoding, ...kept } = answer.headers;
        response.writeHead(answer.statusCode, kept);
        response.end(body);
      });
    });
    return request.pipe(forwarded);
  });
}

let program;
let signIn;
let front;

before(async () => {
  program = await Server.start();
  signIn = await SignIn.start();
  front = await gateway(program, signIn);
});
after(async () => {
  await closeBrowser();
  front?.server.close();
  signIn?.server.close();
  await program?.end();
});

const visit = (hash = '') => open({ url: front.url, others: [signIn.url] }, hash);

test('users sign in once and return to their screen', async () => {
  const search = await program.import('Behind a sign-in', [sample('psycinfo.ris')]);
  const before = signIn.visits;
  const page = await visit(`#/searches/${search}`);
  await heading(page, 'Behind a sign-in');
  assert.equal(signIn.visits, before + 1);
  assert.equal(page.url(), `${front.url}/#/searches/${search}`, 'neither code nor state stays in the address');
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  for (const token of signIn.tokens) assert.ok(!kept.includes(token), 'no token is stored');
  await page.getByLabel('Main').getByRole('link', { name: 'Imports' }).first().click();
  await heading(page, 'Imports');
  assert.equal(signIn.visits, before + 1);
  await assertScreen(page, 'a page behind a sign-in');
  await shot(page, 'signed-in');
  await page.reload();
  await heading(page, 'Imports');
  assert.equal(signIn.visits, before + 2, 'the token was only in memory');
  assert.equal(signIn.scope, 'openid', 'a reviewer requests no other scope');
  await page.context().close();
});

test('expired tokens are renewed once, otherwise users sign in again', async () => {
  const page = await visit('#/all');
  // The heading is there before the user has signed in.
  await page.locator('main').locator('table, .empty').first().waitFor();
  const visits = signIn.visits;
  signIn.tokens.clear();
  await page.getByRole('link', { name: 'Health' }).click();
  await heading(page, 'Health');
  assert.equal(signIn.visits, visits, 'the token was renewed');
  signIn.tokens.clear();
  signIn.refreshable.clear();
  await page.getByRole('link', { name: 'Failures', exact: true }).click();
  await until('the user signs in again', () => signIn.visits > visits);
  await heading(page, 'Failures');
  await page.context().close();
});

test('entered text survives an outage of the provider', async () => {
  const page = await visit('#/new');
  await page.locator('input[type=file]').setInputFiles(join(ROOT, 'tests/samples/psycinfo.ris'));
  const name = page.getByLabel('Name of the import');
  await name.fill('Kept during an outage');
  await page.locator('.connection.on').waitFor();
  const visits = signIn.visits;
  signIn.isDown = true;
  signIn.tokens.clear();
  await page.locator('.connection.off').waitFor();
  signIn.isDown = false;
  await page.locator('.connection.on').waitFor();
  assert.equal(await name.inputValue(), 'Kept during an outage');
  assert.equal(signIn.visits, visits, 'the token was renewed without leaving the page');
  await page.context().close();
});

test('changed permissions take effect when the connection returns', async () => {
  const page = await visit();
  await page.locator('.connection.on').waitFor();
  const operations = page.getByRole('link', { name: 'Operations' });
  await operations.waitFor();
  signIn.isDown = true;
  signIn.tokens.clear();
  await page.locator('.connection.off').waitFor();
  signIn.caller = { projects: [PROJECT], is_operator: false };
  signIn.isDown = false;
  await operations.waitFor({ state: 'detached' });
  signIn.caller = {};
  await page.context().close();
});

test('operator screens request the scope of operators once', async () => {
  signIn.caller = { projects: null, is_operator: false };
  const page = await visit();
  await heading(page, 'Imports');
  assert.equal(signIn.scope, 'openid');
  await page.getByRole('link', { name: 'Operations' }).click();
  await until('the scope is requested', () => signIn.scope === 'openid operate');
  await heading(page, 'All imports');
  signIn.scope = 'openid';
  const visits = signIn.visits;
  await page.getByRole('link', { name: 'Failures', exact: true }).click();
  await page.getByText('This is for operators of the deployment.').waitFor();
  assert.equal(signIn.visits, visits, 'a rejection does not request the scope again');
  signIn.caller = {};
  await page.context().close();
});

test('a refused sign-in shows the reason as text', async () => {
  signIn.refuses = true;
  const page = await visit();
  await page.getByText('You are not a reviewer <img src=x>.').waitFor();
  await assertScreen(page, 'a refused sign-in');
  await shot(page, 'refused');
  signIn.refuses = false;
  await page.getByRole('button', { name: 'Sign in again' }).click();
  await heading(page, 'Imports');
  await page.context().close();
});

test('a foreign authorization code is rejected', async () => {
  const stolen = randomUUID();
  signIn.codes.set(stolen, { challenge: 'x', redirect: `${front.url}/` });
  const before = signIn.visits;
  const page = await visit(`?code=${stolen}&state=made-up`);
  await heading(page, 'Imports');
  assert.equal(signIn.visits, before + 1, 'the page starts its own sign-in');
  assert.ok(signIn.codes.has(stolen), 'the code was not used');
  await page.context().close();
});

test('users limited to some reviews see the first, without operator screens', async () => {
  const [ours, other] = [randomUUID(), randomUUID()];
  await program.import('Of the first review', [sample('psycinfo.ris')], { project: ours });
  signIn.caller = { projects: [ours, other], is_operator: false };
  const page = await visit();
  await page.getByRole('link', { name: 'Of the first review' }).waitFor();
  assert.match(page.url(), new RegExp(`review=${ours}`));
  assert.equal(await page.getByRole('link', { name: 'Operations' }).count(), 0);
  await page.locator('.review summary').click();
  await page.getByRole('button', { name: `Review ${other.slice(0, 8)}…` }).waitFor();
  await assertScreen(page, 'reviews of a token');
  await shot(page, 'reviews-of-a-token');
  await page.getByLabel('Open a review').fill('foreign');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('alert').getByText('There is no review foreign that you have access to.').waitFor();
  await page.getByRole('button', { name: `Review ${other.slice(0, 8)}…` }).click();
  await page.getByText('No imports yet').waitFor();
  signIn.caller = {};
  await page.context().close();
});

test('an owner adds and removes members, and the history shows it', async () => {
  signIn.caller = { projects: null, is_operator: false, name: 'ann' };
  const page = await visit('#/reviews');
  await page.getByLabel('New review').fill('Sleep with a team');
  await page.getByRole('button', { name: 'Create' }).click();
  await heading(page, 'Imports');
  await page.locator('.review summary').click();
  await page.getByRole('link', { name: 'Team and history' }).click();
  await heading(page, 'Team and history');
  await page.getByText('Your name is ann').waitFor();
  await page.getByLabel('Name of a user').fill('bob');
  await page.getByRole('button', { name: 'Add' }).click();
  const role = page.getByLabel('Role of bob');
  await role.waitFor();
  assert.equal(await role.inputValue(), 'reviewer');
  await role.selectOption('owner');
  await page.getByText('made bob an owner').waitFor();
  await assertScreen(page, 'members');
  await shot(page, 'team-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, 'team-dark');
  await page.setViewportSize({ width: 320, height: 640 });
  await assertScreen(page, 'members, narrow');
  await shot(page, 'team-narrow');
  await page.getByRole('button', { name: 'Remove bob' }).click();
  await page.getByRole('button', { name: 'Remove the member' }).click();
  await page.getByText('removed bob').waitFor();
  assert.equal(await role.count(), 0);
  signIn.caller = {};
  await page.context().close();
});

test('a reader sees neither uploads nor decisions', async () => {
  [signIn.caller, signIn.role] = [{ projects: null, is_operator: false, name: 'rita' }, 'reader'];
  const project = randomUUID();
  await program.import('With duplicates', [sample('psycinfo.ris'), sample('psycinfo.ris')], { project });
  const named = await fetch(`${program.url}/projects/${project}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'Read by Rita' }) });
  assert.equal(named.status, 200);
  const page = await visit(`#/duplicates?review=${project}&show=all`);
  await page.getByText('You can read and export this review.').waitFor();
  await page.locator('li.pair').first().waitFor();
  for (const name of ['Not a duplicate', 'Same work', 'Keep this study instead', 'Decide with the keyboard']) {
    assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  }
  assert.equal(await page.getByRole('link', { name: 'New import' }).count(), 0);
  await assertScreen(page, 'a reader of duplicates');
  [signIn.caller, signIn.role] = [{}, undefined];
  await page.context().close();
});

test('files are uploaded, and users sign out', async () => {
  const page = await visit('#/new');
  await page.locator('input[type=file]').setInputFiles(join(ROOT, 'tests/samples/psycinfo.ris'));
  await page.getByLabel('Name of the import').fill('After sign-in');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'After sign-in');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('signed out').waitFor();
  assert.equal(signIn.signOuts, 1);
  await page.context().close();
});
