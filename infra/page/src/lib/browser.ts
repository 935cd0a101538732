/**
 * What browsers keep from pages that came without TLS from another machine, and what stands in for it: `serve` may be reached
 * so in a network that is trusted.
 */
import { say } from './said.svelte';

/** A random UUID. */
export function uuid(): string {
  if (isSecureContext) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return written(bytes, 4);
}

/** The UUID of version 5 of a name; undefined where the browser does not digest. */
export async function uuidOf(space: string, name: string): Promise<string | undefined> {
  if (!isSecureContext) return undefined;
  const within = Uint8Array.from(space.replaceAll('-', '').match(/../g) ?? [], (digits) => parseInt(digits, 16));
  const digest = await crypto.subtle.digest('SHA-1', new Uint8Array([...within, ...new TextEncoder().encode(name)]));
  return written(new Uint8Array(digest, 0, 16), 5);
}

/** Sixteen bytes as a UUID of a version (RFC 9562). */
function written(bytes: Uint8Array, version: number): string {
  const marked = [...bytes].map((byte, place) => (place === 6 ? (byte & 0x0f) | (version << 4) : place === 8 ? (byte & 0x3f) | 0x80 : byte));
  const digits = marked.map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Does something that only one tab does at a time; where tabs cannot agree, each does it. */
export function alone<T>(name: string, options: LockOptions, act: (isOurs: boolean) => Promise<T>): Promise<T> {
  if (!isSecureContext) return act(true);
  return navigator.locks.request(name, options, (lock) => act(lock !== null)) as Promise<T>;
}

export async function copy(text: string): Promise<void> {
  // There is no clipboard either.
  const isCopied = isSecureContext && (await navigator.clipboard.writeText(text).then(() => true, () => false));
  say(isCopied ? 'Copied' : 'The browser does not allow copying');
}

/** Has the browser save something under a name. */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
