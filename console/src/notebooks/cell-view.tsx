import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import { ChartChoices } from "../panels/chart-choices.tsx";
import type { PanelQuery } from "../panels/panel-query.ts";
import { ErrorBox, PanelStatus } from "../panels/panel-status.tsx";
import { RowsView } from "../panels/rows-view.tsx";
import { SqlField } from "../panels/sql-field.tsx";
import { HEAD_HEIGHT, ROW_HEIGHT } from "../results/grid.tsx";
import { doneText } from "../state/run.ts";
import { Icon } from "../ui/icons.tsx";
import { px } from "../ui/px.ts";
import { MarkdownView } from "./markdown-view.tsx";
import type { Cell } from "./model.ts";

const SCROLL_BAR_HEIGHT = 12;

interface CellProps {
  cell: Cell;
  /** Number of the cell, counted from 1. */
  number: number;
  isLast: boolean;
  query: PanelQuery;
  onChange: (cell: Cell) => void;
  onRun: () => void;
  onMove: (step: 1 | -1) => void;
  onRemove: () => void;
}

function MarkdownCell({ cell, number, onChange }: CellProps): JSX.Element {
  const isEditing = useSignal(cell.text === "");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (isEditing.value) field.current?.focus();
  }, [isEditing.value]);
  const finish = (): void => void (isEditing.value = false);
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" && !(event.key === "Enter" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    finish();
  };
  if (!isEditing.value)
    return (
      <div class="cell-text" onDblClick={() => void (isEditing.value = true)}>
        <MarkdownView text={cell.text} />
        <button
          class="icon-button cell-edit"
          aria-label={`Edit text ${number}`}
          title="Edit the text (double-click)"
          onClick={() => void (isEditing.value = true)}
        >
          <Icon name="edit" size={13} />
        </button>
      </div>
    );
  return (
    <div class="cell-text">
      <textarea
        ref={field}
        aria-label={`Text ${number}`}
        placeholder="Markdown: # heading, **bold**, - list, `code`, | table |"
        value={cell.text}
        rows={Math.max(3, cell.text.split("\n").length + 1)}
        onInput={(event) => onChange({ ...cell, text: (event.target as HTMLTextAreaElement).value })}
        onKeyDown={press}
      />
      <button class="button small" title="Show the text (Ctrl Enter)" onClick={finish}>
        <Icon name="check" size={12} /> Done
      </button>
    </div>
  );
}

/** Height of a grid that shows all rows, up to the height of ten. */
function gridHeight(rows: number): number {
  return HEAD_HEIGHT + SCROLL_BAR_HEIGHT + ROW_HEIGHT * Math.max(1, Math.min(10, rows));
}

/** The rows of a statement, or its outcome. */
function Outcome({ cell, query, onChange }: CellProps): JSX.Element | null {
  const { result, done, error } = query.state.value;
  if (cell.kind === "chart" && result)
    return <ChartChoices chart={cell.chart} onChart={(chart) => onChange({ ...cell, chart })} query={query} />;
  return (
    <>
      {error && <ErrorBox {...error} />}
      {done && !error && <p class="panel-note">{doneText(done)}</p>}
      {result && (
        <div class="cell-rows" style={{ height: px(gridHeight(result.rows.length)) }}>
          <RowsView
            result={result}
            chart={{ kind: "table" }}
            group="notebook"
            isZoomedAtServer={false}
            onZoom={() => undefined}
          />
        </div>
      )}
    </>
  );
}

function SqlCell(props: CellProps): JSX.Element {
  const { cell, number, query, onChange, onRun } = props;
  const state = query.state.value;
  return (
    <>
      <SqlField
        label={`Statement ${number}`}
        text={cell.text}
        onChange={(text) => onChange({ ...cell, text })}
        onRun={onRun}
      />
      <p class="cell-line">
        {state.isRunning ? (
          <button class="button small" onClick={() => query.cancel()}>
            <Icon name="stop" size={11} /> Cancel
          </button>
        ) : (
          <button class="button small" title="Run (Ctrl Enter)" aria-label={`Run statement ${number}`} onClick={onRun}>
            <Icon name="play" size={11} /> Run
          </button>
        )}
        <PanelStatus state={state} />
      </p>
      <Outcome {...props} />
    </>
  );
}

/** A cell of a notebook with its commands. */
export function CellView(props: CellProps): JSX.Element {
  const { cell, number, isLast, onMove, onRemove } = props;
  return (
    <section class={`notebook-cell ${cell.kind}`} aria-label={`Cell ${number}`} data-cell={cell.id}>
      <div class="cell-commands">
        <button
          class="icon-button"
          aria-label={`Move cell ${number} up`}
          disabled={number === 1}
          onClick={() => onMove(-1)}
        >
          <Icon name="up" size={12} />
        </button>
        <button class="icon-button" aria-label={`Move cell ${number} down`} disabled={isLast} onClick={() => onMove(1)}>
          <Icon name="down" size={12} />
        </button>
        <button class="icon-button" aria-label={`Remove cell ${number}`} onClick={onRemove}>
          <Icon name="trash" size={12} />
        </button>
      </div>
      {cell.kind === "markdown" ? <MarkdownCell {...props} /> : <SqlCell {...props} />}
    </section>
  );
}
