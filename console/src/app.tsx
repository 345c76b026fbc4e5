import { useEffect } from "preact/hooks";
import type { JSX } from "preact";
import { loginRequired } from "./api/http.ts";
import { hasUnsavedChanges } from "./documents/document-store.ts";
import { Editor } from "./editor/editor.tsx";
import { Login } from "./login/login.tsx";
import { Palette } from "./palette/palette.tsx";
import { openSavedQuery } from "./queries/saved-queries.ts";
import { Results } from "./results/results.tsx";
import { Sidebar } from "./schema/sidebar.tsx";
import { ParametersBar } from "./shell/parameters-bar.tsx";
import { Rail } from "./shell/rail.tsx";
import { watchServer } from "./shell/server-state.ts";
import { installShortcuts } from "./shell/shortcuts.ts";
import { StatusBar } from "./shell/status-bar.tsx";
import { TabBar } from "./shell/tab-bar.tsx";
import { loadSchema } from "./state/schema.ts";
import { editorHeight, isSidebarOpen, sidebarWidth } from "./state/settings.ts";
import { openedNames, view } from "./state/view.ts";
import { lazyComponent } from "./ui/lazy.tsx";
import { NoticeArea } from "./ui/notice.tsx";
import { px } from "./ui/px.ts";
import { Splitter } from "./ui/splitter.tsx";

const DashboardsPage = lazyComponent(() =>
  import("./dashboards/dashboards-page.tsx").then((module) => module.DashboardsPage),
);
const NotebooksPage = lazyComponent(() =>
  import("./notebooks/notebooks-page.tsx").then((module) => module.NotebooksPage),
);
const SchemaPage = lazyComponent(() => import("./schema/schema-page.tsx").then((module) => module.SchemaPage));
const ImportPage = lazyComponent(() => import("./import/import-page.tsx").then((module) => module.ImportPage));
const OperationsPage = lazyComponent(() =>
  import("./operations/operations-page.tsx").then((module) => module.OperationsPage),
);

function QueryPage(): JSX.Element {
  const linked = openedNames.value.query;
  useEffect(() => {
    if (linked !== undefined) void openSavedQuery(linked);
  }, [linked]);
  return (
    <div class="query-page">
      {isSidebarOpen.value && (
        <>
          <div class="sidebar-frame" style={{ width: px(sidebarWidth.value) }}>
            <Sidebar />
          </div>
          <Splitter size={sidebarWidth} min={160} max={() => innerWidth / 2} axis="x" label="Width of the sidebar" />
        </>
      )}
      <div class="workspace">
        <TabBar />
        <div class="editor-frame" style={{ height: px(editorHeight.value) }}>
          <Editor />
        </div>
        <ParametersBar />
        <Splitter size={editorHeight} min={60} max={() => innerHeight - 200} axis="y" label="Height of the editor" />
        <Results />
      </div>
    </div>
  );
}

function Page(): JSX.Element {
  switch (view.value) {
    case "dashboards":
      return <DashboardsPage />;
    case "notebooks":
      return <NotebooksPage />;
    case "schema":
      return <SchemaPage />;
    case "import":
      return <ImportPage />;
    case "operations":
      return <OperationsPage />;
    case "query":
      return <QueryPage />;
  }
}

/** Makes the browser ask for confirmation before it leaves a page with unsaved changes. */
function warnOfUnsavedChanges(): () => void {
  const ask = (event: BeforeUnloadEvent): void => {
    if (hasUnsavedChanges()) event.preventDefault();
  };
  addEventListener("beforeunload", ask);
  return () => removeEventListener("beforeunload", ask);
}

export function App(): JSX.Element {
  useEffect(() => {
    void loadSchema();
    const stops = [watchServer(), installShortcuts(), warnOfUnsavedChanges()];
    return () => stops.forEach((stop) => stop());
  }, []);
  if (loginRequired.value) return <Login />;
  return (
    <div class="app">
      <Rail />
      <main class="main">
        <Page />
      </main>
      <StatusBar />
      <Palette />
      <NoticeArea />
    </div>
  );
}
