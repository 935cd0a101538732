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

function request<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  return new Promise((done, fail) => {
    const opening = indexedDB.open('search-import', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => fail(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const operation = act(database.transaction(STORE, mode).objectStore(STORE));
      operation.onsuccess = () => done(operation.result);
      operation.onerror = () => fail(operation.error);
      operation.transaction?.addEventListener('complete', () => database.close());
    };
  });
}

const read = (project: string) =>
  request('readonly', (store) => store.get(project) as IDBRequest<StoredUpload | undefined>);
const write = (upload: StoredUpload) => request('readwrite', (store) => store.put(upload, upload.project));
const drop = (project: string) => request('readwrite', (store) => store.delete(project));

export const storedUploads = { read, write, drop };

/** Returns accessors of a text in this browser's local storage; `null` removes it. */
export function storedText(key: string): { get: () => string | null; set: (text: string | null) => void } {
  return {
    get: () => localStorage.getItem(key),
    set: (text) => (text == null ? localStorage.removeItem(key) : localStorage.setItem(key, text)),
  };
}
