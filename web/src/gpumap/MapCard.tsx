// What is this GPU? The map knows the load; who holds it since when is asked from the node when the pointer rests.
import { useNode } from "../api/queries";
import type { GpuRow } from "../api/types";
import { exactMemory, memoryFraction, percent, duration, UNKNOWN } from "../format/format";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { Ago } from "../parts/Ago";
import type { Cell, GpuMapData } from "./cells";
import type { Palette } from "./colour";
import { instanceName, instancesHeld } from "./instances";
import { useRested } from "./useRested";

interface Props {
  map: GpuMapData;
  cell: Cell;
  palette: Palette;
  /** Of the cell in the window: the card may stand outside the map. */
  x: number;
  y: number;
  size: number;
  /** What a click on the chosen cell leads to; nothing of one that is only pointed at. */
  chosen: boolean;
}

export const CARD_WIDTH = 292;
/** A card has seven at most. */
const MOST_INSTANCES = 7;
const EDGE = 8;
const OFF = 10;
/** The height of a card with some holders. */
const ENOUGH = 300;

/** Below the cell, or above it where that has no room and above is more: the cells beside it in its row stay in sight. */
export function besideCell(x: number, y: number, size: number, width: number, height: number): { left: number; top?: number; bottom?: number; maxHeight: number } {
  const left = Math.max(EDGE, Math.min(x + size / 2 - CARD_WIDTH / 2, width - CARD_WIDTH - EDGE));
  const below = height - (y + size + OFF) - EDGE;
  const above = y - OFF - EDGE;
  return below >= Math.min(above, ENOUGH) ? { left, top: y + size + OFF, maxHeight: below } : { left, bottom: height - y + OFF, maxHeight: above };
}

export function MapCard({ map, cell, palette, x, y, size, chosen }: Props) {
  const { t } = useWords();
  const node = map.nodes[cell.node];
  const rested = useRested(`${node?.name}/${cell.index}`);
  const detail = useNode(rested ? (node?.name ?? null) : null);
  const gpu = detail.data?.gpus.find((g) => g.index === cell.index);
  const place = besideCell(x, y, size, innerWidth, innerHeight);
  return (
    <div className="map-card" style={{ ...place, width: CARD_WIDTH }} data-chosen={chosen} data-testid="map-card">
      <div className="map-card-head">
        <span className="mono whole">{shown(node?.name ?? "")}</span>
        <span className="nowrap">GPU {cell.index}</span>
      </div>
      <div className="dim whole">{map.models[node?.model ?? 0] || t("map.noModel")}</div>
      <dl className="facts num">
        <dt>{t("map.state")}</dt>
        <dd>{t(`map.state.${cell.state}`)}</dd>
        <dt>{t("map.by.util")}</dt>
        <dd>{percent(cell.util)}</dd>
        <dt>{t("map.by.memory")}</dt>
        <dd>
          {percent(cell.memory)}
          {gpu && <span className="dim"> {memoryFraction(gpu.memoryUsedMiB, gpu.memoryTotalMiB)}</span>}
        </dd>
        {gpu && gpu.units > 0 && (
          <>
            <dt>{t("map.granted")}</dt>
            <dd>
              {t("map.grantedUnits", { units: gpu.unitsAllocated, total: gpu.units })} <span className="dim">{exactMemory(gpu.memoryAllocatedMiB)}</span>
            </dd>
            <dt>{t("node.free")}</dt>
            <dd>
              {t("node.unitsFree", { n: gpu.unitsFree })} <span className="dim">{exactMemory(gpu.memoryFreeMiB)}</span>
            </dd>
          </>
        )}
        {gpu && gpu.migInstances.length > 0 && (
          <>
            <dt>{t("map.granted")}</dt>
            <dd>{instancesHeld(gpu, t)}</dd>
          </>
        )}
        <dt>{t("map.by.temperature")}</dt>
        <dd>{cell.celsius === null ? UNKNOWN : `${Math.round(cell.celsius)} °C`}</dd>
        {cell.idleSeconds ? (
          <>
            <dt>{t("map.by.idle")}</dt>
            <dd>{duration(cell.idleSeconds)}</dd>
          </>
        ) : null}
      </dl>
      {cell.slices.length > 0 && <Holders map={map} cell={cell} palette={palette} gpu={gpu} since={sinceOf(detail.data?.pods)} />}
      {gpu?.flags.includes("overcommitted") && <div className="flag broken">{t("flag.overcommitted")}</div>}
      {gpu?.reason && <div className="flag broken">{shown(gpu.reason)}</div>}
      {node?.cordoned && <div className="dim">{t("map.cordoned")}</div>}
      <div className="dim">{t(chosen ? (cell.slices.length > 0 ? "map.againHolder" : "map.againNode") : "map.choose")}</div>
    </div>
  );
}

type Since = ReadonlyMap<string, string | null>;

function sinceOf(pods: readonly { namespace: string; name: string; heldSince: string | null }[] | undefined): Since {
  return new Map((pods ?? []).map((pod) => [`${pod.namespace}/${pod.name}`, pod.heldSince]));
}

function Holders({ map, cell, palette, gpu, since }: { map: GpuMapData; cell: Cell; palette: Palette; gpu: GpuRow | undefined; since: Since }) {
  const { t } = useWords();
  if (gpu && gpu.migInstances.some((each) => each.pods.length > 0)) {
    return (
      <ul className="holders" data-testid="map-instances">
        {gpu.migInstances.slice(0, MOST_INSTANCES).map((instance) => (
          <li key={instance.id}>
            <i className="mark" style={{ background: palette.teams[map.teams.indexOf(instance.pods[0]?.namespace ?? "")] ?? palette.tokens.rest }} />
            <span className="mono whole">{instance.pods.map((pod) => shown(`${pod.namespace}/${pod.name}`)).join(", ") || UNKNOWN}</span>
            <span className="dim nowrap num">
              {instanceName(instance)} · {percent(instance.utilPercent)}
            </span>
          </li>
        ))}
      </ul>
    );
  }
  if (gpu && gpu.pods.length > 0) {
    return (
      <ul className="holders">
        {gpu.pods.slice(0, 6).map((pod) => (
          <li key={`${pod.namespace}/${pod.name}/${pod.container}`}>
            <i className="mark" style={{ background: palette.teams[map.teams.indexOf(pod.namespace)] ?? palette.tokens.rest }} />
            <span className="mono whole">
              {shown(`${pod.namespace}/${pod.name}`)}
            </span>
            <span className="dim nowrap num">
              {pod.units > 0 && `${exactMemory(pod.allocatedMiB)} · `}
              <Ago at={since.get(`${pod.namespace}/${pod.name}`) ?? null} />
            </span>
          </li>
        ))}
      </ul>
    );
  }
  return (
    <ul className="holders">
      {cell.slices.slice(0, 6).map(([team, share], i) => (
        <li key={`${team}-${i}`}>
          <i className="mark" style={{ background: palette.teams[team] }} />
          <span className="mono whole">{map.teams[team] || t("map.anotherTeam")}</span>
          {cell.state === "shared" && <span className="dim num">{percent(share * 100)}</span>}
        </li>
      ))}
    </ul>
  );
}
