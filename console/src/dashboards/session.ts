import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { exec } from "../api/exec.ts";
import { timestampText } from "../charts/reduce.ts";
import { cellText } from "../results/cells.ts";
import { hasTimeRange, isReadOnly } from "../sql/statements.ts";
import { resolveRange, type TimeRange } from "../sql/time-range.ts";
import { takeLinkedChoices } from "../state/view.ts";
import type { Dashboard, Variable } from "./model.ts";
import { boundStatement, variableLiteral, type ValueList } from "./parameters.ts";

/** Values that a list may have. */
const LIST_MAX = 1000;

/** Begin of the name of a choice that is the value of a variable. */
const VARIABLE = "var.";

export type ListState = ValueList | { error: string };

/**
 * Choices of a user on a dashboard: time range, refresh, values of the variables. The choices are not changes of
 * the document; a save makes them its initial choices.
 */
export class Session {
  readonly range: Signal<TimeRange>;
  readonly refreshMs: Signal<number>;
  /** Chosen values by the name of the variable. */
  readonly chosen: Signal<ReadonlyMap<string, string>>;
  /** Lists by the name of the variable. */
  readonly lists = signal<ReadonlyMap<string, ListState>>(new Map());
  readonly isEditing = signal(false);
  readonly variables: Signal<Variable[]>;
  /** SQL literals of the variables by lower-case name; `undefined` for a list that is not read yet. */
  readonly literals: ReadonlySignal<Map<string, string | undefined>>;
  private unzoomed: TimeRange | undefined;
  /** Statement of the last request for a list, by the name of the variable. */
  private readonly asked = new Map<string, string>();

  /** `choices` are those of a link; they replace the initial ones of the dashboard. */
  constructor(dashboard: Dashboard, choices = new URLSearchParams()) {
    const { from, to } = dashboard.range;
    this.range = signal({ from: choices.get("from") ?? from, to: choices.get("to") ?? to });
    this.refreshMs = signal(dashboard.refreshMs);
    this.variables = signal(dashboard.variables);
    const linked = dashboard.variables.map(({ name }) => [name, choices.get(VARIABLE + name)] as const);
    this.chosen = signal(new Map(linked.filter((entry): entry is [string, string] => entry[1] !== null)));
    this.literals = computed(
      () => new Map(this.variables.value.map((variable) => [variable.name.toLowerCase(), this.literal(variable)])),
    );
  }

  /** The value of a variable: the chosen one, the one of the document, or the first one of its list. */
  valueOf(variable: Variable): string {
    const value = this.chosen.value.get(variable.name) ?? variable.value;
    if (variable.kind === "text" || value !== "") return value;
    return this.listOf(variable)?.values[0] ?? "";
  }

  listOf(variable: Variable): ValueList | undefined {
    const list = this.lists.value.get(variable.name);
    return list && "values" in list ? list : undefined;
  }

  private literal(variable: Variable): string | undefined {
    const isRead = variable.kind === "text" || this.lists.value.has(variable.name);
    return isRead ? variableLiteral(variable, this.valueOf(variable), this.listOf(variable)) : undefined;
  }

  choose(name: string, value: string): void {
    this.chosen.value = new Map(this.chosen.peek()).set(name, value);
  }

  /** The choices for a link. */
  choices(): URLSearchParams {
    const choices = new URLSearchParams({ ...this.range.peek() });
    for (const [name, value] of this.chosen.peek()) choices.set(VARIABLE + name, value);
    return choices;
  }

  /** Shows the time range that was selected in a chart; `undefined` shows the range before the first zoom. */
  zoom(sql: string, range: [number, number] | undefined): void {
    if (!hasTimeRange(sql)) return;
    if (range) {
      this.unzoomed ??= this.range.peek();
      this.range.value = { from: timestampText(range[0]), to: timestampText(range[1]) };
    } else if (this.unzoomed) this.setRange(this.unzoomed);
  }

  setRange(range: TimeRange): void {
    this.unzoomed = undefined;
    this.range.value = range;
  }

  /** Returns the dashboard with the choices of this session as its initial ones. */
  applied(dashboard: Dashboard): Dashboard {
    const variables = dashboard.variables.map((variable) => ({
      ...variable,
      value: this.chosen.peek().get(variable.name) ?? variable.value,
    }));
    return { ...dashboard, variables, range: this.range.peek(), refreshMs: this.refreshMs.peek() };
  }

  /** Reads the lists whose statements changed, also by the value of another variable. */
  readLists(): void {
    const range = resolveRange(this.range.value, Date.now());
    if ("invalid" in range) return;
    for (const variable of this.variables.value) {
      if (variable.kind !== "list") continue;
      const literals = new Map(this.literals.value);
      literals.delete(variable.name.toLowerCase());
      const bound = boundStatement(variable.sql, { literals, range, points: 1 });
      // The key has the range as it was entered: the times of a relative range change with each moment.
      const key = boundStatement(variable.sql, { literals, range: this.range.value, points: 1 });
      if ("waiting" in bound || "waiting" in key) continue;
      if (this.asked.get(variable.name) === key.sql) continue;
      this.asked.set(variable.name, key.sql);
      void this.readList(variable.name, bound.sql, key.sql);
    }
  }

  private async readList(name: string, sql: string, key: string): Promise<void> {
    const list = await listOfStatement(sql);
    // The statement may have changed during the request.
    if (this.asked.get(name) !== key) return;
    this.lists.value = new Map(this.lists.peek()).set(name, list);
  }
}

async function listOfStatement(sql: string): Promise<ListState> {
  if (!isReadOnly(sql)) return { error: "the list of a variable must be a query" };
  try {
    const answer = await exec(sql, { limit: [1, LIST_MAX] });
    if (answer.kind !== "rows") return { error: "the statement returns no rows" };
    const values = answer.rows
      .map((row) => row[0] ?? null)
      .filter((value) => value !== null)
      .map(cellText);
    return { values: [...new Set(values)], type: answer.columns[0]?.type ?? "VARCHAR" };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const sessions = new Map<string, Session>();

/** Returns the session of a dashboard in this browser tab; a link with choices begins a new one. */
export function sessionOf(name: string, dashboard: Dashboard): Session {
  const choices = takeLinkedChoices();
  const known = choices.size === 0 ? sessions.get(name) : undefined;
  const session = known ?? new Session(dashboard, choices);
  sessions.set(name, session);
  return session;
}
