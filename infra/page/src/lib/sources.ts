/** Where the records of files come from, as somebody says it. */
import { api, asked, type Schemas } from '../api/client';

/** What is typed of it; empty where nothing is said. */
export interface Said {
  database: string;
  platform: string;
  searched: string;
}

export const unsaid = (): Said => ({ database: '', platform: '', searched: '' });

/** Writes it down; what is left empty altogether is guessed from the file. */
export async function tell(path: { project: string; search: string }, said: ReadonlyMap<string, Said>): Promise<void> {
  const files = [...said].map(([file_id, { database, platform, searched }]) => {
    const source = { database: database.trim() || null, platform: platform.trim() || null, searched_on: searched || null };
    return { file_id, source: Object.values(source).some(Boolean) ? source : null };
  });
  const body: Schemas['NewSources'] = { files };
  await asked(api.POST('/projects/{project}/searches/{search}/sources', { params: { path }, body }));
}
