/**
 * The current upload. It exists outside its screen, so leaving the screen does not interrupt it. After a reload it resumes
 * under the same idempotency key.
 */
import { api, unwrap, Fault, message, type Announced, type Config } from '../api/client';
import { uploadFile } from '../api/upload-file';
import { uuid, withTabLock } from './browser';
import { storedUploads, type StoredUpload } from './storage';
import { announce } from './announcer.svelte';
import { emptySource, saveSources, type SourceInput } from './sources';
import { many, size } from './format';

/** Number of files sent concurrently; browsers open at most six connections to an origin. */
const PARALLEL_UPLOADS = 3;
/** Minimum remaining lifetime of an upload form, in milliseconds; a form that expires sooner is replaced. */
const MIN_FORM_LIFETIME_MS = 30_000;
/** The HTTP status of a request whose key an earlier attempt used, and whose import is not stored (yet) or has ended. */
const UNKNOWN = 409;
const MAY_SUCCEED =
  'An earlier attempt to import these files may still succeed. Continue in a few minutes. If this message stays, start over.';
const NO_ANSWER = 'The server does not respond. The files are kept, and the upload continues when the server is back.';
const ENDED =
  'The import ended before all files arrived: it was cancelled, or the upload took too long. The files are kept here. Import them again.';

export interface Entry {
  file: File;
  /** The fraction that is sent, from 0 to 1. */
  part: number;
  isStored: boolean;
  /** The source of its records. */
  source: SourceInput;
  /** The reason why the file cannot be uploaded. */
  problem: string | undefined;
}

const entry = (file: File, source = emptySource()): Entry => ({ file, part: 0, isStored: false, source, problem: undefined });

class Upload {
  project = $state('');
  name = $state('');
  entries = $state<Entry[]>([]);
  problem = $state<string>();
  /** Whether this browser keeps the files when the page is reloaded. */
  isKept = $state(true);
  /** Whether the request to create the import was sent; its files are fixed from then on. */
  isBegun = $state(false);
  isBusy = $state(false);
  searchId = $state<string>();
  #key = uuid();
  #ids: string[] = [];

  /** Restores the upload that was prepared in a review, by this tab or an earlier one. */
  async open(project: string): Promise<void> {
    if (this.project === project || this.isBusy) return;
    this.#clear();
    this.project = project;
    const found = await storedUploads.read(project).catch(() => undefined);
    if (found && this.project === project && !this.entries.length) this.#restore(found);
  }

  #restore({ key, name, files, sources, isBegun, ids, searchId }: StoredUpload): void {
    this.#key = key;
    this.#ids = ids;
    const entries = files.map((file, index) => entry(file, sources?.[index]));
    Object.assign(this, { name, entries, isBegun, searchId });
  }

  /** Adds files and checks each of them. */
  add(files: Iterable<File>, config: Config | undefined): void {
    if (this.isBegun) return;
    const known = new Set(this.entries.map(({ file }) => `${file.name} ${file.size} ${file.lastModified}`));
    const fresh = [...files].filter((file) => !known.has(`${file.name} ${file.size} ${file.lastModified}`));
    this.entries.push(...fresh.map((file) => entry(file)));
    this.check(config);
    this.name ||= (fresh[0]?.name ?? '').replace(/\.\w+$/, '');
    void this.keep();
  }

  remove(index: number, config: Config | undefined): void {
    this.entries.splice(index, 1);
    this.check(config);
    void this.keep();
  }

  /** Sets the date of search of all files. */
  setDate(date: string): void {
    for (const { source } of this.entries) source.searched = date;
    void this.keep();
  }

  check(config: Config | undefined): void {
    this.problem = undefined;
    for (const entry of this.entries) entry.problem = problemOf(entry.file, config);
    const maxFiles = config?.limits.max_files ?? 50;
    if (this.entries.length > maxFiles) {
      this.problem = `An import can have up to ${maxFiles} files. Remove ${this.entries.length - maxFiles}.`;
    }
  }

  /** Starts over without files. Files of an import that was already created stay with that import. */
  async forget(): Promise<void> {
    const [project, key] = [this.project, this.#key];
    this.#clear();
    this.project = project;
    await storedUploads.drop(project, key).catch(() => undefined);
  }

  #clear(): void {
    this.#key = uuid();
    this.#ids = [];
    Object.assign(this, { name: '', entries: [], problem: undefined, isBegun: false, searchId: undefined });
  }

  /** Stores the upload in this browser, instead of the one with the key `replaced`. */
  async keep(replaced = this.#key): Promise<void> {
    const { project, name, isBegun, searchId } = this;
    const files = this.entries.map(({ file }) => file);
    const sources = this.entries.map(({ source }) => ({ ...source }));
    const stored: StoredUpload = { project, name, isBegun, searchId, files, sources, key: this.#key, ids: [...this.#ids] };
    this.isKept = await storedUploads.write(stored, replaced).catch(() => false);
  }

  /** Creates the import and sends the files that have not arrived. Resolves to its id once all have. */
  async run(): Promise<string | undefined> {
    // The lock keeps another tab with the same upload from sending it twice.
    return await withTabLock(`upload ${this.#key}`, { ifAvailable: true }, async (isHeld) => {
      if (isHeld) return this.#run();
      this.problem = 'Another tab is uploading these files.';
      return undefined;
    });
  }

  async #run(): Promise<string | undefined> {
    this.isBusy = true;
    this.problem = undefined;
    for (const each of this.entries) each.problem = undefined;
    try {
      // Another tab may have begun the same upload.
      const found = await storedUploads.read(this.project).catch(() => undefined);
      if (found?.isBegun && found.key === this.#key && !this.#ids.length) this.#restore(found);
      this.isBegun = true;
      await this.keep();
      let announced = await this.#create();
      await this.#saveSources(announced.search_id);
      await this.#send(announced);
      if (this.entries.some((each) => !each.isStored)) {
        // Upload forms expire; a request with the same key returns new forms for the missing files.
        announced = await this.#create();
        await this.#send(announced);
      }
      const left = this.entries.filter((each) => !each.isStored).length;
      if (left) throw new Fault(`${many(left, 'file')} could not be uploaded. The uploaded files are kept.`);
      announce(`${many(this.entries.length, 'file')} uploaded`);
      const id = this.searchId;
      await this.forget();
      return id;
    } catch (error) {
      this.problem = message(error);
      if (error instanceof Fault) this.#showProblems(error);
      return undefined;
    } finally {
      this.isBusy = false;
    }
  }

  /**
   * Shows the problems of single files. A rejected request has created nothing, so its files may be changed. If its import
   * has ended, the user decides whether to repeat it, because it may have been cancelled.
   */
  #showProblems(fault: Fault): void {
    for (const [index, text] of fault.files) {
      const each = this.entries[index];
      if (each) each.problem = text;
    }
    // After status 401 the user signs in, and the same request is repeated. While the earlier attempt is unknown, another
    // key could create a second import.
    const isRejected =
      !this.searchId && fault.status >= 400 && fault.status < 500 && ![401, UNKNOWN].includes(fault.status);
    if (!isRejected && !fault.endedImport) return;
    this.isBegun = false;
    // A changed request, or another import of the same files, needs another key.
    const replaced = this.#key;
    this.#key = uuid();
    this.#ids = [];
    this.searchId = undefined;
    for (const each of this.entries) Object.assign(each, { isStored: false, part: 0 });
    void this.keep(replaced);
  }

  async #create(): Promise<Announced> {
    const announced = await unwrap(
      api.POST('/projects/{project}/searches', {
        params: { path: { project: this.project }, header: { 'Idempotency-Key': this.#key } },
        body: { name: this.name, files: this.entries.map(({ file }) => ({ name: file.name, size_bytes: file.size })) },
      }),
    ).catch((error: unknown) => {
      if (error instanceof Fault && !error.status) throw new Fault(NO_ANSWER);
      if (!(error instanceof Fault) || error.status !== UNKNOWN) throw error;
      if (error.endedImport) throw new Fault(ENDED, UNKNOWN, undefined, undefined, error.endedImport);
      throw new Fault(MAY_SUCCEED, UNKNOWN);
    });
    this.searchId = announced.search_id;
    // The first answer lists all files in their order; later ones list only the missing files.
    if (!this.#ids.length) this.#ids = await this.#idsOf(announced);
    for (const [index, each] of this.entries.entries()) {
      if (!announced.files.some((file) => file.file_id === this.#ids[index])) {
        Object.assign(each, { isStored: true, part: 1 });
      }
    }
    await this.keep();
    return announced;
  }

  /** Returns the ids of all files in their order, also if another tab has uploaded some of them. */
  async #idsOf({ search_id, files }: Announced): Promise<string[]> {
    if (files.length === this.entries.length) return files.map((file) => file.file_id);
    const path = { project: this.project, search: search_id };
    const search = await unwrap(api.GET('/projects/{project}/searches/{search}', { params: { path } }));
    return search.files.map((file) => file.file_id);
  }

  async #saveSources(search: string): Promise<void> {
    const sources = this.entries.flatMap(({ source }, index) => {
      const file = this.#ids[index];
      return file && Object.values(source).some((text) => text.trim()) ? [[file, source] as const] : [];
    });
    if (sources.length) await saveSources({ project: this.project, search }, new Map(sources));
  }

  async #send(announced: Announced): Promise<void> {
    const queue = announced.files.flatMap((file) => {
      const each = this.entries[this.#ids.indexOf(file.file_id)];
      return each && !each.isStored ? [{ each, form: file.upload }] : [];
    });
    const work = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { each, form } = next;
        if (Date.parse(form.expires_at) < Date.now() + MIN_FORM_LIFETIME_MS) continue;
        try {
          await uploadFile(form, each.file, (part) => (each.part = part));
          Object.assign(each, { isStored: true, part: 1, problem: undefined });
        } catch (error) {
          each.part = 0;
          each.problem = message(error);
        }
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_UPLOADS }, work));
  }
}

function problemOf(file: File, config: Config | undefined): string | undefined {
  if (!file.size) return 'The file is empty.';
  const { max_file_bytes: maxBytes, max_name_chars: maxChars } = config?.limits ?? {};
  if (maxBytes && file.size > maxBytes) return `The file has ${size(file.size)}. The maximum is ${size(maxBytes)}.`;
  if (maxChars && [...file.name].length > maxChars) return `The file name is longer than ${maxChars} characters.`;
  return undefined;
}

export const upload = new Upload();
