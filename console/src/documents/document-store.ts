import { signal } from "@preact/signals";
import {
  listDocuments,
  newestVersion,
  saveVersion,
  type DocumentKind,
  type StoredVersion,
  type Version,
} from "./documents.ts";

/** A document that is open in this browser. */
export interface OpenDocument<T> {
  name: string;
  /** The version of the server that the draft was made from; `undefined` if the document was never saved. */
  base: Version | undefined;
  saved: T;
  /** The document with the changes that are not saved. */
  draft: T;
}

/** A save that the server refused because it has a newer version than the one that was edited. */
export interface Conflict {
  name: string;
  mine: Version | undefined;
  newest: StoredVersion;
}

export interface DocumentStoreOptions<T> {
  kind: DocumentKind;
  /** Checks the JSON of a document; throws an error that says what is wrong. */
  parse: (json: unknown) => T;
  empty: () => T;
  /** Documents that are part of the console. A saved document of the same name replaces them. */
  bundled?: () => Map<string, T>;
}

export function isChanged<T>(open: OpenDocument<T>): boolean {
  return JSON.stringify(open.draft) !== JSON.stringify(open.saved);
}

/** Returns the least free name of `name`, `name 2`, `name 3`, … */
export function freeName(name: string, taken: Set<string>): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? name : `${name} ${n}`;
    if (!taken.has(candidate)) return candidate;
  }
}

const stores: DocumentStore<unknown>[] = [];

/** The documents of a kind: the list of the server, and those that are open with their unsaved changes. */
export class DocumentStore<T> {
  readonly kind: DocumentKind;
  /** The list of the server; `undefined` until it is read. */
  readonly list = signal<Version[] | undefined>(undefined);
  readonly open = signal<ReadonlyMap<string, OpenDocument<T>>>(new Map());
  readonly conflict = signal<Conflict | undefined>(undefined);
  /** Reason of the last failed request. */
  readonly error = signal<string | undefined>(undefined);
  readonly parse: (json: unknown) => T;
  private readonly options: DocumentStoreOptions<T>;
  /** Names whose save has not ended. */
  private readonly saving = new Set<string>();

  constructor(options: DocumentStoreOptions<T>) {
    this.options = options;
    this.kind = options.kind;
    this.parse = options.parse;
    stores.push(this as DocumentStore<unknown>);
  }

  bundled(): Map<string, T> {
    return this.options.bundled?.() ?? new Map<string, T>();
  }

  /** All names: of the server, of the console itself, of new documents. */
  names(): string[] {
    const names = [
      ...this.bundled().keys(),
      ...(this.list.value ?? []).map(({ name }) => name),
      ...this.open.value.keys(),
    ];
    return [...new Set(names)].sort((a, b) => a.localeCompare(b));
  }

  async refresh(): Promise<void> {
    try {
      this.list.value = await listDocuments(this.kind);
      this.error.value = undefined;
    } catch (error) {
      this.fail(error);
    }
  }

  /** Opens a document with the newest version of the server; changes that are not saved stay. */
  async load(name: string): Promise<void> {
    const before = this.open.peek().get(name);
    const isNew = before !== undefined && before.base === undefined && !this.bundled().has(name);
    if (before && (isNew || isChanged(before))) return;
    try {
      const newest = await newestVersion(this.kind, name);
      this.error.value = undefined;
      // Changes that were made while the request ran stay.
      const now = this.open.peek().get(name);
      if (now && now !== before && isChanged(now)) return;
      if (newest && newest.body !== null) this.show(newest);
      else if (this.bundled().has(name)) this.set({ name, base: undefined, ...same(this.bundled().get(name) as T) });
      else this.error.value = `there is no ${this.kind} ${name}`;
    } catch (error) {
      this.fail(error);
    }
  }

  private show(version: StoredVersion): void {
    const content = this.parse(JSON.parse(version.body ?? "null"));
    const { body: _, ...base } = version;
    this.set({ name: version.name, base, ...same(content) });
  }

  /** Adds a document that the server does not have yet; returns its name. */
  create(name: string, content: T = this.options.empty()): string {
    const free = freeName(name, new Set(this.names()));
    this.put(free, undefined, content);
    return free;
  }

  /** Opens content that was made from a version of the server, or from none. */
  put(name: string, base: Version | undefined, draft: T): void {
    this.set({ name, base, saved: this.options.empty(), draft });
  }

  edit(name: string, draft: T): void {
    const open = this.open.peek().get(name);
    if (open) this.set({ ...open, draft });
  }

  /** Discards the unsaved changes. */
  discard(name: string): void {
    const open = this.open.peek().get(name);
    if (!open) return;
    if (open.base === undefined && !this.bundled().has(name)) this.close(name);
    else this.set({ ...open, draft: open.saved });
  }

  /** Closes a document; unsaved changes are lost. */
  close(name: string): void {
    const rest = new Map(this.open.peek());
    rest.delete(name);
    this.open.value = rest;
  }

  /**
   * Saves the draft of a document as a new version; returns true if the server has it.
   *
   * `base` is the version that is replaced. If the server has a newer one, nothing is saved and `conflict` is set.
   */
  async save(name: string, base = this.open.peek().get(name)?.base): Promise<boolean> {
    const open = this.open.peek().get(name);
    if (!open || this.saving.has(name)) return false;
    const { draft } = open;
    this.saving.add(name);
    const saved = await this.write(name, base, JSON.stringify(draft));
    this.saving.delete(name);
    if (!saved) return false;
    const current = this.open.peek().get(name) ?? open;
    this.set({ ...current, base: saved, saved: draft });
    await this.refresh();
    return true;
  }

  /** Saves the content of an old version as the newest one; the draft becomes that content. */
  async restore({ name, body }: StoredVersion): Promise<boolean> {
    this.edit(name, this.parse(JSON.parse(body ?? "null")));
    return this.save(name);
  }

  /** Deletes a document; its versions stay in the table. */
  async remove(name: string): Promise<boolean> {
    const { base } = this.open.peek().get(name) ?? {};
    if (base && !(await this.write(name, base, null))) return false;
    this.close(name);
    await this.refresh();
    return true;
  }

  /** Replaces the draft by the newest version of the server. */
  takeNewest({ newest }: Conflict): void {
    this.conflict.value = undefined;
    if (newest.body === null) this.close(newest.name);
    else this.show(newest);
  }

  private async write(name: string, base: Version | undefined, body: string | null): Promise<Version | undefined> {
    try {
      const saved = await saveVersion(this.kind, name, base, body);
      const newest = saved ? undefined : await newestVersion(this.kind, name);
      this.error.value = undefined;
      if (saved || !newest) return saved;
      // A name that was deleted before can be used again.
      if (base === undefined && newest.body === null) return await saveVersion(this.kind, name, newest, body);
      this.conflict.value = { name, mine: base, newest };
    } catch (error) {
      this.fail(error);
    }
    return undefined;
  }

  private fail(error: unknown): void {
    this.error.value = error instanceof Error ? error.message : String(error);
  }

  private set(open: OpenDocument<T>): void {
    this.open.value = new Map(this.open.peek()).set(open.name, open);
  }
}

function same<T>(content: T): { saved: T; draft: T } {
  return { saved: content, draft: content };
}

/** Returns true if a document has changes that would be lost with the page; tabs keep the text of saved queries. */
export function hasUnsavedChanges(): boolean {
  return stores.some((store) => store.kind !== "query" && [...store.open.peek().values()].some(isChanged));
}
