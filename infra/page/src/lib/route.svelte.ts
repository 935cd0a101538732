/** The current route: the part of the address after `#`, with the filters of the screen in its query. */

/** The default review of the page and of the command line. */
export const DEFAULT_REVIEW = '00000000-0000-0000-0000-000000000000';

function read() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean), query: new URLSearchParams(query) };
}

let here = $state.raw(read());
let hasNavigated = false;

export const route = {
  get path() {
    return here.path;
  },
  get query() {
    return here.query;
  },
  /** The review whose imports are shown. */
  get project() {
    return here.query.get('review') ?? DEFAULT_REVIEW;
  },
  /** Whether the user came from another screen, rather than by loading the page. */
  get hasNavigated() {
    return hasNavigated;
  },
};

window.addEventListener('hashchange', () => {
  hasNavigated = true;
  here = read();
});

type Query = Record<string, string | undefined>;

/** Returns the address of a screen, in the current review unless the query names another. */
export function to(path: string, query: Query = {}): string {
  const review = route.project === DEFAULT_REVIEW ? undefined : route.project;
  const all = Object.entries({ review, ...query }).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(all).toString();
  return `#/${path}${text ? `?${text}` : ''}`;
}

export function go(path: string, query: Query = {}): void {
  location.hash = to(path, query);
}

/** The pause in typing, in milliseconds, after which a text filters the list. */
const TYPING_MS = 250;

/**
 * Returns a function that filters the list of the current screen by a text once the user stops typing. Nothing is
 * filtered if the user leaves the screen before: the text would change the address of another one.
 */
export function textFilter(): (text: string) => void {
  let typing: ReturnType<typeof setTimeout> | undefined;
  $effect(() => () => clearTimeout(typing));
  return (text) => {
    clearTimeout(typing);
    typing = setTimeout(() => filter({ text: text.trim() || undefined }), TYPING_MS);
  };
}

/** Changes the filters of this screen, and the address with them, without a new entry in the browser's history. */
export function filter(changed: Query): void {
  const query = { ...Object.fromEntries(here.query), ...changed };
  history.replaceState(null, '', to(here.path.join('/'), query));
  here = read();
}
