import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";

/** Returns a component whose code is loaded when it is first shown. */
export function lazyComponent<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  const loaded = signal<{ component: ComponentType<Props> } | undefined>(undefined);
  const failure = signal<string | undefined>(undefined);
  let isLoading = false;
  const start = (): void => {
    if (isLoading) return;
    isLoading = true;
    load().then(
      (component) => (loaded.value = { component }),
      (error: unknown) => (failure.value = String(error)),
    );
  };
  return function Lazy(props: Props): JSX.Element {
    start();
    const Component = loaded.value?.component;
    if (Component) return <Component {...props} />;
    return <div class="empty-panel">{failure.value ?? "Loading …"}</div>;
  };
}
