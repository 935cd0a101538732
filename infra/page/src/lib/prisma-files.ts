/** The PRISMA report of a review as files: CSV, a table for word processors, and a picture. */
import type { Schemas } from '../api/client';
import { count, escaped } from './format';

type Flow = Schemas['FlowView'];
type Drawing = Schemas['Drawing'];
export type Method = Schemas['Method'];

export const METHODS: [Method, string][] = [['database', 'Databases'], ['register', 'Registers'], ['other', 'Other methods']];

/** Formats a cell so that spreadsheets do not evaluate it as a formula. */
function cell(value: string | number | null): string {
  const text = String(value ?? '');
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(flow: Flow): string {
  const head = ['method', 'database', 'platform', 'searched_on', 'guessed', 'files', 'records', 'unread', 'studies', 'duplicates', 'left'];
  const rows = flow.sources.map(({ source, method, found }) => [
    method, source.database, source.platform, source.searched_on, source.is_guessed ? 'yes' : 'no',
    found.files, found.records, found.unread, found.studies, found.duplicates, found.left,
  ]);
  return [head, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** Escapes a text for RTF, whose files contain ASCII only. */
function rtfText(text: string): string {
  return [...escaped(text).replace(/[\\{}]/g, '\\$&')].map((c) => {
    if (c <= '~') return c;
    // RTF has UTF-16 code units as signed numbers, each followed by a replacement character.
    return Array.from({ length: c.length }, (_, index) => `\\u${(c.charCodeAt(index) << 16) >> 16}?`).join('');
  }).join('');
}

/** The widths of the columns of the table, in twentieths of a point. */
const COLUMNS = [4_200, 1_700, 1_200, 1_200, 1_200];

function rtfRow(cells: string[], isBold: boolean): string {
  let right = 0;
  const ends = COLUMNS.map((width) => `\\clbrdrt\\brdrs\\clbrdrl\\brdrs\\clbrdrb\\brdrs\\clbrdrr\\brdrs\\cellx${(right += width)}`);
  const texts = cells.map((text, index) => `\\pard\\intbl${index > 1 ? '\\qr' : ''} ${isBold ? `{\\b ${rtfText(text)}}` : rtfText(text)}\\cell`);
  return `\\trowd\\trgaph80${isBold ? '\\trhdr' : ''}${ends.join('')}\n${texts.join('\n')}\n\\row`;
}

/** Returns the counts and the sentence as RTF, which word processors open without a conversion. */
export function rtf(flow: Flow, review: string): string {
  const { total } = flow;
  const counts = (found: Schemas['RecordCountsView']) => [found.records, found.duplicates, found.unread].map(count);
  const rows = METHODS.flatMap(([method, title]) => {
    const lines = flow.sources.filter((line) => line.method === method);
    return lines.map(({ source, found }) => rtfRow([[source.database ?? source.platform ?? 'Unknown source', source.database && source.platform ? ` (${source.platform})` : '', ` [${title}]`].join(''), source.searched_on ?? '', ...counts(found)], false));
  });
  const paragraph = (text: string) => `\\pard\\sa120 ${rtfText(text)}\\par`;
  return [
    '{\\rtf1\\ansi\\ansicpg1252\\deff0{\\fonttbl{\\f0 Calibri;}}\\f0\\fs22',
    `\\pard\\sa120{\\b ${rtfText(`Records identified: ${review}`)}}\\par`,
    rtfRow(['Source', 'Date of search', 'Records', 'Duplicates', 'Not readable'], true),
    ...rows,
    rtfRow(['Total', '', ...counts(total)], true),
    paragraph(''),
    paragraph(`Records to be screened: ${count(total.left)}`),
    paragraph(flow.sentence),
    '}',
  ].join('\n');
}

/** Pixels per unit of the drawing: enough for print. */
const SCALE = 3;

/** Draws the flow diagram as a PNG picture. */
export function png(drawing: Drawing): Promise<Blob> {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [drawing.wide * SCALE, drawing.high * SCALE];
  const at = canvas.getContext('2d');
  if (!at) throw new Error('The browser cannot draw pictures.');
  at.scale(SCALE, SCALE);
  at.fillStyle = '#fff';
  at.fillRect(0, 0, drawing.wide, drawing.high);
  [at.strokeStyle, at.fillStyle, at.font] = ['#222', '#222', '15px sans-serif'];
  for (const box of drawing.boxes) {
    at.strokeRect(box.x, box.y, box.wide, box.high);
    for (const line of box.lines) at.fillText(escaped(line.text), line.x, line.y);
  }
  for (const arrow of drawing.arrows) at.stroke(new Path2D(arrow));
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error('The browser cannot save pictures.'))), 'image/png'));
}
