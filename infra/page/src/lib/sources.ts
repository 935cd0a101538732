/** The sources of files, as a user enters them. */
import { api, unwrap, type Schemas } from '../api/client';

/** The entered values; empty strings if nothing is entered. */
export interface SourceInput {
  database: string;
  platform: string;
  searched: string;
}

export const emptySource = (): SourceInput => ({ database: '', platform: '', searched: '' });

/** Converts a source of the API to the values of a form. */
export function inputOf(source: Partial<Schemas['Source']> | null | undefined): SourceInput {
  return { database: source?.database ?? '', platform: source?.platform ?? '', searched: source?.searched_on ?? '' };
}

/** Converts entered values to a source of the API. */
export function sourceOf({ database, platform, searched }: SourceInput): Schemas['Source'] {
  return { database: database.trim() || null, platform: platform.trim() || null, searched_on: searched || null };
}

/** Saves the sources of files. A source that is entirely empty is detected from its file. */
export async function saveSources(path: { project: string; search: string }, sources: ReadonlyMap<string, SourceInput>): Promise<void> {
  const files = [...sources].map(([file_id, input]) => {
    const source = sourceOf(input);
    return { file_id, source: Object.values(source).some(Boolean) ? source : null };
  });
  const body: Schemas['NewSources'] = { files };
  await unwrap(api.POST('/projects/{project}/searches/{search}/sources', { params: { path }, body }));
}

/** Changes the sources of all files of a review. Resolves to the number of changed files. */
export async function changeSources(project: string, body: Schemas['ReviewSources']): Promise<number> {
  return (await unwrap(api.POST('/projects/{project}/sources', { params: { path: { project } }, body }))).files;
}
