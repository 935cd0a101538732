/** The reviews of the server, and the one that was opened last in this browser. */
import { api, unwrap, type Schemas } from '../api/client';
import { escaped } from './format';
import { DEFAULT_REVIEW } from './route.svelte';
import { storedText } from './storage';

export type Review = Schemas['ReviewView'];

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const last = storedText('last-review');

class Reviews {
  /** The listed reviews by name; undefined until they are loaded. */
  items = $state.raw<Review[]>();

  reload = async (): Promise<void> => {
    this.items = (await unwrap(api.GET('/projects'))).items;
  };

  of(id: string): Review | undefined {
    return this.items?.find((review) => review.project_id === id);
  }

  /** The name of a review; a part of its id if it has none. */
  nameOf(id: string): string {
    const name = this.of(id)?.name;
    return name ? escaped(name) : id === DEFAULT_REVIEW ? 'Default review' : `Review ${id.slice(0, 8)}…`;
  }

  /** Returns the id of the review that a user means by its id or name; undefined if there is none. */
  find(text: string): string | undefined {
    const folded = fold(text);
    if (ID.test(folded)) return folded;
    if (folded === fold('Default review') && !this.of(DEFAULT_REVIEW)) return DEFAULT_REVIEW;
    return this.items?.find((review) => fold(review.name) === folded)?.project_id;
  }

  async create(name: string): Promise<Review> {
    const review = await unwrap(api.POST('/projects', { body: { name } }));
    await this.reload();
    return review;
  }

  async change(id: string, body: Schemas['ChangedReview']): Promise<void> {
    await unwrap(api.POST('/projects/{project}', { params: { path: { project: id } }, body }));
    await this.reload();
  }

  /** Deletes a review. One request deletes a limited number of imports. */
  async remove(id: string): Promise<void> {
    let status: number;
    do {
      const done = api.DELETE('/projects/{project}', { params: { path: { project: id } } });
      await unwrap(done);
      status = (await done).response.status;
    } while (status === 202);
    if (last.get() === id) last.set(null);
    await this.reload();
  }
}

/** Returns the form in which names are compared, as the server does. */
const fold = (name: string) => name.trim().split(/\s+/).join(' ').toLowerCase();

export const reviews = new Reviews();

/** The review that was opened last in this browser. */
export const lastReview = {
  get: (): string | null => last.get(),
  set: (id: string): void => {
    if (last.get() !== id) last.set(id);
  },
};
