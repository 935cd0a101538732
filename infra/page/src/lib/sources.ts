/** The sources of files, as a user enters them. */
import { api, unwrap, type Schemas } from '../api/client';

/** The entered values; empty strings if nothing is entered. */
export interface SourceInput {
  database: string;
  platform: string;
  searched: string;
}

export const emptySource = (): SourceInput => ({ database: '', platform: '', searched: '' });

/** Saves the sources of files. A source that is entirely empty is detected from its file. */
export async function saveSources(path: { project: string; search: string }, sources: ReadonlyMap<string, SourceInput>): Promise<void> {
  const files = [...sources].map(([file_id, { database, platform, searched }]) => {
    const source = { database: database.trim() || null, platform: platform.trim() || null, searched_on: searched || null };
    return { file_id, source: Object.values(source).some(Boolean) ? source : null };
  });
  const body: Schemas['NewSources'] = { files };
  await unwrap(api.POST('/projects/{project}/searches/{search}/sources', { params: { path }, body }));
}
