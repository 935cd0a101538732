/** Formatting of numbers, times, states and untrusted text. */
import type { FileOfSearch, Search, Study } from '../api/client';

const numbers = new Intl.NumberFormat('en');
const times = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

export const count = (n: number | null | undefined): string => (n == null ? '–' : numbers.format(n));
/** Formats a number with its noun, which takes an s unless another plural is given. */
export const many = (n: number, one: string, more = `${one}s`): string => `${count(n)} ${n === 1 ? one : more}`;
export const percent = (part: number): string => `${Math.floor(part * 100)} %`;
export const when = (at: string | Date | null | undefined): string => (at ? times.format(new Date(at)) : '–');
export const clockTime = (at: string | Date): string => clock.format(new Date(at));

/** Formats a number of bytes with three significant digits, or all four of up to 1,023 in one unit. */
export function size(bytes: number | null | undefined): string {
  if (bytes == null) return '–';
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  const decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return `${numbers.format(Number(value.toFixed(decimals)))} ${units[step]}`;
}

export function age(seconds: number | null | undefined): string {
  if (seconds == null) return '–';
  const units: [number, string][] = [[86_400, 'day'], [3_600, 'hour'], [60, 'minute'], [1, 'second']];
  const [length, unit] = units.find(([length]) => seconds >= length) ?? [1, 'second'];
  return many(Math.floor(seconds / length), unit);
}

/**
 * Escapes characters of untrusted text that could move or reverse other text: control characters, and the marks, overrides
 * and isolates of bidirectional text.
 */
export function escaped(text: string | null | undefined): string {
  return (text ?? '').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (c) => {
    return `\\u{${c.codePointAt(0)?.toString(16)}}`;
  });
}

/** A word, as the search for words splits a text: each character of a script without spaces is a word. */
const WORD = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]\p{M}*|(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])[\p{Alphabetic}\p{N}\p{M}])+/gu;
/** The letters that Unicode does not decompose. */
const PLAIN: Record<string, string> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', ı: 'i' };
const folded = (word: string): string => word.normalize('NFKD').toLowerCase().replace(/\p{M}/gu, '').replace(/[ßæœøłđðþı]/g, (c) => PLAIN[c] ?? c);

/** Splits a text into pieces, each with whether it is a word that was searched for. */
export function marked(text: string | null | undefined, searched: string): [string, boolean][] {
  if (!text) return [];
  const wanted = (searched.match(WORD) ?? []).map(folded);
  // The last word may continue, unless a quotation mark follows it.
  const open = /["“”„«»＂]\s*$/u.test(searched) ? undefined : wanted.at(-1);
  const all = new Set(wanted);
  const pieces: [string, boolean][] = [];
  let end = 0;
  for (const { 0: word, index } of wanted.length ? text.matchAll(WORD) : []) {
    const known = folded(word);
    if (!all.has(known) && !(open && known.startsWith(open))) continue;
    if (index > end) pieces.push([text.slice(end, index), false]);
    end = index + word.length;
    pieces.push([word, true]);
  }
  if (end < text.length) pieces.push([text.slice(end), false]);
  return pieces;
}

export const nameOf = (search: Search): string => escaped(search.name) || 'Unnamed import';
export const fileName = (file: FileOfSearch | undefined): string => escaped(file?.name) || 'a file without a name';

export interface Label {
  text: string;
  icon: string;
  tone: 'good' | 'bad' | 'busy' | 'quiet';
}

const STATES: Record<string, Label> = {
  Uploading: { text: 'Waiting for files', icon: '↑', tone: 'quiet' },
  Uploaded: { text: 'Waiting to be read', icon: '⋯', tone: 'busy' },
  Parsing: { text: 'Reading', icon: '▸', tone: 'busy' },
  Completed: { text: 'Done', icon: '✓', tone: 'good' },
  Error: { text: 'Failed', icon: '✕', tone: 'bad' },
};
export const STATE_NAMES = Object.keys(STATES);
/** Returns the label of a name in the API. A name of a newer version is its own label. */
export const labelOf = (labels: Record<string, Label>, name: string): Label => labels[name] ?? { text: name, icon: '•', tone: 'quiet' };
export const stateLabel = (state: string): Label => labelOf(STATES, state);

const PHASES: Record<string, Label> = {
  awaited: { text: 'Not uploaded yet', icon: '↑', tone: 'quiet' },
  waiting: { text: 'Waiting to be read', icon: '⋯', tone: 'busy' },
  reading: { text: 'Reading', icon: '▸', tone: 'busy' },
  marking_duplicates: { text: 'Finding duplicates', icon: '▸', tone: 'busy' },
  done: { text: 'Read', icon: '✓', tone: 'good' },
  failed: { text: 'Not read', icon: '✕', tone: 'bad' },
};

export function phaseLabel(file: FileOfSearch): Label {
  const known = file.phase ?? (file.outcome ? (file.outcome.outcome === 'completed' ? 'done' : 'failed') : undefined);
  return labelOf(PHASES, known ?? (file.received ? 'waiting' : 'awaited'));
}

/** Returns the fraction of a file that is read, from 0 to 1. */
export function partOfFile(file: FileOfSearch): number {
  if (file.outcome) return 1;
  if (file.read_percent != null) return file.read_percent / 100;
  return file.progress && file.size_bytes ? Math.min(1, file.progress.bytes / file.size_bytes) : 0;
}

/** Returns the fraction of an import that is read, from 0 to 1, weighted by the sizes of its files. */
export function partOf(search: Search): number {
  if (search.state === 'Completed') return 1;
  const all = search.files.reduce((sum, file) => sum + (file.size_bytes ?? 1), 0);
  return all ? search.files.reduce((sum, file) => sum + (file.size_bytes ?? 1) * partOfFile(file), 0) / all : 0;
}

/** The totals of an import; undefined where they are unknown. */
export interface Totals {
  studies: number;
  unread: number | undefined;
  duplicates: number | undefined;
}

/** Returns the totals of an import with its repairs, the same in all lists and screens. */
export function totalsOf(search: Search): Totals {
  return search.totals_with_repairs ?? search.totals ?? { studies: search.studies, unread: undefined, duplicates: undefined };
}

/** Returns the label of a marked study. A possible duplicate counts only after a user has confirmed it. */
export const duplicateLabel = (mark: Study['duplicate']): string => (mark?.tier === 'possible' ? 'Possible duplicate' : 'Duplicate');

export const hasEnded = (search: Search): boolean => search.completed_at != null;
