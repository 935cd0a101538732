/** What survives a reload: the upload that is prepared or under way, with its files, in the browser's own database. */
import type { Said } from './sources';

export interface Kept {
  project: string;
  /** The idempotency key: under it the upload is continued, whatever was interrupted. */
  key: string;
  name: string;
  files: File[];
  /** Where they come from, as far as it was said; not kept by pages of before. */
  sources?: Said[];
  /** Whether the search was announced, or may have been. */
  isBegun: boolean;
  /** The ids of the files once the server has said them, in their order. */
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
      const asked = act(database.transaction(STORE, mode).objectStore(STORE));
      asked.onsuccess = () => done(asked.result);
      asked.onerror = () => fail(asked.error);
      asked.transaction?.addEventListener('complete', () => database.close());
    };
  });
}

const read = (project: string) =>
  request('readonly', (store) => store.get(project) as IDBRequest<Kept | undefined>);
const write = (kept: Kept) => request('readwrite', (store) => store.put(kept, kept.project));
const drop = (project: string) => request('readwrite', (store) => store.delete(project));

export const kept = { read, write, drop };

/** A text that is kept while it is written, for this browser alone. */
export function note(key: string): { get: () => string | null; set: (text: string | null) => void } {
  return {
    get: () => localStorage.getItem(key),
    set: (text) => (text == null ? localStorage.removeItem(key) : localStorage.setItem(key, text)),
  };
}
