import { DocumentStore } from "../documents/document-store.ts";
import { demoDashboards } from "./demo.ts";
import { emptyDashboard, parseDashboard, type Dashboard } from "./model.ts";

export const dashboards = new DocumentStore<Dashboard>({
  kind: "dashboard",
  parse: parseDashboard,
  empty: emptyDashboard,
  bundled: demoDashboards,
});
