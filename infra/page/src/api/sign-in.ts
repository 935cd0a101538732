/**
 * Who asks, where the deployment wants to know: people sign in elsewhere, by the code flow of OAuth 2.1 with PKCE (RFC 7636).
 *
 * Whoever deploys the page writes into it where that is. Tokens are in the memory of a tab and nowhere else: no script of
 * another tab or day finds one, and a reload asks anew, which whoever is still signed in there does not notice.
 */

import { knocking } from './door.svelte';

/** The identity provider, as JSON in the page's `meta` of this name. */
interface Place {
  url: string;
  client: string;
  /** The scopes of every user. */
  scope: string;
  /** The further scope of operators, requested when a user opens one of their screens. */
  operator_scope?: string;
}

interface Tokens {
  access_token: string;
  refresh_token?: string;
}

/** What is kept while somebody is away to sign in. It is of use to nobody who has not the code, too. */
interface Pending {
  state: string;
  verifier: string;
  /** Where they were. */
  hash: string;
  /** Whether the scope of operators was requested. */
  operator?: boolean;
}

const written = document.querySelector<HTMLMetaElement>('meta[name="sign-in"]')?.content;
const place = written ? (JSON.parse(written) as Place) : undefined;
const KEPT = 'sign-in';
const here = new URL('.', location.href).href;
let tokens: Tokens | undefined;
let renewing: Promise<boolean> | undefined;
/** Whether the tokens were requested with the scope of operators, so that a refusal does not request it again. */
let operator = false;

export const isSignedIn = !!place;
/** Whether a user who may see all reviews can ask for the scope of operators. */
export const canBecomeOperator = !!place?.operator_scope;

const encoded = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const random = () => encoded(crypto.getRandomValues(new Uint8Array(32)));

/** Sees to it that somebody is signed in; answers why nobody is. */
export async function signIn(): Promise<string | undefined> {
  if (!place) return undefined;
  const query = new URLSearchParams(location.search);
  const pending = taken();
  operator = pending?.operator ?? false;
  if (!query.has('code') && !query.has('error')) return leave();
  history.replaceState(null, '', here);
  // Only this tells of the change.
  if (pending?.hash) location.replace(pending.hash);
  // Somebody else's code would have them work under that one's name.
  if (!pending || query.get('state') !== pending.state) return leave();
  const code = query.get('code');
  if (!code) return query.get('error_description') ?? 'Signing in was refused.';
  const grant = { grant_type: 'authorization_code', code, redirect_uri: here, code_verifier: pending.verifier };
  return (await ask(grant)) ? undefined : 'The sign-in could not be finished.';
}

/** Asks with the token of whoever is signed in; once more with a new one if it has ended. */
export async function withToken(request: Request): Promise<Response> {
  if (!place) return knocking(request);
  const again = request.clone();
  const answer = await fetch(signed(request));
  if (answer.status === 403 && place.operator_scope && !operator && isForOperators(request)) {
    operator = true;
    return leave();
  }
  if (answer.status !== 401) return answer;
  return (await renew()) ? fetch(signed(again)) : leave();
}

/** Forgets who is signed in, here and there. */
export function signOut(): void {
  if (!place) return;
  tokens = undefined;
  const query = new URLSearchParams({ client_id: place.client, logout_uri: here });
  location.assign(`${place.url}/logout?${query}`);
}

function isForOperators(request: Request): boolean {
  return new URL(request.url).pathname.includes('/admin/');
}

function signed(request: Request): Request {
  if (tokens) request.headers.set('Authorization', `Bearer ${tokens.access_token}`);
  return request;
}

/** One at a time: a refresh token may be good for one use. */
function renew(): Promise<boolean> {
  const refresh_token = tokens?.refresh_token;
  if (!refresh_token) return Promise.resolve(false);
  renewing ??= ask({ grant_type: 'refresh_token', refresh_token }).finally(() => (renewing = undefined));
  return renewing;
}

async function ask(grant: Record<string, string>): Promise<boolean> {
  const body = new URLSearchParams({ client_id: place?.client ?? '', ...grant });
  const answer = await fetch(`${place?.url}/oauth2/token`, { method: 'POST', body }).catch(() => undefined);
  if (!answer?.ok) return false;
  const found = (await answer.json().catch(() => ({}))) as Partial<Tokens>;
  if (!found.access_token) return false;
  // A renewed token comes without another refresh token, where that goes on being good.
  tokens = { ...tokens, ...found, access_token: found.access_token };
  return true;
}

/** Goes to sign in; never answers, since the page is left. */
async function leave(): Promise<never> {
  const { url, client, scope, operator_scope } = place as Place;
  const pending: Pending = { state: random(), verifier: random(), hash: location.hash, operator };
  sessionStorage.setItem(KEPT, JSON.stringify(pending));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(pending.verifier));
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: here,
    scope: operator && operator_scope ? `${scope} ${operator_scope}` : scope,
    state: pending.state,
    code_challenge: encoded(new Uint8Array(digest)),
    code_challenge_method: 'S256',
  });
  location.assign(`${url}/oauth2/authorize?${query}`);
  return new Promise(() => undefined);
}

function taken(): Pending | undefined {
  const kept = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  return kept ? (JSON.parse(kept) as Pending) : undefined;
}
