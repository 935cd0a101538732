/**
 * The token of a server that other machines reach: it prints one when it starts, and people type it once for each tab. It is in
 * the storage of the tab and is sent as a header field, never in an address.
 */

const KEPT = 'token';

export const door = $state({
  /** Whether the server has refused what was asked without the token, or with that of an earlier start. */
  isShut: false,
  token: sessionStorage.getItem(KEPT) ?? '',
});

/** What a request to the server takes along. */
export const shown = (): Record<string, string> => (door.token ? { Authorization: `Bearer ${door.token}` } : {});

/** Asks with the token, and notes when the server wants another one. */
export async function knocking(request: Request): Promise<Response> {
  for (const [name, value] of Object.entries(shown())) request.headers.set(name, value);
  const answer = await fetch(request);
  if (answer.status === 401) door.isShut = true;
  return answer;
}

/** Keeps a token if the server takes it. Resolves to whether it does. */
export async function open(token: string, address: string): Promise<boolean> {
  const answer = await fetch(address, { headers: { Authorization: `Bearer ${token}` } });
  if (answer.status === 401) return false;
  sessionStorage.setItem(KEPT, token);
  [door.token, door.isShut] = [token, false];
  return true;
}
