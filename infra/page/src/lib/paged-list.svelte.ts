/** A list that is loaded page by page. */

interface Page<T> {
  items: T[];
  next?: string | null;
}

export class PagedList<T> {
  items = $state.raw<T[]>([]);
  /** The cursor of the next page; null if there is none. */
  next = $state.raw<string | null>(null);
  /** The number of loads of the first page. */
  #turn = 0;

  constructor(private readonly fetch: (after: string | null) => Promise<Page<T>>) {}

  /**
   * Replaces the list with its first page, or with the pages of its first `min` items, unless it is loaded again in the
   * meantime. Resolves to whether it did.
   */
  async reload(min = 0): Promise<boolean> {
    const turn = ++this.#turn;
    let { items, next } = await this.#page(null, turn);
    while (items.length < min && next && turn === this.#turn) {
      const page = await this.#page(next, turn);
      [items, next] = [[...items, ...page.items], page.next];
    }
    if (turn !== this.#turn) return false;
    [this.items, this.next] = [items, next ?? null];
    return true;
  }

  /** Adds the next page. If several calls overlap, the page is added once. */
  more = async (): Promise<void> => {
    const [turn, after] = [this.#turn, this.next];
    const { items, next } = await this.#page(after, turn);
    if (turn !== this.#turn || this.next !== after) return;
    [this.items, this.next] = [[...this.items, ...items], next ?? null];
  };

  /** Keeps the last `count` items, so that a long list has a constant size. */
  keepLast(count: number): void {
    if (this.items.length > count) this.items = this.items.slice(-count);
  }

  /**
   * Fetches at least one item unless the list has ended: a page may be empty although more items follow. Stops if the list
   * is loaded again, because its filters may have changed.
   */
  async #page(after: string | null, turn: number): Promise<Page<T>> {
    let page = await this.fetch(after);
    while (!page.items.length && page.next && turn === this.#turn) page = await this.fetch(page.next);
    return page;
  }
}
