/** Where the page is: the part of the address after `#`, with the filters of the screen in its query. */

/** The review that commands and the page work in when none is named. */
export const EVERYTHING = '00000000-0000-0000-0000-000000000000';

function read() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean), query: new URLSearchParams(query) };
}

let here = $state.raw(read());
let arrived = false;

export const route = {
  get path() {
    return here.path;
  },
  get query() {
    return here.query;
  },
  /** The review whose searches are shown. */
  get project() {
    return here.query.get('review') ?? EVERYTHING;
  },
  /** Whether somebody came here from another screen, and not by loading the page. */
  get isLater() {
    return arrived;
  },
};

window.addEventListener('hashchange', () => {
  arrived = true;
  here = read();
});

type Query = Record<string, string | undefined>;

/** The address of a screen, in the same review unless the query names another. */
export function to(path: string, query: Query = {}): string {
  const review = route.project === EVERYTHING ? undefined : route.project;
  const all = Object.entries({ review, ...query }).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(all).toString();
  return `#/${path}${text ? `?${text}` : ''}`;
}

export function go(path: string, query: Query = {}): void {
  location.hash = to(path, query);
}

/** Changes filters of this screen: the address changes, the history does not grow. */
export function filter(changed: Query): void {
  const query = { ...Object.fromEntries(here.query), ...changed };
  history.replaceState(null, '', to(here.path.join('/'), query));
  here = read();
}
