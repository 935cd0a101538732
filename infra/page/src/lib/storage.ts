/** Data that survives a reload: the current upload with its files (IndexedDB), and drafts of text (local storage). */
import type { SourceInput } from './sources';

export interface StoredUpload {
  project: string;
  /** The idempotency key, under which an interrupted upload continues. */
  key: string;
  name: string;
  files: File[];
  /** The sources of the files, in the same order. Missing if an earlier version of the page stored the upload. */
  sources?: SourceInput[];
  /** Whether the request to create the import was sent. */
  isBegun: boolean;
  /** The ids that the server has assigned to the files, in the same order; empty before it has answered. */
  ids: string[];
  searchId: string | undefined;
}

const STORE = 'uploads';

/** Reads the upload of a review, and calls `act` with it in the same transaction. Resolves to it after the transaction. */
function transaction(project: string, mode: IDBTransactionMode, act?: (store: IDBObjectStore, found: StoredUpload | undefined) => void) {
  return new Promise<StoredUpload | undefined>((done, fail) => {
    const opening = indexedDB.open('search-import', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => fail(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const transaction = database.transaction(STORE, mode);
      const store = transaction.objectStore(STORE);
      const reading = store.get(project) as IDBRequest<StoredUpload | undefined>;
      reading.onsuccess = () => act?.(store, reading.result);
      transaction.oncomplete = () => (database.close(), done(reading.result));
      transaction.onabort = () => (database.close(), fail(transaction.error));
    };
  });
}

const read = (project: string) => transaction(project, 'readonly');
/** Stores an upload, or replaces the one with the key `replaced`. Resolves to `false` if another tab's stays. */
const write = async (upload: StoredUpload, replaced: string) => {
  const isOurs = (found: StoredUpload | undefined) => {
    // Another tab may have begun the same upload, whose files are fixed since.
    if (found?.key === upload.key) return upload.isBegun || !found.isBegun;
    return !found || found.key === replaced;
  };
  return isOurs(await transaction(upload.project, 'readwrite', (store, found) => isOurs(found) && store.put(upload, upload.project)));
};
/** Deletes the upload with a key. */
const drop = (project: string, key: string) =>
  transaction(project, 'readwrite', (store, found) => found?.key === key && store.delete(project));

export const storedUploads = { read, write, drop };

/** Returns the rest of each key of this browser's local storage that begins with `prefix`. */
export const storedKeys = (prefix: string): string[] =>
  Object.keys(localStorage).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []));

/** Returns accessors of a text in this browser's local storage; `null` removes it. */
export function storedText(key: string): { get: () => string | null; set: (text: string | null) => void } {
  return {
    get: () => localStorage.getItem(key),
    set: (text) => (text == null ? localStorage.removeItem(key) : localStorage.setItem(key, text)),
  };
}
