import { exec, type ParameterValue, type Row } from "../api/exec.ts";
import { userName } from "../api/http.ts";

/**
 * Documents of the console in the table `console_documents` of the server.
 *
 * Each save adds a version. The column `replaces` is the time at which the replaced version was saved, and 1970 for the
 * first version. It is part of the key of the table, so a version has at most one successor: of two browsers that save
 * changes of the same version, the server accepts one and returns no row to the other. A deleted document has a last
 * version without a body.
 */
export type DocumentKind = "dashboard" | "notebook" | "query";

export interface Version {
  name: string;
  version: number;
  /** Timestamp as SQL text. */
  savedAt: string;
  author: string;
}

/** A version with its JSON; the body of a deleted document is `null`. */
export interface StoredVersion extends Version {
  body: string | null;
}

const TABLE = "console_documents";
const FIRST = "1970-01-01T00:00:00.000000Z";
const VERSIONS_MAX = 1000;

const CREATE = `CREATE TABLE IF NOT EXISTS ${TABLE} (
  replaces TIMESTAMP, kind SYMBOL, name VARCHAR, version LONG, saved_at TIMESTAMP, author VARCHAR, body VARCHAR
) TIMESTAMP(replaces) DEDUP UPSERT KEYS(replaces, kind, name)`;

// A clock that was set back must not give a version an earlier time than the one it replaces.
const INSERT = `INSERT INTO ${TABLE} (replaces, kind, name, version, saved_at, author, body)
VALUES ($1, $2, $3, $4, greatest(now(), dateadd('u', 1, $1)), coalesce($6, current_user), $5)
ON CONFLICT DO NOTHING RETURNING version, saved_at, author`;

let isTableKnown = false;

async function rowsOf(sql: string, params: ParameterValue[]): Promise<Row[]> {
  const answer = await exec(sql, { params });
  return answer.kind === "rows" ? answer.rows : [];
}

async function hasTable(): Promise<boolean> {
  if (!isTableKnown) {
    const rows = await rowsOf("SELECT table_name FROM tables() WHERE table_name = $1", [["text", TABLE]]);
    isTableKnown = rows.length > 0;
  }
  return isTableKnown;
}

function versionOf(name: string, [version, savedAt, author]: Row): Version {
  return { name, version: Number(version), savedAt: String(savedAt), author: String(author ?? "") };
}

/** Returns the newest version of each document of a kind that is not deleted, in order of their names. */
export async function listDocuments(kind: DocumentKind): Promise<Version[]> {
  if (!(await hasTable())) return [];
  const sql = `SELECT name, version, saved_at, author
FROM (SELECT * FROM ${TABLE} WHERE kind = $1 LATEST ON replaces PARTITION BY name)
WHERE body IS NOT NULL ORDER BY name`;
  const rows = await rowsOf(sql, [["text", kind]]);
  return rows.map(([name, ...rest]) => versionOf(String(name), rest));
}

/** Returns the versions of a document, the newest first. */
export async function listVersions(kind: DocumentKind, name: string): Promise<StoredVersion[]> {
  if (!(await hasTable())) return [];
  const sql = `SELECT version, saved_at, author, body FROM ${TABLE}
WHERE kind = $1 AND name = $2 ORDER BY replaces DESC LIMIT ${VERSIONS_MAX}`;
  const params: ParameterValue[] = [
    ["text", kind],
    ["text", name],
  ];
  return (await rowsOf(sql, params)).map(storedOf(name));
}

/** Returns the newest version of a document, also of a deleted one. */
export async function newestVersion(kind: DocumentKind, name: string): Promise<StoredVersion | undefined> {
  if (!(await hasTable())) return undefined;
  const sql = `SELECT version, saved_at, author, body FROM ${TABLE}
WHERE kind = $1 AND name = $2 ORDER BY replaces DESC LIMIT 1`;
  const params: ParameterValue[] = [
    ["text", kind],
    ["text", name],
  ];
  return (await rowsOf(sql, params)).map(storedOf(name))[0];
}

function textOrNull(text: string | null | undefined): ParameterValue {
  return text === null || text === undefined ? ["null"] : ["text", text];
}

function storedOf(name: string): (row: Row) => StoredVersion {
  return (row) => ({ ...versionOf(name, row), body: row[3] === null ? null : String(row[3]) });
}

/**
 * Adds a version that replaces `base`; without `base` the first one. A body of `null` deletes the document.
 *
 * Returns `undefined` and changes nothing if the server has a newer version than `base`.
 */
export async function saveVersion(
  kind: DocumentKind,
  name: string,
  base: Version | undefined,
  body: string | null,
): Promise<Version | undefined> {
  if (!(await hasTable())) {
    await exec(CREATE);
    isTableKnown = true;
  }
  const [row] = await rowsOf(INSERT, [
    ["TIMESTAMP", base?.savedAt ?? FIRST],
    ["text", kind],
    ["text", name],
    ["long", String((base?.version ?? 0) + 1)],
    textOrNull(body),
    textOrNull(userName()),
  ]);
  return row && versionOf(name, row);
}
