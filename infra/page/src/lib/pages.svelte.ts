/** A list that is loaded page by page. */

interface Page<T> {
  items: T[];
  next?: string | null;
}

export class Pages<T> {
  items = $state.raw<T[]>([]);
  /** Where to go on; null when nothing follows. */
  next = $state.raw<string | null>(null);

  constructor(private readonly ask: (after: string | null) => Promise<Page<T>>) {}

  /** Begins anew: the first page takes the place of all that is there. */
  async begin(): Promise<void> {
    const { items, next } = await this.#page(null);
    [this.items, this.next] = [items, next ?? null];
  }

  /** Adds the next page. */
  more = async (): Promise<void> => {
    const { items, next } = await this.#page(this.next);
    [this.items, this.next] = [[...this.items, ...items], next ?? null];
  };

  /** At least one, or the end: a page may be empty although more follows. */
  async #page(after: string | null): Promise<Page<T>> {
    let found = await this.ask(after);
    while (!found.items.length && found.next) found = await this.ask(found.next);
    return found;
  }
}
