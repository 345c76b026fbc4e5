import { DocumentStore } from "../documents/document-store.ts";
import { emptyNotebook, parseNotebook, type Notebook } from "./model.ts";

export const notebooks = new DocumentStore<Notebook>({
  kind: "notebook",
  parse: parseNotebook,
  empty: emptyNotebook,
});
