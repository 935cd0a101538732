/**
 * Browser functions with fallbacks for insecure contexts: browsers disable several APIs if the page was loaded without TLS
 * from another machine, as in a trusted network.
 */
import { announce } from './announcer.svelte';

/** Returns a random UUID. */
export function uuid(): string {
  if (isSecureContext) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return formatUuid(bytes, 4);
}

/** Formats sixteen bytes as a UUID of the given version (RFC 9562). */
function formatUuid(bytes: Uint8Array, version: number): string {
  const versioned = [...bytes].map((byte, index) => (index === 6 ? (byte & 0x0f) | (version << 4) : index === 8 ? (byte & 0x3f) | 0x80 : byte));
  const digits = versioned.map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Runs `act` under a lock that one tab holds at a time. Without support for locks every tab runs it. */
export function withTabLock<T>(name: string, options: LockOptions, act: (isHeld: boolean) => Promise<T>): Promise<T> {
  if (!isSecureContext) return act(true);
  return navigator.locks.request(name, options, (lock) => act(lock !== null)) as Promise<T>;
}

export async function copy(text: string): Promise<void> {
  // Insecure contexts have no clipboard.
  const isCopied = isSecureContext && (await navigator.clipboard.writeText(text).then(() => true, () => false));
  announce(isCopied ? 'Copied' : 'The browser does not allow copying');
}

/** Saves content as a download with the given file name. */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
