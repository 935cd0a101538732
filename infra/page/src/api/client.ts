/** The client of the HTTP API, typed from the API's description, and its errors as sentences. */
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';
import type { components as OperatorComponents, paths as OperatorPaths } from './operator-schema';
import { withToken } from './sign-in';

export type Schemas = components['schemas'];
export type Search = Schemas['SearchView'];
export type FileOfSearch = Schemas['FileView'];
export type Study = Schemas['StudyView'];
export type Announced = Schemas['AnnouncedView'];
export type Config = Schemas['ConfigView'];

/** The address of the page without the trailing slash; the API has the same base address. */
export const BASE = new URL('.', location.href).href.replace(/\/$/, '');
export const api = createClient<paths>({ baseUrl: BASE, fetch: send });

/** The operator's routes of any system. */
export type OperatorSchemas = OperatorComponents['schemas'];
export const operatorApi = createClient<OperatorPaths>({ baseUrl: BASE, fetch: send });

/** A failed operation, described in a sentence for the user. */
export class Fault extends Error {
  constructor(
    sentence: string,
    /** The HTTP status; 0 if there was no answer. */
    readonly status = 0,
    /** The problems of single files of a request, by their index in it. */
    readonly files: ReadonlyMap<number, string> = new Map(),
    /** The decision that another user made first. */
    readonly decided: Schemas['CurrentDecisionView'] | undefined = undefined,
    /** The import of the request's idempotency key, which ended before all files arrived. */
    readonly endedImport: string | undefined = undefined,
  ) {
    super(sentence);
  }
}

const LOADED_AGAIN = 'The server does not respond. The page tries again when the server is back.';
const UNCERTAIN = 'The server does not respond. The action may have had no effect. Repeat it when the server is back.';

/** Throws the `Fault` of a request without an answer. The page repeats requests that load data, but no actions. */
export function unreachable(isLoading = false): never {
  throw new Fault(isLoading ? LOADED_AGAIN : UNCERTAIN);
}

/** Sends a request, or throws a `Fault` if there is no answer. */
function send(request: Request): Promise<Response> {
  return withToken(request).catch(() => unreachable(request.method === 'GET'));
}

/** Returns the data of a response, or throws a `Fault`. */
export async function unwrap<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call.catch((error: unknown) => {
    if (error instanceof Fault) throw error;
    // The connection was lost within the response.
    unreachable();
  });
  if (response.ok) return data as T;
  throw fault(response.status, error);
}

/** Returns the counts of a review; undefined if it has more imports than the server counts. */
export function countsOf<T>(call: Parameters<typeof unwrap<T>>[0]): Promise<T | undefined> {
  return unwrap(call).catch((error: unknown) => {
    if (error instanceof Fault && error.status === 422) return undefined;
    throw error;
  });
}

/** Converts the body of an error response, which is problem details or a line of text. */
export function fault(status: number, body: unknown): Fault {
  if (typeof body === 'string' && body.trim()) return new Fault(sentence(body), status);
  const problem = (body ?? {}) as Partial<Schemas['ConflictProblem']>;
  const errors = problem.errors ?? [];
  const general = errors.filter((error) => error.file == null).map((error) => error.detail);
  const files = new Map(errors.flatMap((error) => (error.file == null ? [] : [[error.file, sentence(error.detail)]])));
  const detail = [problem.detail ?? `the server responded with status ${status}`, ...general].join(': ');
  return new Fault(sentence(detail), status, files, problem.decided, problem.ended_import ?? undefined);
}

/** Converts a message of the server to a sentence. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const capitalized = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

let config: Promise<Config> | undefined;

/**
 * Returns the limits and features of the deployment, and the caller. They are requested once, and again after a failed
 * request or `forgetDeployment`.
 */
export function deployment(): Promise<Config> {
  if (config) return config;
  const requested = unwrap(api.GET('/config.json'));
  config = requested;
  requested.catch(() => {
    if (config === requested) config = undefined;
  });
  return requested;
}

/** Requests the deployment again at its next use: the server may have another version, or other permissions of the caller. */
export function forgetDeployment(): void {
  config = undefined;
}
