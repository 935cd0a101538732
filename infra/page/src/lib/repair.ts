/** Repairs: a search of its own that reads what another one could not. */
import { api, asked, Fault, type Schemas } from '../api/client';
import { send } from '../api/send';
import { uuid } from './browser';
import { note } from './kept';

/**
 * Announces a repair and uploads what it needs, `files` by their places in the request. Resolves to the id of the search
 * that repairs. The same request has the same idempotency key until it is done, so that one that was interrupted is
 * continued, and not made twice.
 */
export async function repair(
  path: { project: string; search: string },
  request: Schemas['NewRepair'],
  files: ReadonlyMap<number, Blob>,
  onPart: (part: number) => void = () => undefined,
): Promise<string> {
  const kept = note(`repair ${path.search} ${JSON.stringify(request)}`);
  const key = kept.get() ?? uuid();
  kept.set(key);
  const announced = await asked(
    api.POST('/projects/{project}/searches/{search}/repair', {
      params: { path, header: { 'Idempotency-Key': key } },
      body: request,
    }),
  ).catch((error: unknown) => {
    // What was refused has announced nothing; what was not answered may have.
    if (error instanceof Fault && error.status >= 400 && error.status < 500) kept.set(null);
    throw error;
  });
  const named = [...files.entries()].sort(([a], [b]) => a - b).map(([index, blob]) => ({ index, blob }));
  const names = named.map(({ index }) => request.files?.[index]?.replacement?.name);
  for (const file of announced.files) {
    // A repeated request has those that are missing alone: each is known by its name and size.
    const place = names.indexOf(file.name);
    const found = named[place];
    if (!found) continue;
    names[place] = undefined;
    await send(file.upload, found.blob, onPart);
  }
  kept.set(null);
  return announced.search_id;
}
