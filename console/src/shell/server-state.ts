import { signal } from "@preact/signals";
import { loginRequired, request } from "../api/http.ts";
import { loadSchema, schemaError } from "../state/schema.ts";

export interface ServerState {
  isReachable: boolean;
  isReadOnly: boolean;
  version: string;
  /** Reason if the server does not accept queries or writes. */
  problem: string | undefined;
}

export const serverState = signal<ServerState | undefined>(undefined);

const INTERVAL_MS = 10_000;
let version = "";

async function readVersion(): Promise<string> {
  const settings = (await (await request("/settings")).json()) as { config?: Record<string, unknown> };
  return String(settings.config?.["release.version"] ?? "");
}

/** Returns true if the last request for the schema failed for another reason than missing credentials. */
function isSchemaMissing(): boolean {
  return schemaError.peek() !== undefined && !loginRequired.peek();
}

async function check(): Promise<void> {
  try {
    const response = await request("/ping");
    if (serverState.peek()?.isReachable === false || isSchemaMissing()) void loadSchema();
    version ||= await readVersion();
    const problem = response.ok ? undefined : (await response.text()).trim();
    serverState.value = {
      isReachable: true,
      isReadOnly: response.headers.has("X-Tidalite-Read-Only"),
      version,
      problem,
    };
  } catch {
    serverState.value = { isReachable: false, isReadOnly: false, version, problem: "the server cannot be reached" };
  }
}

/** Checks the server now and then; hidden pages send nothing. */
export function watchServer(): () => void {
  void check();
  const timer = setInterval(() => void (document.hidden || check()), INTERVAL_MS);
  return () => clearInterval(timer);
}
