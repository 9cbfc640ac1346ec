// The signature of the console: every GPU is one cell. The canvas is painted per answer; a ring and a card follow the pointer or the keys.
import { type KeyboardEvent, type MouseEvent, type PointerEvent, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useGpuMap, useNode } from "../api/queries";
import type { GpuMapAnswer } from "../api/types";
import { Command } from "../parts/Copy";
import { useWords, type Words } from "../i18n/locale";
import { useLook } from "../look/theme";
import { Choices } from "../parts/Choices";
import { Icon } from "../parts/Icon";
import { Panel } from "../parts/Panel";
import { Answered, Bones, Empty } from "../parts/States";
import { statusWord } from "../parts/Status";
import { useAt } from "../past/at";
import { navigate } from "../router/router";
import { useQueryState } from "../router/usequery";
import { ObjectCommand } from "../commands/EqualCommand";
import { count, percent } from "../format/format";
import { type Cell, type GpuMapData, readMap, sizeOf } from "./cells";
import { COLOUR_BY, type ColourBy, paletteOf } from "./colour";
import { isLit, type Lit, litCells } from "./counts";
import { draw, type Picture } from "./draw";
import type { Focus } from "./focus";
import { holderPage } from "./holder";
import { type Arrow, cellAt, layOut, type Layout, leap, neighbour, place, rowsOf, wheelStep, zoomSizes } from "./layout";
import { Legend } from "./Legend";
import { MapCard } from "./MapCard";
import { MapTable } from "./MapTable";

interface Props {
  heightMax?: number;
  heightMany?: number;
  focus?: Focus;
  className?: string;
}

const isColourBy = (text: string | null): text is ColourBy => (COLOUR_BY as readonly string[]).includes(text ?? "");

/** Tens of thousands of cells deserve more room than dozens. */
const MANY_CELLS = 8000;

const EVERYTHING: Focus = { nodes: null, cards: null };

export function GpuMap({ heightMax = 360, heightMany = 660, focus = EVERYTHING, className }: Props) {
  const { t } = useWords();
  const asked = useGpuMap();
  const [params, set] = useQueryState();
  const chosen = params.get("color");
  // The past has no utilization: who held the cards is what it shows.
  const usual: ColourBy = useAt() === null ? "util" : "team";
  const by: ColourBy = isColourBy(chosen) ? chosen : usual;
  const asTable = params.get("map") === "table";
  const tools = (
    <>
      <Choices name="color" label={t("map.colourBy")} value={by} choices={COLOUR_BY.map((value) => ({ value, word: t(`map.by.${value}`) }))} onChoose={(value) => set({ color: value === usual ? null : value }, "replace")} />
      <button type="button" className="tool" aria-pressed={asTable} title={t("map.table")} aria-label={t("map.table")} onClick={() => set({ map: asTable ? null : "table" }, "replace")} data-testid="action-map-table">
        <Icon name="table" />
      </button>
      <ObjectCommand of={{ kind: "map" }} />
    </>
  );
  return (
    <Panel slug="gpu-map" title={t("map.title")} tools={tools} className={`map-panel ${className ?? ""}`}>
      <Answered asked={asked} bones={<Bones lines={5} />}>
        {(answer) => <MapBody answer={answer} by={by} asTable={asTable} heightMax={sizeOf(answer) > MANY_CELLS ? heightMany : heightMax} focus={focus} />}
      </Answered>
    </Panel>
  );
}

function MapBody({ answer, by, asTable, heightMax, focus }: { answer: GpuMapAnswer; by: ColourBy; asTable: boolean; heightMax: number; focus: Focus }) {
  const { t } = useWords();
  const { tokens } = useLook();
  const [params, set] = useQueryState();
  const asked = params.get("light");
  const lit = isLit(asked) ? asked : null;
  const map = useMemo(() => readMap(answer), [answer]);
  const palette = useMemo(() => paletteOf(tokens, map), [tokens, map]);
  if (map.cells.length === 0) {
    return (
      <Empty why={t("map.empty")}>
        {t("map.emptyNext")} <Command text="kubectl get nodes -o custom-columns=NAME:.metadata.name,GPUS:.status.capacity" />
      </Empty>
    );
  }
  return (
    <>
      {asTable ? <MapTable map={map} /> : <MapCanvas map={map} palette={palette} by={by} heightMax={heightMax} focus={focus} lit={lit} />}
      <Legend map={map} by={by} palette={palette} lit={lit} onLight={(mark) => set({ light: mark }, "replace")} />
    </>
  );
}

function MapCanvas({ map, palette, by, heightMax, focus, lit }: { map: GpuMapData; palette: Picture["palette"]; by: ColourBy; heightMax: number; focus: Focus; lit: Lit | null }) {
  const { t } = useWords();
  const box = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [params, set] = useQueryState();
  const fitting = useMemo(() => layOut(map, Math.max(200, width), heightMax), [map, width, heightMax]);
  const sizes = useMemo(() => (map.cells.length > ZOOMED_FROM ? zoomSizes(map, Math.max(200, width), fitting.cell) : []), [map, width, fitting]);
  const zoom = sizes.find((size) => String(size) === params.get("zoom")) ?? null;
  const layout = useMemo(() => (zoom === null ? fitting : place(map, Math.max(200, width), zoom)), [fitting, map, width, zoom]);
  const rows = useMemo(() => rowsOf(layout), [layout]);
  const [at, setAt] = useState(-1);
  const [chosen, setChosen] = useState(-1);
  const [corner, setCorner] = useState({ left: 0, top: 0 });
  const id = useId();
  const anchor = useRef(-1);

  // After the paint, so that a map of 40,000 cells does not hold up the rows beside it.
  useEffect(() => {
    const groupTitle = (model: number, nodes: number, gpus: number) => t("map.group", { model: map.models[model] || t("map.noModel"), nodes: count(nodes), gpus: count(gpus), n: nodes, g: gpus });
    if (picture.current && width > 0) draw(picture.current, { map, layout, palette, by, focus, isLit: litCells(lit, map), groupTitle, statusWord: (status) => statusWord(status, t) });
  }, [map, layout, palette, by, focus, lit, t, width]);

  const cell = map.cells[at];
  const node = map.nodes[map.cells[chosen]?.node ?? -1];
  const detail = useNode(node?.name ?? null).data;
  const enlarge = (step: 1 | -1 | 0) => {
    const place = zoom === null ? -1 : sizes.indexOf(zoom);
    const next = step === 0 ? -1 : Math.min(sizes.length - 1, place + step);
    if ((sizes[next] ?? null) === zoom) return;
    anchor.current = at;
    set({ zoom: next < 0 ? null : String(sizes[next]) }, "replace");
  };
  const turn = useRef(enlarge);
  useEffect(() => {
    turn.current = enlarge;
  });
  const canZoom = sizes.length > 0;
  // By hand: React's own wheel listener cannot keep the browser from zooming the page.
  useEffect(() => {
    const element = box.current;
    if (!element || !canZoom) return;
    let turned = 0;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { rest, step } = wheelStep(turned, event.deltaY);
      turned = rest;
      if (step !== 0) turn.current(step);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [canZoom]);
  // The current cell stays in sight when the cells change their size.
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || anchor.current < 0) return;
    element.scrollTop = (layout.y[anchor.current] ?? 0) + layout.cell / 2 - element.clientHeight / 2;
    anchor.current = -1;
    const rect = picture.current?.getBoundingClientRect();
    if (rect) setCorner({ left: rect.left, top: rect.top });
  }, [layout]);
  /** What the chosen card's holder is known by; its node's answer may still be on the way. */
  const openChosen = () => {
    const of = map.cells[chosen];
    if (node && of) navigate(holderPage(node.name, detail?.gpus.find((gpu) => gpu.index === of.index), of.slices.length > 0));
  };
  const seen = () => {
    const rect = picture.current?.getBoundingClientRect();
    if (rect) setCorner({ left: rect.left, top: rect.top });
    return rect;
  };
  const under = (event: MouseEvent<HTMLCanvasElement>) => {
    const rect = seen();
    return rect ? cellAt(map, layout, event.clientX - rect.left, event.clientY - rect.top) : -1;
  };
  const goTo = (next: number) => {
    setAt(next);
    setChosen(next);
    if (box.current) scrollTo(box.current, layout.y[next] ?? 0, layout.cell);
    seen();
  };
  // From the event: a tap, or a click after the page has moved under a resting pointer, comes without a move.
  const onClick = (event: MouseEvent<HTMLCanvasElement>) => {
    const hit = under(event);
    setAt(hit);
    if (hit >= 0 && hit === chosen) openChosen();
    else setChosen(hit);
  };
  const onKey = (event: KeyboardEvent) => {
    const from = Math.max(0, at);
    const next = cell === undefined && event.key.startsWith("Arrow") ? 0 : event.key.startsWith("Arrow") ? neighbour(layout, from, event.key as Arrow) : leap(rows, from, event.key, event.ctrlKey || event.metaKey);
    if (next >= 0) goTo(next);
    else if ((event.key === "Enter" || event.key === " ") && cell !== undefined) {
      if (chosen === at) openChosen();
      else setChosen(at);
    } else if (event.key === "Escape" && at >= 0) {
      setAt(-1);
      setChosen(-1);
    } else if (sizes.length > 0 && ZOOM_KEYS[event.key] !== undefined && !event.ctrlKey && !event.metaKey) enlarge(ZOOM_KEYS[event.key] as 1 | -1 | 0);
    else return;
    event.preventDefault();
  };
  return (
    <>
      {sizes.length > 0 && (
        <div className="map-zoom" role="group" aria-label={t("map.zoom")}>
          <button type="button" className="tool" disabled={zoom === null} onClick={() => enlarge(-1)} aria-label={t("map.smaller")} title={`${t("map.smaller")} (-)`}>
            −
          </button>
          <button type="button" className="tool" disabled={zoom === sizes.at(-1)} onClick={() => enlarge(1)} aria-label={t("map.larger")} title={`${t("map.larger")} (+)`} data-testid="action-map-larger">
            +
          </button>
          <button type="button" className="tool" disabled={zoom === null} onClick={() => enlarge(0)} title={`${t("map.fit")} (0)`}>
            {t("map.fit")}
          </button>
        </div>
      )}
      <div className="map-box" ref={box} style={{ maxHeight: heightMax + 4 }} onScroll={() => at >= 0 && seen()}>
        <div className="map-layers" style={{ height: layout.height }}>
          <canvas
            ref={picture}
            data-hit={cell !== undefined}
            tabIndex={0}
            // oxlint-disable-next-line jsx-a11y/no-interactive-element-to-noninteractive-role -- one cell of the grid is announced at a time: there may be 40,000
            role="grid"
            aria-label={t("map.label", { gpus: count(map.cells.length), nodes: count(map.nodes.length) })}
            aria-rowcount={rows.starts.length}
            aria-activedescendant={cell ? id : undefined}
            onPointerMove={(event: PointerEvent<HTMLCanvasElement>) => setAt(under(event))}
            onPointerLeave={() => setAt(chosen)}
            onClick={onClick}
            onKeyDown={onKey}
            onFocus={(event) => event.currentTarget.matches(":focus-visible") && at < 0 && goTo(0)}
            onBlur={() => {
              setAt(-1);
              setChosen(-1);
            }}
          >
            <span role="row" aria-rowindex={(rows.rowOf[Math.max(0, at)] ?? 0) + 1}>
              <span role="gridcell" id={id} aria-selected={at === chosen}>
                {cell && cellWords(map, cell, t)}
              </span>
            </span>
          </canvas>
          {cell && <div className="map-ring" data-chosen={at === chosen} style={ringOf(layout, at)} />}
          {cell && <MapCard map={map} cell={cell} palette={palette} x={corner.left + (layout.x[at] ?? 0)} y={corner.top + (layout.y[at] ?? 0)} size={layout.cell} chosen={at === chosen} />}
        </div>
      </div>
    </>
  );
}

/** More cells than that are too small to hit when all are in sight. */
const ZOOMED_FROM = 2000;
const ZOOM_KEYS: Readonly<Record<string, 1 | -1 | 0>> = { "+": 1, "=": 1, "-": -1, "0": 0 };

/** The label of a cell for screen readers: node and card, state, load, and holder. */
function cellWords(map: GpuMapData, cell: Cell, t: Words["t"]): string {
  const node = map.nodes[cell.node];
  const teams = [...new Set(cell.slices.map(([team]) => map.teams[team] || t("map.anotherTeam")))].join(", ");
  const words = [`${node?.name} GPU ${cell.index}`, t(`map.state.${cell.state}`), cell.util === null ? "" : percent(cell.util), teams, node?.cordoned ? t("map.cordoned") : ""];
  return words.filter(Boolean).join(", ");
}

/** The box shows the line at `y`. */
function scrollTo(box: HTMLElement, y: number, size: number): void {
  if (y < box.scrollTop) box.scrollTop = Math.max(0, y - size);
  else if (y + size > box.scrollTop + box.clientHeight) box.scrollTop = y + 2 * size - box.clientHeight;
}

function ringOf(layout: Layout, at: number) {
  const out = layout.cell >= 8 ? 3 : 2;
  const side = layout.cell + 2 * out;
  return { left: (layout.x[at] ?? 0) - out, top: (layout.y[at] ?? 0) - out, width: side, height: side };
}

/** The width of the element's content, followed as it changes. */
function useWidth(ref: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [ref]);
  return width;
}
