/** Loading and reloading of data: the previous value stays until a newer one replaces it. */
import { untrack } from 'svelte';
import { Fault, message } from '../api/client';

/** Delay before a skeleton is shown, in milliseconds; without it fast answers would make the page flicker. */
const SKELETON_DELAY_MS = 150;

export class Load<T> {
  value = $state.raw<T>();
  fault = $state.raw<Fault>();
  /** When `value` was loaded. */
  at = $state.raw<Date>();
  isSlow = $state(false);
  #turn = 0;
  #isLoading = false;

  constructor(private readonly fetch: () => Promise<T>) {}

  /** Loads the value; if several loads overlap, only the latest one counts. */
  reload = async (): Promise<void> => {
    const turn = ++this.#turn;
    this.#isLoading = true;
    const timer = setTimeout(() => (this.isSlow = true), SKELETON_DELAY_MS);
    try {
      // The caller's effect declares its dependencies; state that the fetch reads must not become one.
      const value = await untrack(this.fetch);
      if (turn === this.#turn) this.#show(value);
    } catch (error) {
      if (turn === this.#turn) this.fault = error instanceof Fault ? error : new Fault(message(error));
    } finally {
      clearTimeout(timer);
      if (turn === this.#turn) [this.isSlow, this.#isLoading] = [false, false];
    }
  };

  /** Sets a value that has arrived otherwise. A load in progress may have an older one, so it is repeated. */
  set(value: T): void {
    this.#show(value);
    if (this.#isLoading) void this.reload();
  }

  #show(value: T): void {
    this.value = value;
    this.at = new Date();
    this.fault = undefined;
  }
}

/** Calls `act` at an interval while the page is visible. Returns a function that stops it. */
export function every(milliseconds: number, act: () => void): () => void {
  const timer = setInterval(() => document.visibilityState === 'visible' && act(), milliseconds);
  return () => clearInterval(timer);
}
