import { signal } from "@preact/signals";

/** True while the server requires credentials that the console does not have. */
export const loginRequired = signal(false);
/** True if requests carry credentials of the login form. */
export const isLoggedIn = signal(false);

const STORED = "tidalite.authorization";
let authorization = sessionStorage.getItem(STORED);
isLoggedIn.value = authorization !== null;

/** Keeps credentials for this browser tab; `null` forgets them. */
export function setAuthorization(value: string | null): void {
  authorization = value;
  isLoggedIn.value = value !== null;
  if (value === null) sessionStorage.removeItem(STORED);
  else sessionStorage.setItem(STORED, value);
}

export function basicAuthorization(user: string, password: string): string {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

/** Name of the user who logged in by password, if there is one. */
export function userName(): string | undefined {
  const encoded = /^Basic (.*)$/.exec(authorization ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(bytes).split(":")[0];
}

/**
 * Sends a request to the server.
 *
 * A response 401 opens the login form. Credentials of the browser are not sent once the login form has some, so that a
 * wrong password does not open the dialog of the browser.
 */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("X-Requested-With", "tidalite-console");
  if (authorization !== null) headers.set("Authorization", authorization);
  const response = await fetch(path, { ...init, headers, credentials: "omit", cache: "no-store" });
  if (response.status === 401) loginRequired.value = true;
  return response;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Saves bytes as a file of the user. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
