/** The user and their permissions. */
import { deployment, type Config } from '../api/client';
import { escaped } from './format';
import { reviews } from './reviews.svelte';
import { route } from './route.svelte';

type Permissions = Config['caller'];

class Caller {
  /** Undefined until the server has returned them. */
  permissions = $state.raw<Permissions>();

  reload = async (): Promise<void> => {
    this.permissions = (await deployment().catch(() => undefined))?.caller ?? this.permissions;
  };

  /** The name under which others make the user a member of a review; undefined where users do not sign in. */
  get name(): string | undefined {
    return this.permissions?.name ?? undefined;
  }

  /** Whether the user can only read the current review. The server decides; this hides what it would refuse. */
  get isReader(): boolean {
    return reviews.of(route.project)?.role === 'reader';
  }
}

export const caller = new Caller();

/** The author of a change. The server stores a fixed name for users who do not sign in. */
export const personOf = (by: string): string => (by === 'somebody' ? 'a user' : by === caller.name ? 'you' : escaped(by));
