/** A list that is loaded page by page. */

interface Page<T> {
  items: T[];
  next?: string | null;
}

export class PagedList<T> {
  items = $state.raw<T[]>([]);
  /** The cursor of the next page; null if there is none. */
  next = $state.raw<string | null>(null);

  constructor(private readonly fetch: (after: string | null) => Promise<Page<T>>) {}

  /** Replaces the list with its first page. */
  async reload(): Promise<void> {
    const { items, next } = await this.#page(null);
    [this.items, this.next] = [items, next ?? null];
  }

  /** Adds the next page. If several calls overlap, the page is added once. */
  more = async (): Promise<void> => {
    const after = this.next;
    const { items, next } = await this.#page(after);
    if (this.next !== after) return;
    [this.items, this.next] = [[...this.items, ...items], next ?? null];
  };

  /** Keeps the last `count` items, so that a long list has a constant size. */
  keepLast(count: number): void {
    if (this.items.length > count) this.items = this.items.slice(-count);
  }

  /** Fetches at least one item unless the list has ended: a page may be empty although more items follow. */
  async #page(after: string | null): Promise<Page<T>> {
    let page = await this.fetch(after);
    while (!page.items.length && page.next) page = await this.fetch(page.next);
    return page;
  }
}
