import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { SqlField } from "../panels/sql-field.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { nameProblem, type Variable } from "./model.ts";
import type { Session } from "./session.ts";

function ListField({ variable, session }: { variable: Variable; session: Session }): JSX.Element {
  const state = session.lists.value.get(variable.name);
  const value = session.valueOf(variable);
  const values = state && "values" in state ? state.values : [];
  const options = value === "" || values.includes(value) ? values : [value, ...values];
  const error = state && "error" in state ? state.error : undefined;
  return (
    <select
      value={value}
      aria-label={`Value of :${variable.name}`}
      aria-invalid={error !== undefined}
      title={error}
      onChange={(event) => session.choose(variable.name, (event.target as HTMLSelectElement).value)}
    >
      {options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  );
}

/** Fields for the values of the variables. */
export function VariableFields({ variables, session }: { variables: Variable[]; session: Session }): JSX.Element {
  return (
    <>
      {variables.map((variable) => (
        <label key={variable.name} class="field variable">
          <span>{variable.name}</span>
          {variable.kind === "list" ? (
            <ListField variable={variable} session={session} />
          ) : (
            <input
              type="text"
              value={session.valueOf(variable)}
              aria-label={`Value of :${variable.name}`}
              spellcheck={false}
              onChange={(event) => session.choose(variable.name, (event.target as HTMLInputElement).value)}
            />
          )}
        </label>
      ))}
    </>
  );
}

interface VariableRowProps {
  variable: Variable;
  problem: string | undefined;
  onChange: (variable: Variable) => void;
  onRemove: () => void;
}

function VariableRow({ variable, problem, onChange, onRemove }: VariableRowProps): JSX.Element {
  const { name, kind, value, sql } = variable;
  return (
    <fieldset class="variable-row">
      <div class="form-row">
        <label class="field">
          <span>Name</span>
          <input
            type="text"
            value={name}
            spellcheck={false}
            onInput={(event) => onChange({ ...variable, name: (event.target as HTMLInputElement).value })}
          />
        </label>
        <label class="field">
          <span>Kind</span>
          <select
            value={kind}
            onChange={(event) =>
              onChange({ ...variable, kind: (event.target as HTMLSelectElement).value as Variable["kind"] })
            }
          >
            <option value="text">text</option>
            <option value="list">list from a query</option>
          </select>
        </label>
        <label class="field">
          <span>First value</span>
          <input
            type="text"
            value={value}
            spellcheck={false}
            onInput={(event) => onChange({ ...variable, value: (event.target as HTMLInputElement).value })}
          />
        </label>
        <button type="button" class="icon-button" aria-label={`Remove ${name}`} title="Remove" onClick={onRemove}>
          <Icon name="trash" size={13} />
        </button>
      </div>
      {kind === "list" && (
        <SqlField
          label={`Query of the list ${name}`}
          text={sql}
          onChange={(changed) => onChange({ ...variable, sql: changed })}
          onRun={() => undefined}
        />
      )}
      {problem && <p class="error-text">{problem}</p>}
    </fieldset>
  );
}

interface VariablesDialogProps {
  variables: Variable[];
  onApply: (variables: Variable[]) => void;
  onClose: () => void;
}

/** Adds, changes and removes variables. */
export function VariablesDialog({ variables, onApply, onClose }: VariablesDialogProps): JSX.Element {
  // Keys keep the editors of other variables while one is removed.
  const [edited, setEdited] = useState(() => variables.map((variable, key) => ({ key, variable })));
  const names = edited.map(({ variable }) => variable.name);
  const problems = names.map((name, i) => nameProblem(name, names.slice(0, i)));
  const add = (): void => {
    const key = Math.max(-1, ...edited.map((entry) => entry.key)) + 1;
    setEdited([...edited, { key, variable: { name: "", kind: "text", value: "", sql: "" } }]);
  };
  return (
    <Dialog title="Variables" onClose={onClose} isWide>
      <p class="muted">
        A statement uses a variable as <code>:name</code>. Numbers, true, false and null stand for themselves, all else
        is text.
      </p>
      {edited.map(({ key, variable }, i) => (
        <VariableRow
          key={key}
          variable={variable}
          problem={variable.name === "" ? undefined : problems[i]}
          onChange={(changed) => setEdited(edited.with(i, { key, variable: changed }))}
          onRemove={() => setEdited(edited.filter((_, other) => other !== i))}
        />
      ))}
      <p class="dialog-buttons">
        <button class="button" onClick={add}>
          <Icon name="plus" size={12} /> Add a variable
        </button>
        <span class="spacer" />
        <button class="button" onClick={onClose}>
          Cancel
        </button>
        <button
          class="button primary"
          disabled={problems.some((problem) => problem !== undefined)}
          onClick={() => onApply(edited.map(({ variable }) => variable))}
        >
          Apply
        </button>
      </p>
    </Dialog>
  );
}
