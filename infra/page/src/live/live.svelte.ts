/**
 * Changes of searches, as they happen, in every tab.
 *
 * A browser gives an origin six connections, and a stream holds one for as long as it lasts: with a stream for each tab the
 * seventh would not load. So one tab leads: it holds a lock, which the browser hands on when the tab goes, and tells the
 * others by a channel. Where the deployment does not stream, the leader polls.
 */
import { api, BASE, deployment, type Search } from '../api/client';
import { door } from '../api/door.svelte';
import { alone } from '../lib/browser';
import { hasEnded } from '../lib/words';

/** How long to wait before a stream is opened again that the server has refused. */
const AGAIN_MS = 2_000;
/** How often the leader shows that it is there, and how long the others believe it. */
const BEAT_MS = 5_000;
const SILENCE_MS = 12_000;
/** How often changes are asked for while something is read and the page is seen, and otherwise. */
const POLL_BUSY_MS = 1_000;
const POLL_QUIET_MS = 10_000;
const POLLED = 50;

interface Told {
  search?: Search;
  /** Whether the leader is connected. */
  on?: boolean;
  /** A search that is deleted. */
  gone?: string;
  /** A tab that has just come. */
  hello?: true;
}

/** Whether changes arrive; undefined until it is known. */
export const connection = $state<{ on: boolean | undefined }>({ on: undefined });

const listeners = new Set<(search: Search) => void>();
const leavers = new Set<(search: string) => void>();
const returners = new Set<() => void>();
let channel: BroadcastChannel | undefined;

/** Calls back for each search that has changed. Returns how to stop. */
export const onSearch = (listener: (search: Search) => void) => added(listeners, listener);
export const onGone = (listener: (search: string) => void) => added(leavers, listener);
/** Calls back when the connection is there again: what is shown may be old. */
export const onReturn = (listener: () => void) => added(returners, listener);

/** Tells every tab, this one included, that a search is deleted. */
export function tellGone(search: string): void {
  channel?.postMessage({ gone: search } satisfies Told);
  hear({ gone: search });
}

function added<T>(set: Set<T>, item: T): () => void {
  set.add(item);
  return () => set.delete(item);
}

let heard = 0;

function hear(told: Told): void {
  heard = Date.now();
  const { search, gone } = told;
  if (told.on !== undefined) connect(told.on);
  if (search) for (const listener of listeners) listener(search);
  if (gone) for (const leaver of leavers) leaver(gone);
}

function connect(on: boolean): void {
  const isBack = on && connection.on === false;
  connection.on = on;
  if (isBack) returned();
}

/** Has everything loaded again that is shown: the connection is there again, or somebody has signed in. */
export function returned(): void {
  for (const returner of returners) returner();
}

/** Follows the searches of a review until the returned function is called. */
export function follow(project: string): () => void {
  const leaving = new AbortController();
  const name = `searches of ${project}`;
  const ours = new BroadcastChannel(name);
  channel = ours;
  let leads = false;
  const tell = (told: Told) => {
    if (leaving.signal.aborted) return;
    ours.postMessage(told);
    hear(told);
  };
  ours.onmessage = ({ data }: MessageEvent<Told>) => {
    if (!data.hello) hear(data);
    else if (leads && connection.on !== undefined) ours.postMessage({ on: connection.on } satisfies Told);
  };
  ours.postMessage({ hello: true } satisfies Told);
  const watch = setInterval(() => {
    if (leads) ours.postMessage({ on: connection.on === true } satisfies Told);
    else if (heard && Date.now() - heard > SILENCE_MS) connect(false);
  }, BEAT_MS);
  const lead = async () => {
    leads = true;
    // A stream cannot show a token.
    const streams = !door.token && (await deployment().then((config) => config.features.live, () => true));
    if (!leaving.signal.aborted) await (streams ? stream : poll)(project, tell, leaving.signal);
  };
  // Whoever leaves while it waits is refused the lock, as it asked to be.
  alone(name, { signal: leaving.signal }, lead).catch(() => undefined);
  return () => {
    leaving.abort();
    clearInterval(watch);
    ours.close();
    connection.on = undefined;
  };
}

function stream(project: string, tell: (told: Told) => void, leaving: AbortSignal): Promise<void> {
  return new Promise((done) => {
    let source: EventSource;
    let again: ReturnType<typeof setTimeout> | undefined;
    const open = () => {
      clearTimeout(again);
      source?.close();
      source = new EventSource(`${BASE}/projects/${project}/events`);
      source.onopen = () => tell({ on: true });
      source.onerror = () => {
        tell({ on: false });
        // A broken connection is opened again by the browser; one that was refused is not.
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS);
      };
      source.addEventListener('search', ({ data }: MessageEvent<string>) => tell({ search: JSON.parse(data) as Search }));
    };
    const cut = () => tell({ on: false });
    window.addEventListener('online', open);
    window.addEventListener('offline', cut);
    leaving.addEventListener('abort', () => {
      clearTimeout(again);
      source.close();
      window.removeEventListener('online', open);
      window.removeEventListener('offline', cut);
      done();
    });
    open();
  });
}

async function poll(project: string, tell: (told: Told) => void, leaving: AbortSignal): Promise<void> {
  const known = new Map<string, string>();
  let tag: string | undefined;
  let isBusy = false;
  while (!leaving.aborted) {
    const found = await api
      .GET('/projects/{project}/searches', {
        params: {
          path: { project },
          query: { limit: POLLED },
          header: tag ? { 'If-None-Match': tag } : {},
        },
        cache: 'no-store',
        signal: leaving,
      })
      .catch(() => undefined);
    if (leaving.aborted) return;
    tell({ on: found !== undefined && (found.response.ok || found.response.status === 304) });
    if (found?.data) {
      tag = found.response.headers.get('etag') ?? undefined;
      isBusy = found.data.items.some((search) => !hasEnded(search));
      for (const search of found.data.items) {
        const text = JSON.stringify(search);
        if (known.get(search.search_id) === text) continue;
        known.set(search.search_id, text);
        tell({ search });
      }
    }
    await pause(isBusy && document.visibilityState === 'visible' ? POLL_BUSY_MS : POLL_QUIET_MS, leaving);
  }
}

function pause(milliseconds: number, leaving: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    const wake = () => {
      clearTimeout(timer);
      done();
    };
    document.addEventListener('visibilitychange', wake, { once: true });
    leaving.addEventListener('abort', wake, { once: true });
  });
}
