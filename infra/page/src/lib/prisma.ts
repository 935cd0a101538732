/** What a review reports of its sources: as a table, a drawing and a sentence. */
import type { Schemas } from '../api/client';
import { count, many } from './words';

type Flow = Schemas['FlowView'];
type Source = Schemas['SourceView'];

export function nameOfSource({ database, platform, searched_on }: Source): string {
  const name = database && platform ? `${database} (${platform})` : (database ?? platform ?? 'Unknown source');
  return searched_on ? `${name}, ${searched_on}` : name;
}

export function sentenceOf(flow: Flow): string {
  const found = flow.sources.map((line) => `${nameOfSource(line.source)} (n = ${count(line.found.records)})`).join('; ');
  const { records, duplicates, unread, left } = flow.total;
  return `${many(records, 'record')} were identified from ${found}. Before screening, ${many(duplicates, 'duplicate')} and ${many(unread, 'record')} that could not be read were removed; ${many(left, 'record')} were left.`;
}

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

const WIDE = 380;
const LINE = 22;
const GAP = 44;
const AROUND = 14;
const MOST = 46;

interface Box {
  x: number;
  y: number;
  wide: number;
  high: number;
  lines: { x: number; y: number; text: string }[];
}

function box(x: number, y: number, texts: string[]): Box {
  const lines = texts.map((text, index) => ({ x: x + AROUND, y: y + AROUND + index * LINE + 16, text }));
  return { x, y, wide: WIDE, high: texts.length * LINE + 2 * AROUND, lines };
}

/** An arrow to the right or down. */
const arrow = (x1: number, y1: number, x2: number, y2: number) =>
  `M${x1} ${y1} L${x2} ${y2} ` + (y1 === y2 ? `M${x2 - 7} ${y2 - 4} L${x2} ${y2} L${x2 - 7} ${y2 + 4}` : `M${x2 - 4} ${y2 - 7} L${x2} ${y2} L${x2 + 4} ${y2 - 7}`);

/** The boxes of the identification of records, and the arrows between them. */
export function diagram(flow: Flow): { wide: number; high: number; boxes: Box[]; arrows: string[] } {
  const named = flow.sources.map(({ source, found }) => {
    const number = ` (n = ${count(found.records)})`;
    const name = nameOfSource(source);
    return (name.length + number.length > MOST ? `${name.slice(0, MOST - number.length - 1)}…` : name) + number;
  });
  const { duplicates, duplicates_by: by, unread, left } = flow.total;
  const from = box(1, 1, ['Records identified from:', ...named]);
  const removed = box(1 + WIDE + GAP, 1, [
    'Records removed before screening:', `Duplicate records (n = ${count(duplicates)})`,
    ...(by.said ? [`of these, said by a person (n = ${count(by.said)})`] : []), `Records that could not be read (n = ${count(unread)})`,
  ]);
  const end = box(1, 1 + Math.max(from.high, removed.high) + GAP, [`Records left for screening (n = ${count(left)})`]);
  const across = 1 + Math.min(from.high, removed.high) / 2;
  return {
    wide: removed.x + WIDE + 1,
    high: end.y + end.high + 1,
    boxes: [from, removed, end],
    arrows: [arrow(1 + WIDE, across, removed.x, across), arrow(1 + WIDE / 2, 1 + from.high, 1 + WIDE / 2, end.y)],
  };
}
