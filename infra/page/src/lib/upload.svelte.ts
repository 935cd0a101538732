/**
 * The search that is prepared or uploaded. It lives outside its screen: leaving that interrupts nothing, and after a reload
 * it goes on where it was, under the same idempotency key.
 */
import { api, asked, Fault, message, type Announced, type Config } from '../api/client';
import { send } from '../api/send';
import { alone, uuid } from './browser';
import { kept, type Kept } from './kept';
import { say } from './said.svelte';
import { tell, unsaid, type Said } from './sources';
import { many, size } from './words';

/** How many files are sent at once: browsers give an origin six connections. */
const AT_ONCE = 3;
/** A form that ends sooner than this is not begun with, in milliseconds. */
const MARGIN_MS = 30_000;

export interface Entry {
  file: File;
  /** How much of it is sent, from 0 to 1. */
  part: number;
  isStored: boolean;
  /** Where its records come from. */
  source: Said;
  /** What is wrong with it. */
  problem: string | undefined;
}

const entry = (file: File, source = unsaid()): Entry => ({ file, part: 0, isStored: false, source, problem: undefined });

class Upload {
  project = $state('');
  name = $state('');
  entries = $state<Entry[]>([]);
  problem = $state<string>();
  /** Whether this browser keeps the files over a reload. */
  isKept = $state(true);
  /** Whether the search is announced, or may be: from then on its files do not change. */
  isBegun = $state(false);
  isBusy = $state(false);
  searchId = $state<string>();
  #key = uuid();
  #ids: string[] = [];

  /** What was prepared in a review, by this tab or one before it. */
  async open(project: string): Promise<void> {
    if (this.project === project || this.isBusy) return;
    this.#clear();
    this.project = project;
    const found = await kept.read(project).catch(() => undefined);
    if (!found || this.project !== project || this.entries.length) return;
    this.#key = found.key;
    this.name = found.name;
    this.entries = found.files.map((file, index) => entry(file, found.sources?.[index]));
    this.isBegun = found.isBegun;
    this.#ids = found.ids;
    this.searchId = found.searchId;
  }

  /** Takes more files, each with what is wrong with it. */
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

  check(config: Config | undefined): void {
    this.problem = undefined;
    for (const entry of this.entries) entry.problem = wrongWith(entry.file, config);
    const most = config?.limits.max_files ?? 50;
    if (this.entries.length > most) {
      this.problem = `A search has ${most} files at most; remove ${this.entries.length - most}.`;
    }
  }

  /** Begins anew, with nothing. What has arrived of a search that is announced stays with that search. */
  async forget(): Promise<void> {
    const project = this.project;
    this.#clear();
    this.project = project;
    await kept.drop(project).catch(() => undefined);
  }

  #clear(): void {
    this.#key = uuid();
    this.#ids = [];
    Object.assign(this, { name: '', entries: [], problem: undefined, isBegun: false, searchId: undefined });
  }

  async keep(): Promise<void> {
    const { project, name, isBegun, searchId } = this;
    const files = this.entries.map(({ file }) => file);
    const sources = this.entries.map(({ source }) => ({ ...source }));
    const whole: Kept = { project, name, isBegun, searchId, files, sources, key: this.#key, ids: [...this.#ids] };
    this.isKept = await kept.write(whole).then(() => true, () => false);
  }

  /** Announces the search, and sends what has not arrived. Resolves to its id once everything has. */
  async go(): Promise<string | undefined> {
    // Another tab that has the same upload open does not send it twice.
    return await alone(`upload ${this.project}`, { ifAvailable: true }, async (isOurs) => {
      if (isOurs) return this.#run();
      this.problem = 'Another tab is uploading these files.';
      return undefined;
    });
  }

  async #run(): Promise<string | undefined> {
    this.isBusy = true;
    this.problem = undefined;
    for (const each of this.entries) each.problem = undefined;
    try {
      this.isBegun = true;
      await this.keep();
      let announced = await this.#announce();
      await this.#tellSources(announced.search_id);
      await this.#send(announced);
      if (this.entries.some((each) => !each.isStored)) {
        // Forms end; under the same key there are new ones for what has not arrived.
        announced = await this.#announce();
        await this.#send(announced);
      }
      const left = this.entries.filter((each) => !each.isStored).length;
      if (left) throw new Fault(`${many(left, 'file')} could not be uploaded; what arrived is kept.`);
      say(`${many(this.entries.length, 'file')} uploaded`);
      const id = this.searchId;
      await this.forget();
      return id;
    } catch (error) {
      this.problem = message(error);
      if (error instanceof Fault) this.#blame(error);
      return undefined;
    } finally {
      this.isBusy = false;
    }
  }

  /** A request that was refused has announced nothing, so its files may be changed. */
  #blame(fault: Fault): void {
    for (const [index, text] of fault.files) {
      const each = this.entries[index];
      if (each) each.problem = text;
    }
    // Whoever has signed in asks for the same again.
    const isRefused = !this.searchId && fault.status >= 400 && fault.status < 500 && fault.status !== 401;
    if (!isRefused) return;
    this.isBegun = false;
    // What is changed is another request, and has another key.
    this.#key = uuid();
    void this.keep();
  }

  async #announce(): Promise<Announced> {
    const announced = await asked(
      api.POST('/projects/{project}/searches', {
        params: { path: { project: this.project }, header: { 'Idempotency-Key': this.#key } },
        body: { name: this.name, files: this.entries.map(({ file }) => ({ name: file.name, size_bytes: file.size })) },
      }),
    );
    this.searchId = announced.search_id;
    // The first answer has all files, in their order; later ones have those that are missing.
    if (!this.#ids.length) this.#ids = announced.files.map((file) => file.file_id);
    for (const [index, each] of this.entries.entries()) {
      if (!announced.files.some((file) => file.file_id === this.#ids[index])) {
        Object.assign(each, { isStored: true, part: 1 });
      }
    }
    await this.keep();
    return announced;
  }

  async #tellSources(search: string): Promise<void> {
    const said = this.entries.flatMap(({ source }, index) => {
      const file = this.#ids[index];
      return file && Object.values(source).some((text) => text.trim()) ? [[file, source] as const] : [];
    });
    if (said.length) await tell({ project: this.project, search }, new Map(said));
  }

  async #send(announced: Announced): Promise<void> {
    const queue = announced.files.flatMap((file) => {
      const each = this.entries[this.#ids.indexOf(file.file_id)];
      return each && !each.isStored ? [{ each, form: file.upload }] : [];
    });
    const work = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { each, form } = next;
        if (Date.parse(form.expires_at) < Date.now() + MARGIN_MS) continue;
        try {
          await send(form, each.file, (part) => (each.part = part));
          Object.assign(each, { isStored: true, part: 1, problem: undefined });
        } catch (error) {
          each.part = 0;
          each.problem = message(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
}

function wrongWith(file: File, config: Config | undefined): string | undefined {
  if (!file.size) return 'The file is empty.';
  const { max_file_bytes: most, max_name_chars: longest } = config?.limits ?? {};
  if (most && file.size > most) return `The file has ${size(file.size)}; ${size(most)} is the most.`;
  if (longest && [...file.name].length > longest) return `The name is longer than ${longest} characters.`;
  return undefined;
}

export const upload = new Upload();
