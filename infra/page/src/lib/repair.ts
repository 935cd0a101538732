/** Repairs: an import that reads files or records that another import could not read. */
import { api, unwrap, Fault, type Schemas } from '../api/client';
import { uploadFile } from '../api/upload-file';
import { uuid } from './browser';
import { storedKeys, storedText } from './storage';

const ENDED = 'An earlier attempt ended before all files arrived. Nothing is lost. Try again.';

type Request = Schemas['NewRepair'];

/** What this browser stores of a repair until all files are sent. */
interface StoredRepair {
  /** The idempotency key, under which an interrupted repair continues. */
  key: string;
  /** The repairing import; missing before the server has responded. */
  search?: string;
  /** The files, if they are texts, in the order of the request. */
  texts?: string[];
}

const prefixOf = (search: string) => `repair ${search} `;
const storedRepair = (search: string, request: string) => {
  const { get, set } = storedText(prefixOf(search) + request);
  return {
    get: (): StoredRepair | undefined => {
      const text = get();
      // Earlier versions of the page stored the key only.
      return text == null ? undefined : text.startsWith('{') ? (JSON.parse(text) as StoredRepair) : { key: text };
    },
    set: (repair: StoredRepair): void => {
      try {
        set(JSON.stringify(repair));
      } catch {
        // The texts exceed the limit of the browser.
        set(JSON.stringify({ ...repair, texts: undefined }));
      }
    },
    drop: () => set(null),
  };
};

/** Returns the repairs of an import whose files this browser has not sent completely, by the id of the repairing import. */
export function interruptedRepairs(search: string): Map<string, { request: Request; texts: string[] }> {
  return new Map(storedKeys(prefixOf(search)).flatMap((request) => {
    const { search: made, texts = [] } = storedRepair(search, request).get() ?? {};
    return made ? [[made, { request: JSON.parse(request) as Request, texts }]] : [];
  }));
}

/**
 * Creates a repair and uploads its files, which are given by their index in the request. Resolves to the id of the new
 * import. A request keeps its idempotency key until it has succeeded, so an interrupted one continues instead of running
 * twice.
 */
export async function repair(
  path: { project: string; search: string },
  request: Request,
  files: ReadonlyMap<number, Blob | string>,
  onPart: (part: number) => void = () => undefined,
): Promise<string> {
  const stored = storedRepair(path.search, JSON.stringify(request));
  const found = stored.get() ?? { key: uuid() };
  stored.set(found);
  const announced = await unwrap(
    api.POST('/projects/{project}/searches/{search}/repair', {
      params: { path, header: { 'Idempotency-Key': found.key } },
      body: request,
    }),
  ).catch((error: unknown) => {
    // A rejected request has created nothing, or another key cannot repair the same file again. One without an answer may
    // have created the import.
    if (error instanceof Fault && error.status >= 400 && error.status < 500) stored.drop();
    throw error instanceof Fault && error.endedImport ? new Fault(ENDED, error.status) : error;
  });
  const texts = [...files.values()].filter((file) => typeof file === 'string');
  stored.set({ key: found.key, search: announced.search_id, texts });
  const named = [...files.entries()].sort(([a], [b]) => a - b).map(([index, content]) => ({ index, content }));
  const names = named.map(({ index }) => request.files?.[index]?.replacement?.name);
  for (const file of announced.files) {
    // The answer to a repeated request lists only the missing files, which are matched by name.
    const index = names.indexOf(file.name);
    const match = named[index];
    if (!match) continue;
    names[index] = undefined;
    await uploadFile(file.upload, typeof match.content === 'string' ? new Blob([match.content]) : match.content, onPart);
  }
  stored.drop();
  return announced.search_id;
}
