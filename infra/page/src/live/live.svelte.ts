/**
 * Live changes of imports in every tab.
 *
 * Browsers open at most six connections to an origin over HTTP/1.1, and each stream occupies one: with a stream per tab, the
 * seventh tab would not load. Therefore one tab is the leader. It holds a lock, which the browser passes on when the tab is
 * closed, and forwards changes to the other tabs over a broadcast channel. If the deployment does not stream, it polls.
 */
import { api, BASE, deployment, forgetDeployment, type Schemas, type Search } from '../api/client';
import { access } from '../api/access-token.svelte';
import { withTabLock } from '../lib/browser';
import { hasEnded } from '../lib/format';

/** Delay before a stream that the server has refused is opened again, and before live updates begin again after an error. */
const REOPEN_MS = 2_000;
/** Interval of the other tabs' questions to the leader, and the number without an answer that shows a lost connection. */
const QUESTION_MS = 5_000;
const MAX_UNANSWERED = 2;
/** Delays after a change by a user, after which counts are loaded again. */
const RECOUNT_MS = [1_000, 10_000];
/**
 * Interval between polls while an import is running and the page is visible, and otherwise. The rate limit of a deployment
 * applies to all its pages together (docs/capacity.md). The history is polled at the longer interval only.
 */
const POLL_BUSY_MS = 3_000;
const POLL_IDLE_MS = 10_000;
/** Number of changes that a poll requests. */
const POLL_LIMIT = 50;

export type Activity = Schemas['ActivityView'];

/** A message between tabs. */
interface TabMessage {
  search?: Search;
  /** A new entry in the history of the review. */
  activity?: Activity;
  /** Whether the leader is connected. */
  on?: boolean;
  /** The id of an import that was deleted. */
  gone?: string;
  /** The question of another tab whether the leader is connected. */
  question?: true;
}

/** Whether changes arrive; undefined until this is known. */
export const connection = $state<{ on: boolean | undefined }>({ on: undefined });

const listeners = new Set<(search: Search) => void>();
const activityListeners = new Set<(activity: Activity) => void>();
const deletionListeners = new Set<(search: string) => void>();
const reconnectListeners = new Set<() => void>();
let channel: BroadcastChannel | undefined;

/** Calls the listener for each import that has changed. Returns a function that removes the listener. */
export const onSearch = (listener: (search: Search) => void) => subscribe(listeners, listener);
/** Calls the listener for each decision and changed source, by any user. */
export const onActivity = (listener: (activity: Activity) => void) => subscribe(activityListeners, listener);
export const onDeleted = (listener: (search: string) => void) => subscribe(deletionListeners, listener);
/** Calls the listener when the connection is restored, since the displayed data may be stale by then. */
export const onReconnect = (listener: () => void) => subscribe(reconnectListeners, listener);

/**
 * Calls `act` twice after changes by users and deletions: duplicates are counted again some seconds after a decision. Many
 * changes in a row count as one. Returns a function that stops it.
 */
export function afterChanges(act: () => void): () => void {
  let timers: ReturnType<typeof setTimeout>[] = [];
  const stop = () => timers.forEach(clearTimeout);
  const restart = () => {
    stop();
    timers = RECOUNT_MS.map((delay) => setTimeout(act, delay));
  };
  const removers = [onActivity(restart), onDeleted(restart), stop];
  return () => removers.forEach((remove) => remove());
}

/** Informs every tab, including this one, that an import is deleted. */
export function announceDeleted(search: string): void {
  channel?.postMessage({ gone: search } satisfies TabMessage);
  receive({ gone: search });
}

function subscribe<T>(set: Set<T>, item: T): () => void {
  set.add(item);
  return () => set.delete(item);
}

/** The number of questions since the latest message of the leader. */
let unanswered = 0;

function receive(message: TabMessage): void {
  unanswered = 0;
  const { search, gone, activity } = message;
  if (message.on !== undefined) setConnected(message.on);
  if (search) for (const listener of listeners) listener(search);
  if (activity) for (const listener of activityListeners) listener(activity);
  if (gone) for (const listener of deletionListeners) listener(gone);
}

/** Records whether the server answers. Reloads the displayed data when it answers again. */
export function setConnected(on: boolean): void {
  const isRestored = on && connection.on === false;
  connection.on = on;
  if (isRestored) reloadAll();
}

/** Reloads all displayed data, after the connection was restored or the user has signed in. */
export function reloadAll(): void {
  forgetDeployment();
  for (const listener of reconnectListeners) listener();
}

/** Follows the imports of a review until the returned function is called. */
export function follow(project: string): () => void {
  const leaving = new AbortController();
  const name = `searches of ${project}`;
  const ours = new BroadcastChannel(name);
  channel = ours;
  let isLeader = false;
  const publish = (message: TabMessage) => {
    if (leaving.signal.aborted) return;
    ours.postMessage(message);
    receive(message);
  };
  ours.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (!data.question) receive(data);
    else if (isLeader && connection.on !== undefined) ours.postMessage({ on: connection.on } satisfies TabMessage);
  };
  // The leader only answers: browsers run the timers of a hidden tab once a minute, but deliver its messages.
  const ask = () => {
    if (isLeader) return;
    if (unanswered >= MAX_UNANSWERED && connection.on !== undefined) setConnected(false);
    unanswered += 1;
    ours.postMessage({ question: true } satisfies TabMessage);
  };
  unanswered = 0;
  ask();
  const asking = setInterval(ask, QUESTION_MS);
  const lead = async () => {
    isLeader = true;
    try {
      // An `EventSource` cannot send the token's header field.
      const streams = !access.token && (await deployment().then((config) => config.features.live, () => true));
      if (!leaving.signal.aborted) await (streams ? stream : poll)(project, publish, leaving.signal);
    } finally {
      isLeader = false;
    }
  };
  const compete = () => {
    withTabLock(name, { signal: leaving.signal }, lead).catch((error: unknown) => {
      // The promise is also rejected if this tab stops waiting for the lock, which is not an error.
      if (leaving.signal.aborted) return;
      console.error(error);
      publish({ on: false });
      setTimeout(compete, REOPEN_MS);
    });
  };
  compete();
  return () => {
    leaving.abort();
    clearInterval(asking);
    ours.close();
    connection.on = undefined;
  };
}

function stream(project: string, publish: (message: TabMessage) => void, leaving: AbortSignal): Promise<void> {
  return new Promise((done) => {
    let source: EventSource;
    let reopen: ReturnType<typeof setTimeout> | undefined;
    const open = () => {
      clearTimeout(reopen);
      source?.close();
      source = new EventSource(`${BASE}/projects/${project}/events`);
      source.onopen = () => publish({ on: true });
      source.onerror = () => {
        publish({ on: false });
        // The browser reopens a broken connection, but not one that the server has refused.
        if (source.readyState === EventSource.CLOSED) reopen = setTimeout(open, REOPEN_MS);
      };
      source.addEventListener('search', ({ data }: MessageEvent<string>) => publish({ search: JSON.parse(data) as Search }));
      source.addEventListener('activity', ({ data }: MessageEvent<string>) => publish({ activity: JSON.parse(data) as Activity }));
      source.addEventListener('deleted', ({ data }: MessageEvent<string>) => publish({ gone: (JSON.parse(data) as Search).search_id }));
    };
    const disconnect = () => publish({ on: false });
    window.addEventListener('online', open);
    window.addEventListener('offline', disconnect);
    leaving.addEventListener('abort', () => {
      clearTimeout(reopen);
      source.close();
      window.removeEventListener('online', open);
      window.removeEventListener('offline', disconnect);
      done();
    });
    open();
  });
}

async function poll(project: string, publish: (message: TabMessage) => void, leaving: AbortSignal): Promise<void> {
  const path = { project };
  /** The imports that have not ended. */
  const running = new Set<string>();
  /** The cursor of the changes; undefined at first and after a failure. */
  let since: string | undefined;
  /** The number of the latest known entry of the history. */
  let latest: number | undefined;
  let newsAt = -POLL_IDLE_MS;
  while (!leaving.aborted) {
    const query = { limit: POLL_LIMIT };
    const found = await api
      .GET('/projects/{project}/changes', { params: { path, query: { ...query, ...(since ? { since } : {}) } }, cache: 'no-store', signal: leaving })
      .catch(() => undefined);
    let changes = found?.data?.items;
    // The displayed data may be older than the first cursor.
    if (changes && !since) {
      const listed = await api.GET('/projects/{project}/searches', { params: { path, query }, cache: 'no-store', signal: leaving }).catch(() => undefined);
      changes = listed?.data?.items.map((search) => ({ search_id: search.search_id, deleted: false, search }));
    }
    if (leaving.aborted) return;
    publish({ on: changes !== undefined });
    since = changes && found?.data?.next;
    for (const { search_id, search } of changes ?? []) {
      if (search && !hasEnded(search)) running.add(search_id);
      else running.delete(search_id);
      publish(search ? { search } : { gone: search_id });
    }
    if (performance.now() - newsAt >= POLL_IDLE_MS) {
      newsAt = performance.now();
      const news = await api.GET('/projects/{project}/activity', { params: { path, query }, signal: leaving }).catch(() => undefined);
      if (leaving.aborted) return;
      const entries = news?.data?.items ?? [];
      const seen = latest;
      if (seen !== undefined) for (const activity of entries.filter(({ number }) => number > seen).reverse()) publish({ activity });
      if (news?.data) latest = entries[0]?.number ?? 0;
    }
    // A server that refuses a request, because of its rate limit for example, is asked less often.
    const isBusy = changes && running.size && document.visibilityState === 'visible';
    await pause(isBusy ? POLL_BUSY_MS : POLL_IDLE_MS, leaving);
  }
}

function pause(milliseconds: number, leaving: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const over = new AbortController();
    const wake = () => {
      clearTimeout(timer);
      // Removes both listeners, which would otherwise accumulate with each pause.
      over.abort();
      done();
    };
    const timer = setTimeout(wake, milliseconds);
    document.addEventListener('visibilitychange', wake, { signal: over.signal });
    leaving.addEventListener('abort', wake, { signal: over.signal });
  });
}
