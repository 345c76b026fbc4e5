import type { JSX } from "preact";
import { isLoggedIn, loginRequired, setAuthorization } from "../api/http.ts";
import { isDark, theme, toggleTheme } from "../state/settings.ts";
import { view, VIEWS, type View } from "../state/view.ts";
import { Icon, Logo, type IconName } from "../ui/icons.tsx";

const TITLES: Record<View, string> = {
  query: "Query",
  dashboards: "Dashboards",
  notebooks: "Notebooks",
  schema: "Schema",
  import: "Import",
  operations: "Operations",
};

function logOut(): void {
  setAuthorization(null);
  loginRequired.value = true;
}

/** Navigation at the left edge. */
export function Rail(): JSX.Element {
  theme.value;
  return (
    <nav class="rail" aria-label="Pages">
      <span class="rail-logo">
        <Logo />
      </span>
      {VIEWS.map((name, i) => (
        <button
          key={name}
          class="rail-button"
          aria-current={view.value === name ? "page" : undefined}
          title={`${TITLES[name]} (Alt ${i + 1})`}
          onClick={() => (view.value = name)}
        >
          <Icon name={name as IconName} size={19} />
          <span>{TITLES[name]}</span>
        </button>
      ))}
      <span class="spacer" />
      {isLoggedIn.value && (
        <button class="rail-button" title="Log out" aria-label="Log out" onClick={logOut}>
          <Icon name="logout" size={18} />
        </button>
      )}
      <button class="rail-button" title="Dark or light" aria-label="Dark or light" onClick={toggleTheme}>
        <Icon name={isDark() ? "sun" : "moon"} size={18} />
      </button>
    </nav>
  );
}
