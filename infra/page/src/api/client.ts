/** The HTTP API, typed from its own description; and what it refuses, as sentences. */
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';
import { withToken } from './sign-in';

export type Schemas = components['schemas'];
export type Search = Schemas['SearchView'];
export type FileOfSearch = Schemas['FileView'];
export type Study = Schemas['StudyView'];
export type Announced = Schemas['AnnouncedView'];
export type Config = Schemas['ConfigView'];

/** Where the page is, without the slash at its end: the API is below the same address. */
export const BASE = new URL('.', location.href).href.replace(/\/$/, '');
export const api = createClient<paths>({ baseUrl: BASE, fetch: withToken });

/** What was not done, in a sentence for whoever asked for it. */
export class Fault extends Error {
  constructor(
    sentence: string,
    /** The HTTP status; 0 where nothing answered. */
    readonly status = 0,
    /** What is wrong with single files of a request, by their places in it. */
    readonly files: ReadonlyMap<number, string> = new Map(),
  ) {
    super(sentence);
  }
}

const UNREACHED = 'The server does not answer. Nothing is lost; it is asked again when it is back.';

/** What becomes of a request that nobody has answered. */
export function unreached(): never {
  throw new Fault(UNREACHED);
}

/** What an answer says, or a `Fault`. */
export async function asked<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call.catch(unreached);
  if (response.ok) return data as T;
  throw fault(response.status, error);
}

/** The fault that a refusal tells of: problem details, or one line of text. */
export function fault(status: number, body: unknown): Fault {
  if (typeof body === 'string' && body.trim()) return new Fault(sentence(body), status);
  const problem = (body ?? {}) as Partial<Schemas['Problem']>;
  const errors = problem.errors ?? [];
  const general = errors.filter((error) => error.file == null).map((error) => error.detail);
  const files = new Map(errors.flatMap((error) => (error.file == null ? [] : [[error.file, sentence(error.detail)]])));
  const detail = [problem.detail ?? `the server answered with status ${status}`, ...general].join(': ');
  return new Fault(sentence(detail), status, files);
}

/** Text of the server as a sentence of the page. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const begun = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

let config: Promise<Config> | undefined;

/** What the deployment takes and can do; asked for once, and again after it could not be had. */
export function deployment(): Promise<Config> {
  config ??= asked(api.GET('/config.json')).catch((error: unknown) => {
    config = undefined;
    throw error;
  });
  return config;
}
