/** How things are put: numbers, times, states, and text of strangers. */
import type { FileOfSearch, Search } from '../api/client';

const numbers = new Intl.NumberFormat('en');
const times = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

export const count = (n: number | null | undefined): string => (n == null ? '–' : numbers.format(n));
/** With its noun, which takes an s unless another plural is given. */
export const many = (n: number, one: string, more = `${one}s`): string => `${count(n)} ${n === 1 ? one : more}`;
export const percent = (part: number): string => `${Math.floor(part * 100)} %`;
export const when = (at: string | Date | null | undefined): string => (at ? times.format(new Date(at)) : '–');
export const clockTime = (at: string | Date): string => clock.format(new Date(at));

export function size(bytes: number | null | undefined): string {
  if (bytes == null) return '–';
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${numbers.format(Number((bytes / 1024 ** step).toPrecision(3)))} ${units[step]}`;
}

export function age(seconds: number | null | undefined): string {
  if (seconds == null) return '–';
  const units: [number, string][] = [[86_400, 'day'], [3_600, 'hour'], [60, 'minute'], [1, 'second']];
  const [length, unit] = units.find(([length]) => seconds >= length) ?? [1, 'second'];
  return many(Math.floor(seconds / length), unit);
}

/**
 * Text of strangers, with what would move or reverse other text written out: control characters, and the marks, overrides
 * and isolates of bidirectional text.
 */
export function shown(text: string | null | undefined): string {
  return (text ?? '').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (c) => {
    return `\\u{${c.codePointAt(0)?.toString(16)}}`;
  });
}

export const nameOf = (search: Search): string => shown(search.name) || 'Unnamed search';
export const fileName = (file: FileOfSearch | undefined): string => shown(file?.name) || 'a file without a name';

export interface Word {
  text: string;
  icon: string;
  tone: 'good' | 'bad' | 'busy' | 'quiet';
}

const STATES: Record<string, Word> = {
  Uploading: { text: 'Waiting for files', icon: '↑', tone: 'quiet' },
  Uploaded: { text: 'Waiting to be read', icon: '⋯', tone: 'busy' },
  Parsing: { text: 'Reading', icon: '▸', tone: 'busy' },
  Completed: { text: 'Done', icon: '✓', tone: 'good' },
  Error: { text: 'Failed', icon: '✕', tone: 'bad' },
};
export const STATE_NAMES = Object.keys(STATES);
/** The word for a name of the API; a name of a later version is its own. */
export const wordOf = (words: Record<string, Word>, name: string): Word => words[name] ?? { text: name, icon: '•', tone: 'quiet' };
export const stateWord = (state: string): Word => wordOf(STATES, state);

const PHASES: Record<string, Word> = {
  awaited: { text: 'Not uploaded yet', icon: '↑', tone: 'quiet' },
  waiting: { text: 'Waiting to be read', icon: '⋯', tone: 'busy' },
  reading: { text: 'Reading', icon: '▸', tone: 'busy' },
  marking_duplicates: { text: 'Looking for duplicates', icon: '▸', tone: 'busy' },
  done: { text: 'Read', icon: '✓', tone: 'good' },
  failed: { text: 'Not read', icon: '✕', tone: 'bad' },
};

export function phaseWord(file: FileOfSearch): Word {
  const known = file.phase ?? (file.outcome ? (file.outcome.outcome === 'completed' ? 'done' : 'failed') : undefined);
  return wordOf(PHASES, known ?? (file.received ? 'waiting' : 'awaited'));
}

/** How much of a file is read, from 0 to 1. */
export function partOfFile(file: FileOfSearch): number {
  if (file.outcome) return 1;
  if (file.read_percent != null) return file.read_percent / 100;
  return file.progress && file.size_bytes ? Math.min(1, file.progress.bytes / file.size_bytes) : 0;
}

/** How much of a search is read, from 0 to 1, by the bytes of its files. */
export function partOf(search: Search): number {
  if (search.state === 'Completed') return 1;
  const all = search.files.reduce((sum, file) => sum + (file.size_bytes ?? 1), 0);
  return all ? search.files.reduce((sum, file) => sum + (file.size_bytes ?? 1) * partOfFile(file), 0) / all : 0;
}

/** What was found in a search; lists say it of each file alone. */
export function totalsOf(search: Search): { studies: number; unread: number; duplicates: number } {
  if (search.totals) return search.totals;
  const totals = { studies: search.studies, unread: 0, duplicates: 0 };
  for (const { outcome } of search.files) {
    if (outcome?.outcome !== 'completed') continue;
    totals.unread += outcome.quarantined;
    totals.duplicates += outcome.duplicates ?? 0;
  }
  return totals;
}

export const hasEnded = (search: Search): boolean => search.completed_at != null;
