// Who has the GPUs, and what is left of each kind?
import type { Overview } from "../../api/types";
import { count, gpus, memory } from "../../format/format";
import { Command } from "../../parts/Copy";
import { FIRST_JOB } from "../../commands/commands";
import { ObjectCommand } from "../../commands/EqualCommand";
import { useWords } from "../../i18n/locale";
import { Meter } from "../../parts/Meter";
import { Panel } from "../../parts/Panel";
import { Empty } from "../../parts/States";
import { Link } from "../../router/Link";
import { modeWord } from "../nodes/columns";

const SHOWN = 10;

export function Consumers({ overview }: { overview: Overview }) {
  const { t } = useWords();
  const consumers = overview.topConsumers.slice(0, SHOWN);
  return (
    <Panel slug="top-consumers" title={t("overview.consumers")} note={<NoteWithCommand />} className="who" flush>
      <div>
        {consumers.length === 0 && (
          <Empty why={t("overview.noConsumers")}>
            {t("overview.noConsumersNext")} <Command text={FIRST_JOB} />
          </Empty>
        )}
        <div className="ranks">
          {consumers.map((c) => (
            <Link className="rank" key={c.namespace} to={`/gpus?namespace=${encodeURIComponent(c.namespace)}`}>
              <span className="mono clip">{c.namespace}</span>
              <span className="num">
                {gpus(c.gpus)} <span className="dim">{t("overview.ofTotal", { total: count(overview.gpus.total), jobs: c.jobs, memory: memory(c.gpuMemoryMiB) })}</span>
              </span>
              <Meter label={`${c.namespace}: ${gpus(c.gpus)} / ${gpus(overview.gpus.total)}`} total={overview.gpus.total} allocated={c.gpus} />
            </Link>
          ))}
        </div>
      </div>
      {overview.pools.length > 0 && <Pools overview={overview} />}
    </Panel>
  );
}

function NoteWithCommand() {
  const { t } = useWords();
  return (
    <span className="named">
      {t("overview.consumersNote")}
      <ObjectCommand of={{ kind: "consumers" }} />
    </span>
  );
}

function Pools({ overview }: { overview: Overview }) {
  const { t } = useWords();
  return (
    <div className="pools">
      <div className="named">
        <h2>{t("overview.pools")}</h2>
        <ObjectCommand of={{ kind: "pools", modes: [...new Set(overview.pools.map((pool) => pool.mode))] }} />
      </div>
      <div className="ranks">
        {overview.pools.map((pool) => (
          <Link className="rank" key={`${pool.model}/${pool.mode}`} to={`/nodes?model=${encodeURIComponent(pool.model)}&mode=${pool.mode}`}>
            <span className="clip">
              {pool.model || t("map.noModel")} <span className="dim">{modeWord(pool.mode, t)}</span>
            </span>
            <span className="num">
              {gpus(pool.gpusFree)} <span className="dim">{t("overview.freeOf", { total: gpus(pool.gpus) })}</span>
            </span>
            <Meter label={`${pool.model}: ${gpus(pool.gpusAllocated)} / ${gpus(pool.gpus)}`} total={pool.gpus} allocated={pool.gpusAllocated} broken={pool.gpusUnhealthy} />
            {pool.gpusFreeUnnamed > 0 && <span className="note num">{t("overview.freeUnnamed", { n: gpus(pool.gpusFreeUnnamed) })}</span>}
            {pool.largestFreeMiB !== null && <span className="note num">{t("overview.largestFree", { memory: memory(pool.largestFreeMiB) })}</span>}
          </Link>
        ))}
      </div>
    </div>
  );
}
