/** The PRISMA counts of a review's sources as CSV. */
import type { Schemas } from '../api/client';

type Flow = Schemas['FlowView'];

/** Formats a cell so that spreadsheets do not evaluate it as a formula. */
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
