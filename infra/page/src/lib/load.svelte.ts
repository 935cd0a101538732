/** Something that is loaded, and loaded again: what was there stays until something later takes its place. */
import { untrack } from 'svelte';
import { Fault, message } from '../api/client';

/** How long nothing is shown before a skeleton is, in milliseconds: what comes sooner would only flicker. */
const PATIENCE_MS = 150;

export class Load<T> {
  value = $state.raw<T>();
  fault = $state.raw<Fault>();
  /** When `value` came. */
  at = $state.raw<Date>();
  isSlow = $state(false);
  #turn = 0;

  constructor(private readonly ask: () => Promise<T>) {}

  /** Asks; of several answers under way only the last one counts. */
  again = async (): Promise<void> => {
    const turn = ++this.#turn;
    const timer = setTimeout(() => (this.isSlow = true), PATIENCE_MS);
    try {
      // Whoever asks says what it depends on; what is read on the way is not.
      const value = await untrack(this.ask);
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

/** Does something every so often while the page is seen. Returns how to stop. */
export function every(milliseconds: number, act: () => void): () => void {
  const timer = setInterval(() => document.visibilityState === 'visible' && act(), milliseconds);
  return () => clearInterval(timer);
}
