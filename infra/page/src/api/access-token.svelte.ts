/**
 * The access token of a server that other machines can reach. The server prints it when it starts, and users enter it once
 * per tab. It is kept in the session storage of the tab and sent as a header field, never in an address.
 */

const STORAGE_KEY = 'token';

export const access = $state({
  /** Whether the server has rejected a request without a token, or with the token of an earlier start. */
  isDenied: false,
  token: sessionStorage.getItem(STORAGE_KEY) ?? '',
});

/** Returns the header fields that authorize a request. */
export const authorization = (): Record<string, string> => (access.token ? { Authorization: `Bearer ${access.token}` } : {});

/** Sends a request with the token, and records if the server requires another one. */
export async function fetchWithToken(request: Request): Promise<Response> {
  for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
  const response = await fetch(request);
  if (response.status === 401) access.isDenied = true;
  return response;
}

/** Stores a token if the server accepts it. Resolves to whether it does. */
export async function submitToken(token: string, address: string): Promise<boolean> {
  const response = await fetch(address, { headers: { Authorization: `Bearer ${token}` } });
  if (response.status === 401) return false;
  sessionStorage.setItem(STORAGE_KEY, token);
  [access.token, access.isDenied] = [token, false];
  return true;
}
