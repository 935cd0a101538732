/** An action of the user: whether it is in progress, and why the last one failed. */
import { message } from '../api/client';

export class Action {
  isBusy = $state(false);
  /** Empty if nothing failed. */
  problem = $state('');

  /** Runs an action. An error becomes the problem. */
  run = async (what: () => Promise<unknown>): Promise<void> => {
    this.isBusy = true;
    this.problem = '';
    try {
      await what();
    } catch (error) {
      this.problem = message(error);
    } finally {
      this.isBusy = false;
    }
  };
}
