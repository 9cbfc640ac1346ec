// Dependencies of the console: state, findings, effects, settings. Worst first; dependencies that are not in use come last.
import { useHealth } from "../../api/queries";
import type { HealthRow } from "../../api/types";
import { ObjectCommand } from "../../commands/EqualCommand";
import { useWords } from "../../i18n/locale";
import { sentenceWords } from "../../i18n/sentences";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, FailedRefresh } from "../../parts/States";
import { healthName, WORST_FIRST } from "./rows";

const COLUMNS = ["health.col.name", "health.col.state", "health.col.found", "health.col.affects", "health.col.set"] as const;

export function HealthBoard() {
  const { t } = useWords();
  const asked = useHealth();
  return (
    <main className="page" data-testid="page-health">
      <PageHead title={t("title.health")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <FailedRefresh asked={[asked]} />
      <Panel slug="health" title={t("health.title")} tools={<ObjectCommand of={{ kind: "health" }} />} flush>
        <Answered asked={asked} bones={<Bones lines={12} />}>
          {({ items }) => <Rows rows={items} />}
        </Answered>
      </Panel>
    </main>
  );
}

/** A table whose rows become blocks on a narrow page. */
function Rows({ rows }: { rows: readonly HealthRow[] }) {
  const { t } = useWords();
  const sorted = rows.toSorted((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state));
  return (
    <table className="health" data-testid="table-health">
      <thead>
        <tr>
          {COLUMNS.map((key) => (
            <th key={key} scope="col">
              {t(key)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sorted.map((row) => (
          <Row key={row.name} row={row} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row }: { row: HealthRow }) {
  const words = useWords();
  const { t, code } = words;
  return (
    <tr data-state={row.state} data-testid={`health-${row.name}`}>
      <th scope="row">
        {healthName(row.name, words)}
      </th>
      <td>
        <span className="status" data-tone={TONES[row.state] ?? "unknown"}>
          {code("health.is", row.state, {}, row.state)}
        </span>
      </td>
      <td data-of={t("health.col.found")}>
        {row.found.map((found) => (
          <div key={found.code}>{sentenceWords(found, words)}</div>
        ))}
      </td>
      <td className="dim" data-of={t("health.col.affects")}>
        {sentenceWords(row.affects, words)}
      </td>
      <td data-of={t("health.col.set")}>
        {row.setting && sentenceWords(row.setting, words)}
      </td>
    </tr>
  );
}

const TONES: Readonly<Record<string, string>> = { fail: "bad", warn: "wait", ok: "good", off: "unknown" };
