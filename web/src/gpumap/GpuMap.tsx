// The signature of the console: every GPU is one cell. The canvas is painted per answer; a ring and a card follow the pointer or the keys.
import { type KeyboardEvent, type MouseEvent, type PointerEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useGpuMap } from "../api/queries";
import type { GpuMapAnswer } from "../api/types";
import { Command } from "../parts/Copy";
import { useWords } from "../i18n/locale";
import { useLook } from "../look/theme";
import { Choices } from "../parts/Choices";
import { Icon } from "../parts/Icon";
import { Panel } from "../parts/Panel";
import { Answered, Bones, Empty } from "../parts/States";
import { statusWord } from "../parts/Status";
import { navigate } from "../router/router";
import { useQueryState } from "../router/usequery";
import { ObjectCommand } from "../commands/EqualCommand";
import { count } from "../format/format";
import { type GpuMapData, readMap, sizeOf } from "./cells";
import { COLOUR_BY, type ColourBy, paletteOf } from "./colour";
import { BEARS, isMark, type Mark } from "./counts";
import { draw, type Picture } from "./draw";
import type { Focus } from "./focus";
import { type Arrow, cellAt, layOut, type Layout, neighbour } from "./layout";
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

const EVERY = (): boolean => true;
const EVERYTHING: Focus = { nodes: null, cards: null };

export function GpuMap({ heightMax = 360, heightMany = 660, focus = EVERYTHING, className }: Props) {
  const { t } = useWords();
  const asked = useGpuMap();
  const [params, set] = useQueryState();
  const chosen = params.get("color");
  const by: ColourBy = isColourBy(chosen) ? chosen : "util";
  const asTable = params.get("map") === "table";
  const tools = (
    <>
      <Choices name="color" label={t("map.colourBy")} value={by} choices={COLOUR_BY.map((value) => ({ value, word: t(`map.by.${value}`) }))} onChoose={(value) => set({ color: value === "util" ? null : value }, "replace")} />
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
  const lit = isMark(asked) ? asked : null;
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

function MapCanvas({ map, palette, by, heightMax, focus, lit }: { map: GpuMapData; palette: Picture["palette"]; by: ColourBy; heightMax: number; focus: Focus; lit: Mark | null }) {
  const { t } = useWords();
  const box = useRef<HTMLDivElement>(null);
  const picture = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const layout = useMemo(() => layOut(map, Math.max(200, width), heightMax), [map, width, heightMax]);
  const [at, setAt] = useState(-1);
  const [byKeys, setByKeys] = useState(false);
  const [corner, setCorner] = useState({ left: 0, top: 0 });

  // After the paint, so that a map of 40,000 cells does not hold up the rows beside it.
  useEffect(() => {
    const groupTitle = (model: number, nodes: number, gpus: number) => t("map.group", { model: map.models[model] || t("map.noModel"), nodes: count(nodes), gpus: count(gpus), n: nodes, g: gpus });
    if (picture.current && width > 0) draw(picture.current, { map, layout, palette, by, focus, isLit: lit ? BEARS[lit] : EVERY, groupTitle, statusWord: (status) => statusWord(status, t) });
  }, [map, layout, palette, by, focus, lit, t, width]);

  const cell = map.cells[at];
  const open = (of: number) => {
    const node = map.nodes[map.cells[of]?.node ?? -1];
    if (node) navigate(`/nodes/${encodeURIComponent(node.name)}`);
  };
  const under = (event: MouseEvent<HTMLCanvasElement>) => {
    const rect = event.currentTarget.getBoundingClientRect();
    return cellAt(map, layout, event.clientX - rect.left, event.clientY - rect.top);
  };
  const hover = (event: PointerEvent<HTMLCanvasElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    setByKeys(false);
    setCorner({ left, top });
    setAt(under(event));
  };
  const onKey = (event: KeyboardEvent) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    setCorner({ left, top });
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      setByKeys(true);
      setAt(cell === undefined ? 0 : neighbour(layout, at, event.key as Arrow));
    } else if (event.key === "Enter") open(at);
    else if (event.key === "Escape" && at >= 0) {
      event.preventDefault();
      setAt(-1);
    }
  };
  return (
    <div className="map-box" ref={box} style={{ maxHeight: heightMax + 4 }}>
      <div className="map-layers" style={{ height: layout.height }}>
        <canvas
          ref={picture}
          data-hit={cell !== undefined}
          tabIndex={0}
          // oxlint-disable-next-line jsx-a11y/no-interactive-element-to-noninteractive-role -- arrow keys belong to the map while it has the focus
          role="application"
          aria-roledescription={t("map.title")}
          aria-label={t("map.label", { gpus: count(map.cells.length), nodes: count(map.nodes.length) })}
          onPointerMove={hover}
          onPointerLeave={() => setAt(-1)}
          // From the event: a tap, or a click after the page has moved under a resting pointer, comes without a move.
          onClick={(event) => open(under(event))}
          onKeyDown={onKey}
          onFocus={(event) => event.currentTarget.matches(":focus-visible") && at < 0 && setAt(0)}
          onBlur={() => setAt(-1)}
        />
        {cell && <div className="map-ring" style={ringOf(layout, at)} />}
        {cell && <MapCard map={map} cell={cell} palette={palette} x={corner.left + (layout.x[at] ?? 0)} y={corner.top + (layout.y[at] ?? 0)} size={layout.cell} announce={byKeys} />}
      </div>
    </div>
  );
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
