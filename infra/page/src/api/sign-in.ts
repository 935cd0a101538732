/**
 * Sign-in at an identity provider, by the authorization code flow of OAuth 2.1 with PKCE (RFC 7636).
 *
 * The deployment writes the provider into the page. Tokens are only in the memory of a tab, where scripts of other tabs or
 * later sessions cannot find them. A reload requests new tokens, which users do not notice while the provider has a session.
 */

import { fetchWithToken } from './access-token.svelte';

/** The identity provider, as JSON in the page's `meta` of this name. */
interface Provider {
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

/** A sign-in in progress, stored while the user is at the provider. It is useless without the authorization code. */
interface Pending {
  state: string;
  verifier: string;
  /** The route that the user came from. */
  hash: string;
  /** Whether the scope of operators was requested. */
  operator?: boolean;
}

const configured = document.querySelector<HTMLMetaElement>('meta[name="sign-in"]')?.content;
const provider = configured ? (JSON.parse(configured) as Provider) : undefined;
const STORAGE_KEY = 'sign-in';
const TOO_MANY_REQUESTS = 429;
const here = new URL('.', location.href).href;
let tokens: Tokens | undefined;
let renewing: Promise<boolean> | undefined;
/** Whether the tokens were requested with the scope of operators, so that a refusal does not request it again. */
let operator = false;

export const isSignedIn = !!provider;
/** Whether a user who may see all reviews can ask for the scope of operators. */
export const canBecomeOperator = !!provider?.operator_scope;

const encoded = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const random = () => encoded(crypto.getRandomValues(new Uint8Array(32)));

/** Signs the user in. Resolves to the reason if that was refused. */
export async function signIn(): Promise<string | undefined> {
  if (!provider) return undefined;
  const query = new URLSearchParams(location.search);
  const pending = takePending();
  operator = pending?.operator ?? false;
  if (!query.has('code') && !query.has('error')) return redirect();
  history.replaceState(null, '', here);
  // Unlike `replaceState`, this fires `hashchange`.
  if (pending?.hash) location.replace(pending.hash);
  // A code planted by an attacker would make the user work under the attacker's account.
  if (!pending || query.get('state') !== pending.state) return redirect();
  const code = query.get('code');
  if (!code) return query.get('error_description') ?? 'The sign-in was refused.';
  const grant = { grant_type: 'authorization_code', code, redirect_uri: here, code_verifier: pending.verifier };
  const isGranted = await requestTokens(grant).catch(() => false);
  return isGranted ? undefined : 'The sign-in could not be completed.';
}

/**
 * Sends a request with the user's token; if it has expired, sends the request again with a new one. Rejects if the API or
 * the provider does not answer.
 */
export async function withToken(request: Request): Promise<Response> {
  if (!provider) return fetchWithToken(request);
  const retry = request.clone();
  const response = await fetch(authorize(request));
  if (response.status === 403 && provider.operator_scope && !operator && isForOperators(request)) {
    operator = true;
    return redirect();
  }
  if (response.status !== 401) return response;
  return (await renew()) ? fetch(authorize(retry)) : redirect();
}

/** Signs the user out, here and at the provider. */
export function signOut(): void {
  if (!provider) return;
  tokens = undefined;
  const query = new URLSearchParams({ client_id: provider.client, logout_uri: here });
  location.assign(`${provider.url}/logout?${query}`);
}

function isForOperators(request: Request): boolean {
  return new URL(request.url).pathname.includes('/admin/');
}

function authorize(request: Request): Request {
  if (tokens) request.headers.set('Authorization', `Bearer ${tokens.access_token}`);
  return request;
}

/** Renews the tokens. Concurrent calls share one request, because a refresh token may be valid for a single use. */
function renew(): Promise<boolean> {
  const refresh_token = tokens?.refresh_token;
  if (!refresh_token) return Promise.resolve(false);
  renewing ??= requestTokens({ grant_type: 'refresh_token', refresh_token }).finally(() => (renewing = undefined));
  return renewing;
}

/**
 * Requests tokens. Resolves to whether the provider grants them. Rejects if the provider does not answer, because a redirect
 * would then only lose what the user has entered.
 */
async function requestTokens(grant: Record<string, string>): Promise<boolean> {
  const body = new URLSearchParams({ client_id: provider?.client ?? '', ...grant });
  const response = await fetch(`${provider?.url}/oauth2/token`, { method: 'POST', body });
  if (response.status === TOO_MANY_REQUESTS || response.status >= 500) {
    throw new Error(`the provider responded with status ${response.status}`);
  }
  if (!response.ok) return false;
  const found = (await response.json()) as Partial<Tokens>;
  if (!found.access_token) return false;
  // The response may omit the refresh token; the current one then stays valid.
  tokens = { ...tokens, ...found, access_token: found.access_token };
  return true;
}

/** Redirects to the provider. Never resolves, because the browser leaves the page. */
async function redirect(): Promise<never> {
  const { url, client, scope, operator_scope } = provider as Provider;
  const pending: Pending = { state: random(), verifier: random(), hash: location.hash, operator };
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(pending));
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

function takePending(): Pending | undefined {
  const stored = sessionStorage.getItem(STORAGE_KEY);
  sessionStorage.removeItem(STORAGE_KEY);
  return stored ? (JSON.parse(stored) as Pending) : undefined;
}
