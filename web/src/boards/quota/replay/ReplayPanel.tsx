// The pods of the past, played again with the changed numbers or other nodes. One replay at a time, which goes on without the page.
import { useState } from "react";
import { useMe, useUsage } from "../../../api/queries";
import { useReplay, useReplayWrite } from "../../../api/replay";
import type { QuotaReplayState } from "../../../api/types";
import { percent } from "../../../format/format";
import { useWords } from "../../../i18n/locale";
import { Choices } from "../../../parts/Choices";
import { Panel } from "../../../parts/Panel";
import type { Changes } from "../changes";
import { ReplayTables } from "./ReplayTables";
import { changesText, DOING_WORDS, PERIOD_WORDS, REPLAY_PERIODS, replayOrder, type ReplayPeriod } from "./rows";

const MODELS = new URLSearchParams({ by: "model", period: "30d", size: "200" });
const NODES_MAX = 10_000;

/** Nothing where there is no usage ledger. */
export function ReplayPanel({ changes }: { changes: Changes }) {
  const { t } = useWords();
  const isAdmin = useMe().data?.user.role === "admin";
  const asked = useReplay(isAdmin);
  if (!asked.data) return null;
  return (
    <Panel slug="replay" title={t("panel.replay")} note={t("quota.nothingWritten")}>
      <div className="replay">
        <p className="dim">{t("replay.why")}</p>
        <Question changes={changes} state={asked.data} />
        <Answer state={asked.data} />
      </div>
    </Panel>
  );
}

function Question({ changes, state }: { changes: Changes; state: QuotaReplayState }) {
  const { t } = useWords();
  const [period, setPeriod] = useState<ReplayPeriod>("7d");
  const [model, setModel] = useState("");
  const [more, setMore] = useState("1");
  const models = useUsage(MODELS).data?.items.flatMap(({ name }) => (name ? [name] : [])) ?? [];
  const write = useReplayWrite();
  const order = replayOrder(period, changes, model, Number(more));
  const isRunning = state.state === "running";
  return (
    <>
      <div className="filters">
        <Choices name="replay-period" label={t("usage.period")} value={period} choices={REPLAY_PERIODS.map((value) => ({ value, word: t(PERIOD_WORDS[value]) }))} onChoose={setPeriod} />
        <select className="period-field" aria-label={t("replay.model")} value={model} onChange={(event) => setModel(event.target.value)} data-testid="replay-model">
          <option value="">{t("replay.noModel")}</option>
          {models.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        {model !== "" && (
          <input type="number" className="period-field" aria-label={t("replay.count")} title={t("replay.count")} min={-NODES_MAX} max={NODES_MAX} value={more} onChange={(event) => setMore(event.target.value)} data-testid="replay-count" />
        )}
        <button type="button" className="toggle" disabled={order === null || isRunning || write.isPending} onClick={() => write.mutate(order)} data-testid="action-replay">
          {t(state.state === "none" ? "replay.begin" : "replay.again")}
        </button>
        {isRunning && (
          <button type="button" className="toggle" disabled={write.isPending} onClick={() => write.mutate(null)} data-testid="action-cancel-replay">
            {t("replay.cancel")}
          </button>
        )}
      </div>
      {order === null && !isRunning && <p className="dim">{t("replay.noChange")}</p>}
      {write.error && (
        <p className="form-fault" role="alert" lang="en">
          {write.error.message}
        </p>
      )}
    </>
  );
}

function Answer({ state }: { state: QuotaReplayState }) {
  const words = useWords();
  const { t } = words;
  if (state.state === "none") return null;
  const doing = DOING_WORDS[state.doing];
  return (
    <div className="replay" data-testid="replay-state" data-state={state.state} data-id={state.id}>
      <p>{t("replay.asked", { period: state.period, user: state.askedBy, changes: changesText(state, t) })}</p>
      {state.state === "running" && (
        <p role="status">
          <progress value={state.part} max={1} aria-label={t("panel.replay")} /> {doing && t(doing)} <span className="num">{percent(100 * state.part)}</span>
        </p>
      )}
      {state.state === "cancelled" && <p>{t("replay.cancelled")}</p>}
      {state.state === "failed" && (
        <p className="form-fault" role="alert">
          {t("replay.failed")} <span lang="en">{[state.error, state.hint].filter(Boolean).join(" — ")}</span>
        </p>
      )}
      {state.result && <ReplayTables found={state.result} />}
    </div>
  );
}
