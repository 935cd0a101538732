/** Repairs: an import that reads files or records that another import could not read. */
import { api, unwrap, Fault, type Schemas } from '../api/client';
import { uploadFile } from '../api/upload-file';
import { uuid } from './browser';
import { storedText } from './storage';

const ENDED = 'An earlier attempt ended before all files arrived. Nothing is lost. Try again.';

/**
 * Creates a repair and uploads its files, which are given by their index in the request. Resolves to the id of the new
 * import. A request keeps its idempotency key until it has succeeded, so an interrupted one continues instead of running
 * twice.
 */
export async function repair(
  path: { project: string; search: string },
  request: Schemas['NewRepair'],
  files: ReadonlyMap<number, Blob>,
  onPart: (part: number) => void = () => undefined,
): Promise<string> {
  const storedKey = storedText(`repair ${path.search} ${JSON.stringify(request)}`);
  const key = storedKey.get() ?? uuid();
  storedKey.set(key);
  const announced = await unwrap(
    api.POST('/projects/{project}/searches/{search}/repair', {
      params: { path, header: { 'Idempotency-Key': key } },
      body: request,
    }),
  ).catch((error: unknown) => {
    // A rejected request has created nothing, or another key cannot repair the same file again. One without an answer may
    // have created the import.
    if (error instanceof Fault && error.status >= 400 && error.status < 500) storedKey.set(null);
    throw error instanceof Fault && error.endedImport ? new Fault(ENDED, error.status) : error;
  });
  const named = [...files.entries()].sort(([a], [b]) => a - b).map(([index, blob]) => ({ index, blob }));
  const names = named.map(({ index }) => request.files?.[index]?.replacement?.name);
  for (const file of announced.files) {
    // The answer to a repeated request lists only the missing files, which are matched by name.
    const index = names.indexOf(file.name);
    const match = named[index];
    if (!match) continue;
    names[index] = undefined;
    await uploadFile(file.upload, match.blob, onPart);
  }
  storedKey.set(null);
  return announced.search_id;
}
