import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { JSX } from "preact";
import type { PanelState } from "../panels/panel-query.ts";
import { PanelStatus } from "../panels/panel-status.tsx";
import { Icon } from "../ui/icons.tsx";
import { px } from "../ui/px.ts";
import { COLUMNS, placeByKey, placePanel, rowCount, sized, type Place } from "./layout.ts";
import type { Panel } from "./model.ts";
import { PanelContent } from "./panel-content.tsx";
import type { Session } from "./session.ts";

const ROW_HEIGHT = 34;
const GAP = 8;

interface DashboardGridProps {
  panels: Panel[];
  session: Session;
  refreshes: ReadonlySignal<number>;
  onPanels: (panels: Panel[]) => void;
  onEdit: (panel: Panel) => void;
  onRemove: (panel: Panel) => void;
  onOpenQuery: (panel: Panel) => void;
}

interface PanelFrameProps extends Omit<DashboardGridProps, "panels" | "onPanels"> {
  panel: Panel;
  onPlace: (place: Place) => void;
  /** Begins a drag; the returned function places the panel for a distance in pixels. */
  onDrag: (isResize: boolean) => (dx: number, dy: number) => void;
}

function titleOf(panel: Panel): string {
  return panel.title || "Untitled";
}

/** Moves or resizes a panel while the pointer is down. */
function drag(event: PointerEvent, begin: () => (dx: number, dy: number) => void): void {
  if (event.button !== 0) return;
  const handle = event.currentTarget as HTMLElement;
  const [x, y] = [event.clientX, event.clientY];
  const place = begin();
  handle.setPointerCapture(event.pointerId);
  const move = (e: PointerEvent): void => place(e.clientX - x, e.clientY - y);
  const stop = (): void => {
    handle.removeEventListener("pointermove", move);
    handle.removeEventListener("pointerup", stop);
    handle.removeEventListener("pointercancel", stop);
  };
  handle.addEventListener("pointermove", move);
  handle.addEventListener("pointerup", stop);
  handle.addEventListener("pointercancel", stop);
}

/** Buttons that change a panel: drag or arrow keys move it, with Shift they resize it. */
function EditButtons({ panel, onPlace, onDrag, onEdit, onRemove }: PanelFrameProps): JSX.Element {
  const press = (event: KeyboardEvent): void => {
    const place = placeByKey(panel, event.key, event.shiftKey);
    if (!place) return;
    event.preventDefault();
    onPlace(place);
  };
  const title = titleOf(panel);
  return (
    <>
      <button
        class="icon-button panel-move"
        aria-label={`Move ${title}`}
        title="Drag, or arrow keys; with Shift they change the size"
        onPointerDown={(event) => drag(event, () => onDrag(false))}
        onKeyDown={press}
      >
        <Icon name="move" size={13} />
      </button>
      <button class="icon-button" aria-label={`Edit ${title}`} title="Edit the panel" onClick={() => onEdit(panel)}>
        <Icon name="edit" size={13} />
      </button>
      <button
        class="icon-button"
        aria-label={`Remove ${title}`}
        title="Remove the panel"
        onClick={() => onRemove(panel)}
      >
        <Icon name="trash" size={13} />
      </button>
    </>
  );
}

function PanelFrame(props: PanelFrameProps): JSX.Element {
  const { panel, session, refreshes, onDrag, onOpenQuery } = props;
  const state = useSignal<PanelState | undefined>(undefined);
  const title = titleOf(panel);
  const isEditing = session.isEditing.value;
  const style = {
    gridColumn: `${panel.x + 1} / span ${panel.w}`,
    gridRow: `${panel.y + 1} / span ${panel.h}`,
  };
  return (
    <section class="panel" aria-label={title} data-panel={panel.id} style={style}>
      <header class="panel-head">
        <h2 title={title}>{title}</h2>
        {state.value && <PanelStatus state={state.value} />}
        {isEditing ? (
          <EditButtons {...props} />
        ) : (
          <button
            class="icon-button panel-query"
            aria-label={`Query of ${title}`}
            title="Open the query in a tab"
            onClick={() => onOpenQuery(panel)}
          >
            <Icon name="query" size={13} />
          </button>
        )}
      </header>
      <PanelContent
        panel={panel}
        session={session}
        refreshes={refreshes}
        onState={(changed) => void (state.value = changed)}
      />
      {isEditing && (
        <span class="panel-resize" aria-hidden="true" onPointerDown={(event) => drag(event, () => onDrag(true))}>
          <Icon name="resize" size={12} />
        </span>
      )}
    </section>
  );
}

/** The panels of a dashboard in their places. */
export function DashboardGrid(props: DashboardGridProps): JSX.Element {
  const { panels, onPanels } = props;
  const host = useRef<HTMLDivElement>(null);
  const current = useRef(panels);
  current.current = panels;
  const onDrag =
    (panel: Panel) =>
    (isResize: boolean): ((dx: number, dy: number) => void) => {
      // Each step starts from the places before the drag, so that panels that were pushed away return.
      const before = current.current;
      const cell = ((host.current?.clientWidth ?? 0) + GAP) / COLUMNS;
      return (dx, dy) => {
        const [columns, rows] = [Math.round(dx / cell), Math.round(dy / (ROW_HEIGHT + GAP))];
        const place = isResize ? sized(panel, columns, rows) : { ...panel, x: panel.x + columns, y: panel.y + rows };
        onPanels(placePanel(before, panel.id, place));
      };
    };
  const rows = rowCount(panels);
  return (
    <div
      class="dashboard-grid"
      ref={host}
      style={{
        gridTemplateColumns: `repeat(${COLUMNS}, minmax(0, 1fr))`,
        gridTemplateRows: `repeat(${rows}, ${px(ROW_HEIGHT)})`,
        gap: px(GAP),
      }}
    >
      {panels.map((panel) => (
        <PanelFrame
          key={panel.id}
          {...props}
          panel={panel}
          onPlace={(place) => onPanels(placePanel(panels, panel.id, place))}
          onDrag={onDrag(panel)}
        />
      ))}
    </div>
  );
}
