/** The page as it is deployed: behind a name that asks for a token, for people who sign in elsewhere. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { closeBrowser, heading, holds, open, ROOT, sample, Server, shot, until } from './harness.mjs';

const DIST = join(ROOT, 'infra/page/dist');
const CLIENT = 'the-page';
const KINDS = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };

const listen = (answer) =>
  new Promise((done) => {
    const server = createServer(answer);
    server.listen(0, '127.0.0.1', () => done({ server, url: `http://localhost:${server.address().port}` }));
  });

/** Where people sign in, as Cognito answers; whoever comes is signed in at once unless they are refused. */
class SignIn {
  static async start() {
    const place = new SignIn();
    Object.assign(place, { codes: new Map(), tokens: new Set(), refreshable: new Set(), visits: 0, refuses: false, outs: 0 });
    Object.assign(place, await listen((request, response) => place.answer(request, response)));
    return place;
  }

  async answer(request, response) {
    const url = new URL(request.url, 'http://localhost');
    response.setHeader('access-control-allow-origin', '*');
    if (url.pathname === '/oauth2/authorize') return this.authorize(url.searchParams, response);
    if (url.pathname === '/logout') { this.outs += 1; return response.end('signed out'); }
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
      // It is good for one use.
      return this.refreshable.delete(form.get('refresh_token')) ? this.minted() : undefined;
    }
    const code = this.codes.get(form.get('code'));
    this.codes.delete(form.get('code'));
    const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
    return code?.challenge === challenge && code.redirect === form.get('redirect_uri') ? this.minted() : undefined;
  }

  minted() {
    const [access_token, refresh_token] = [randomUUID(), randomUUID()];
    this.tokens.add(access_token);
    this.refreshable.add(refresh_token);
    return { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600 };
  }
}

/** The page's files and the API under one name: the API takes nobody without a token, and streams nothing. */
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
      response.writeHead(200, { 'content-type': KINDS[pathname.split('.').at(-1)] ?? KINDS.html, 'content-security-policy': policy });
      return response.end(found);
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    // Uploads go to a bucket, which knows nothing of tokens.
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
    const on = ask(program.url + request.url, { method: request.method, headers }, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () => {
        let body = Buffer.concat(chunks);
        if (pathname === '/config.json') {
          const config = JSON.parse(body.toString());
          config.features.live = false;
          // As the claims of a token say it.
          Object.assign(config.caller, signIn.caller);
          body = Buffer.from(JSON.stringify(config));
        }
        const { 'content-length': _length, 'transfer-encoding': _encoding, ...kept } = answer.headers;
        response.writeHead(answer.statusCode, kept);
        response.end(body);
      });
    });
    return request.pipe(on);
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

test('whoever comes is sent to sign in, comes back to where they were, and is asked no more', async () => {
  const search = await program.import('Behind a door', [sample('psycinfo.ris')]);
  const before = signIn.visits;
  const page = await visit(`#/searches/${search}`);
  await heading(page, 'Behind a door');
  assert.equal(signIn.visits, before + 1);
  assert.equal(page.url(), `${front.url}/#/searches/${search}`, 'neither code nor state is left in the address');
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  for (const token of signIn.tokens) assert.ok(!kept.includes(token), 'a token is stored');
  await page.getByLabel('Main').getByRole('link', { name: 'Searches' }).first().click();
  await heading(page, 'Searches');
  assert.equal(signIn.visits, before + 1);
  await holds(page, 'a page behind a sign-in');
  await shot(page, 'signed in');
  await page.reload();
  await heading(page, 'Searches');
  assert.equal(signIn.visits, before + 2, 'the token was in memory alone');
  assert.equal(signIn.scope, 'openid', 'a reviewer asks for no more');
  await page.context().close();
});

test('a token that has ended is renewed once for all requests, and without a renewal people sign in again', async () => {
  const page = await visit('#/all');
  await heading(page, 'All searches');
  const visits = signIn.visits;
  signIn.tokens.clear();
  await page.getByRole('link', { name: 'Health' }).click();
  await heading(page, 'Health');
  assert.equal(signIn.visits, visits, 'it was renewed');
  signIn.tokens.clear();
  signIn.refreshable.clear();
  await page.getByRole('link', { name: 'Failures', exact: true }).click();
  await until('somebody signs in again', () => signIn.visits > visits);
  await heading(page, 'Failures');
  await page.context().close();
});

test('the scope of operators is requested on an operator screen, and once', async () => {
  signIn.caller = { projects: null, is_operator: false };
  const page = await visit();
  await heading(page, 'Searches');
  assert.equal(signIn.scope, 'openid');
  await page.getByRole('link', { name: 'Failures', exact: true }).click();
  await until('the scope is requested', () => signIn.scope === 'openid operate');
  await heading(page, 'Failures');
  signIn.scope = 'openid';
  const visits = signIn.visits;
  await page.getByRole('link', { name: 'All searches' }).click();
  await page.getByText('This is for operators of the deployment.').waitFor();
  assert.equal(signIn.visits, visits, 'a refusal does not ask again');
  signIn.caller = {};
  await page.context().close();
});

test('whoever is refused is told why, as text', async () => {
  signIn.refuses = true;
  const page = await visit();
  await page.getByText('You are not a reviewer <img src=x>.').waitFor();
  await holds(page, 'a refused sign-in');
  await shot(page, 'refused');
  signIn.refuses = false;
  await page.getByRole('button', { name: 'Sign in again' }).click();
  await heading(page, 'Searches');
  await page.context().close();
});

test('the code of somebody else is not taken', async () => {
  const stolen = randomUUID();
  signIn.codes.set(stolen, { challenge: 'x', redirect: `${front.url}/` });
  const before = signIn.visits;
  const page = await visit(`?code=${stolen}&state=made-up`);
  await heading(page, 'Searches');
  assert.equal(signIn.visits, before + 1, 'a sign-in of its own');
  assert.ok(signIn.codes.has(stolen), 'the code was not even tried');
  await page.context().close();
});

test('whoever has some reviews is shown the first of them, and nothing for operators', async () => {
  const [ours, other] = [randomUUID(), randomUUID()];
  await program.import('Of the first review', [sample('psycinfo.ris')], { project: ours });
  signIn.caller = { projects: [ours, other], is_operator: false };
  const page = await visit();
  await page.getByRole('link', { name: 'Of the first review' }).waitFor();
  assert.match(page.url(), new RegExp(`review=${ours}`));
  assert.equal(await page.getByRole('link', { name: 'Failures' }).count(), 0);
  await page.locator('.review summary').click();
  await page.getByRole('button', { name: `Review ${other.slice(0, 8)}…` }).waitFor();
  await holds(page, 'reviews of a token');
  await shot(page, 'reviews-of-a-token');
  await page.getByLabel('Open a review').fill('somebody else');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('alert').getByText('The review somebody else is none of yours.').waitFor();
  await page.getByRole('button', { name: `Review ${other.slice(0, 8)}…` }).click();
  await page.getByText('No searches yet').waitFor();
  signIn.caller = {};
  await page.context().close();
});

test('files are uploaded, and people sign out', async () => {
  const page = await visit('#/new');
  await page.locator('input[type=file]').setInputFiles(join(ROOT, 'tests/samples/psycinfo.ris'));
  await page.getByLabel('Name of the search').fill('Through the door');
  await page.getByRole('button', { name: 'Import' }).click();
  await heading(page, 'Through the door');
  await page.locator('.tag', { hasText: 'Done' }).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('signed out').waitFor();
  assert.equal(signIn.outs, 1);
  await page.context().close();
});
