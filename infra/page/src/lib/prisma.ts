/** What a review reports of its sources, as a table for other programs. */
import type { Schemas } from '../api/client';

type Flow = Schemas['FlowView'];

/** A cell that no spreadsheet takes for a formula. */
function cell(value: string | number | null): string {
  const text = String(value ?? '');
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(flow: Flow): string {
  const head = ['database', 'platform', 'searched_on', 'guessed', 'files', 'records', 'unread', 'studies', 'duplicates', 'left'];
  const rows = flow.sources.map(({ source, found }) => [
    source.database, source.platform, source.searched_on, source.is_guessed ? 'yes' : 'no',
    found.files, found.records, found.unread, found.studies, found.duplicates, found.left,
  ]);
  return [head, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}
