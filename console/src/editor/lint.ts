import { linter, type Diagnostic } from "@codemirror/lint";
import { StateEffect } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { validate, type SyntaxProblem } from "../api/exec.ts";
import { indexOfCharacter, splitStatements, withNamedParameters, type Statement } from "../sql/statements.ts";
import { tokenize } from "../sql/tokens.ts";
import type { Run } from "../state/run.ts";

const STATEMENT_CHARS_MAX = 100_000;
const STATEMENTS_MAX = 50;
const CACHE_MAX = 500;

const checked = new Map<string, SyntaxProblem | undefined>();

/** Returns text in place of a parameter `:name` for a check of the syntax. The same length keeps the positions of errors. */
function placeholderOf(name: string): string {
  return name === "interval" ? "1m".padEnd(name.length + 1) : `'${"_".repeat(name.length - 1)}'`;
}

async function check(sql: string, signal: AbortSignal): Promise<SyntaxProblem | undefined> {
  if (checked.has(sql)) return checked.get(sql);
  const problem = await validate(withNamedParameters(sql, placeholderOf), signal);
  if (checked.size >= CACHE_MAX) checked.clear();
  checked.set(sql, problem);
  return problem;
}

/** Returns the token at a position of a statement, or one character at its end. */
function rangeAt(sql: string, position: number): [number, number] {
  const index = Math.min(indexOfCharacter(sql, position), sql.length);
  const token = tokenize(sql).find((token) => token.from <= index && index < token.to);
  return token ? [token.from, token.to] : [Math.max(0, index - 1), sql.length];
}

function diagnostic(
  statement: Statement,
  problem: { message: string; position: number; hint: string | undefined },
): Diagnostic {
  const [from, to] = rangeAt(statement.text, problem.position);
  return {
    from: statement.from + from,
    to: statement.from + Math.max(to, from + 1),
    severity: "error",
    message: problem.hint ? `${problem.message}\n${problem.hint}` : problem.message,
  };
}

async function syntaxDiagnostics(view: EditorView): Promise<Diagnostic[]> {
  const text = view.state.doc.toString();
  const statements = splitStatements(text).filter((s) => s.text.length <= STATEMENT_CHARS_MAX);
  const abort = new AbortController();
  try {
    const problems = await Promise.all(statements.slice(0, STATEMENTS_MAX).map((s) => check(s.text, abort.signal)));
    return problems.flatMap((problem, i) => (problem ? [diagnostic(statements[i] as Statement, problem)] : []));
  } catch {
    return [];
  }
}

/** Returns the mark of the error of a run, while the text still has the statement at its place. */
export function runDiagnostic(text: string, run: Run | undefined): Diagnostic | undefined {
  const error = run?.error;
  if (!run || error?.position === undefined) return undefined;
  if (text.slice(run.offset, run.offset + run.sql.length) !== run.sql) return undefined;
  const statement = { from: run.offset, to: run.offset + run.sql.length, text: run.sql };
  return diagnostic(statement, { message: error.message, position: error.position, hint: error.hint });
}

/** Has the marks computed again without a change of the text. */
export const refreshLint = StateEffect.define<null>();

/** Marks syntax errors as the server reports them, and the error of the last run. */
export function sqlLinter(lastRun: () => Run | undefined): ReturnType<typeof linter> {
  return linter(
    async (view) => {
      const found = await syntaxDiagnostics(view);
      const failed = runDiagnostic(view.state.doc.toString(), lastRun());
      const isNew = failed !== undefined && !found.some((d) => d.from === failed.from);
      return isNew ? [...found, failed] : found;
    },
    {
      delay: 350,
      needsRefresh: (update) => update.transactions.some((t) => t.effects.some((e) => e.is(refreshLint))),
    },
  );
}
