/** Keeping a list up to date that is loaded page by page. */
import { every, Load } from '../lib/load.svelte';
import type { PagedList } from '../lib/paged-list.svelte';
import { onReconnect } from './live.svelte';

interface Refresh {
  /** Interval between two loads, in milliseconds. */
  interval: number;
  /** The maximum number of items of a page. */
  page: number;
  /** The filters of the list, which is loaded again when one of them changes. */
  filters: () => unknown;
  /** Whether the list may be loaded again at the interval. */
  isCheap?: () => boolean;
}

/** Loads a list now, when its filters change, at an interval and after a reconnection. For the script of a screen. */
export function refreshed<T>(list: PagedList<T>, { interval, page, filters, isCheap = () => true }: Refresh): Load<boolean> {
  const load = new Load(async () => {
    await list.reload();
    return true;
  });
  $effect(() => {
    filters();
    void load.reload();
  });
  $effect(() => every(interval, () => {
    // A refresh shows the first page only, so it must not discard pages that the user has loaded.
    if (list.items.length <= page && isCheap()) void load.reload();
  }));
  $effect(() => onReconnect(load.reload));
  return load;
}
