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

  constructor(private readonly fetch: () => Promise<T>) {}

  /** Loads the value; if several loads overlap, only the latest one counts. */
  reload = async (): Promise<void> => {
    const turn = ++this.#turn;
    const timer = setTimeout(() => (this.isSlow = true), SKELETON_DELAY_MS);
    try {
      // The caller's effect declares its dependencies; state that the fetch reads must not become one.
      const value = await untrack(this.fetch);
      if (turn !== this.#turn) return;
      this.set(value);
    } catch (error) {
      if (turn === this.#turn) this.fault = error instanceof Fault ? error : new Fault(message(error));
    } finally {
      clearTimeout(timer);
      if (turn === this.#turn) this.isSlow = false;
    }
  };

  set(value: T): void {
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
