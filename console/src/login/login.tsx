import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { basicAuthorization, loginRequired, request, setAuthorization } from "../api/http.ts";
import { loadSchema } from "../state/schema.ts";
import { Logo } from "../ui/icons.tsx";

/** Tries credentials; returns the reason if the server refuses them. */
async function refusal(authorization: string): Promise<string | undefined> {
  setAuthorization(authorization);
  const response = await request("/chk?f=json&j=tidalite");
  if (response.ok) return undefined;
  setAuthorization(null);
  if (response.status === 429) return (await response.text()).trim();
  return response.status === 401
    ? "User name, password or token are not correct."
    : `The server answered ${response.status}.`;
}

/** Login with user name and password (HTTP basic) or with a token. The credentials are kept for this browser tab. */
export function Login(): JSX.Element {
  const method = useSignal<"password" | "token">("password");
  const error = useSignal<string | undefined>(undefined);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const field = (name: string): string => String(form.get(name) ?? "");
    const isToken = method.peek() === "token";
    error.value = await refusal(
      isToken ? `Bearer ${field("token")}` : basicAuthorization(field("user"), field("password")),
    );
    if (error.peek() !== undefined) return;
    loginRequired.value = false;
    await loadSchema();
  };
  return (
    <main class="login">
      <form onSubmit={(event) => void submit(event)}>
        <h1>
          <Logo size={28} /> Tidalite
        </h1>
        <div class="switch" role="group" aria-label="Method">
          <button type="button" aria-pressed={method.value === "password"} onClick={() => (method.value = "password")}>
            Password
          </button>
          <button type="button" aria-pressed={method.value === "token"} onClick={() => (method.value = "token")}>
            Token
          </button>
        </div>
        {method.value === "password" ? (
          <>
            <label>
              User
              <input name="user" type="text" autocomplete="username" autoFocus required />
            </label>
            <label>
              Password
              <input name="password" type="password" autocomplete="current-password" required />
            </label>
          </>
        ) : (
          <label>
            Token
            <input name="token" type="password" autocomplete="off" autoFocus required />
          </label>
        )}
        {error.value && (
          <p class="error-text" role="alert">
            {error.value}
          </p>
        )}
        <button class="button primary" type="submit">
          Log in
        </button>
      </form>
    </main>
  );
}
