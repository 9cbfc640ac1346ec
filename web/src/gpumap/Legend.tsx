// What do the fills mean? Exactly the marks that are on the map, and the counts that answer "what is broken, what is wasted".
import { useMemo } from "react";
import { useOverview } from "../api/queries";
import { count, gpus } from "../format/format";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { type GpuMapData, heldByTeam } from "./cells";
import { type ColourBy, HEAT_RANGE, type Palette } from "./colour";
import { countMarks, type Lit, litTeam, type Mark } from "./counts";

const TEAMS_NAMED = 8;

interface Props {
  map: GpuMapData;
  by: ColourBy;
  palette: Palette;
  lit: Lit | null;
  onLight: (lit: Lit | null) => void;
}

export function Legend({ map, by, palette, lit, onLight }: Props) {
  const { t } = useWords();
  const { held, free, idle, broken, draining, closed, unreachable, noReading, holderUnknown } = useMemo(() => countMarks(map), [map]);
  // A highlighted mark stays in the legend, also with 0: otherwise it could not be switched off.
  const light = { lit, onLight };
  const given = useOverview().data?.gpus;
  return (
    <div className="legend" role="group" aria-label={t("map.legend")}>
      <Item {...light} of="held" mark="held" word={t("map.held")} n={held} />
      <Item {...light} of="free" mark="free" word={t("map.free")} n={free} />
      {(by === "util" || by === "memory" || lit === "idle") && <Item {...light} of="idle" mark="idle" word={t("map.idle")} n={idle} />}
      {by === "util" && <Scale colours={palette.teal} from="1%" to="100%" title={t("map.by.util")} />}
      {by === "memory" && <Scale colours={palette.teal} from="1%" to="100%" title={t("map.by.memory")} />}
      {by === "temperature" && <Scale colours={palette.heat} from={`${HEAT_RANGE[0]} °C`} to={`${HEAT_RANGE[1]} °C`} title={t("map.by.temperature")} />}
      {by === "idle" && <Scale colours={palette.amber} from="0m" to="≥ 1h" title={t("map.by.idle")} />}
      {by === "team" && <Teams map={map} palette={palette} {...light} />}
      {(broken > 0 || lit === "broken") && <Item {...light} of="broken" mark="broken" word={t("map.broken")} n={broken} />}
      {(draining > 0 || lit === "draining") && <Item {...light} of="draining" mark="draining" word={t("map.draining")} n={draining} />}
      {(closed > 0 || lit === "closed") && <Item {...light} of="closed" mark="closed" word={t("map.closed")} n={closed} />}
      {(unreachable > 0 || lit === "unreachable") && <Item {...light} of="unreachable" mark="unreachable" word={t("map.unreachable")} n={unreachable} />}
      {(noReading > 0 || lit === "noReading") && <Item {...light} of="noReading" mark="silent" word={t("map.noReading")} n={noReading} />}
      {(holderUnknown > 0 || lit === "holderUnknown") && <Item {...light} of="holderUnknown" mark="unknown" word={t("map.unknown")} n={holderUnknown} />}
      {given && gpus(given.allocated) !== gpus(held) && (
        <span className="dim num" data-testid="legend-given">
          {t("map.given", { allocated: gpus(given.allocated), total: count(given.total), n: given.total })}
        </span>
      )}
    </div>
  );
}

function Item({ of, mark, word, n, lit, onLight }: { of: Mark; mark: string; word: string; n: number; lit: Lit | null; onLight: (lit: Lit | null) => void }) {
  return (
    <button type="button" className="legend-item" aria-pressed={lit === of} onClick={() => onLight(lit === of ? null : of)} data-testid={`legend-${of}`}>
      <i className={`mark ${mark}`} aria-hidden="true" />
      {word} <span className="num dim">{count(n)}</span>
    </button>
  );
}

function Scale({ colours, from, to, title }: { colours: readonly string[]; from: string; to: string; title: string }) {
  const stops = [0, 25, 50, 75, 100].map((at) => `${colours[at]} ${at}%`).join(", ");
  return (
    <span className="legend-item" title={title}>
      <span className="num dim">{from}</span>
      <i className="scale" aria-hidden="true" style={{ background: `linear-gradient(90deg, ${stops})` }} />
      <span className="num dim">{to}</span>
    </span>
  );
}

function Teams({ map, palette, lit, onLight }: Omit<Props, "by">) {
  const { t } = useWords();
  const held = heldByTeam(map);
  const rest = held.slice(TEAMS_NAMED).reduce((sum, h) => sum + h.gpus, 0);
  return (
    <>
      {held.slice(0, TEAMS_NAMED).map(({ team, gpus: n }) => {
        const of = litTeam(map.teams[team] ?? "");
        return (
          <button type="button" className="legend-item" key={team} aria-pressed={lit === of} onClick={() => onLight(lit === of ? null : of)} data-testid={`legend-${of}`}>
            <i className="mark" aria-hidden="true" style={{ background: palette.teams[team] }} />
            {shown(map.teams[team] || t("map.anotherTeam"))} <span className="num dim">{gpus(n)}</span>
          </button>
        );
      })}
      {rest > 0 && (
        <span className="legend-item">
          <i className="mark" aria-hidden="true" style={{ background: palette.tokens.rest }} />
          {t("map.otherTeams", { n: held.length - TEAMS_NAMED })} <span className="num dim">{gpus(rest)}</span>
        </span>
      )}
    </>
  );
}
