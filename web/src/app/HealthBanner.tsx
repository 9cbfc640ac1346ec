// Failed dependencies of the console, on every page, in one line each; the page Health has the details.
import { useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { useHealth } from "../api/queries";
import type { Warning } from "../api/types";
import { healthName, unreportedFailures } from "../boards/health/rows";
import { useWords } from "../i18n/locale";
import { sentenceWords } from "../i18n/sentences";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";

const PAGE = "/health";

export function HealthBanner() {
  const words = useWords();
  const { path } = usePlace();
  const rows = useHealth().data?.items ?? [];
  const reported = useReportedSources();
  const failing = path === PAGE ? [] : unreportedFailures(rows, reported);
  return failing.map((row) => (
    <div key={row.name} className="banner broken health" role="status" data-testid={`health-fails-${row.name}`}>
      <span>
        <b>{healthName(row.name, words)}:</b> {row.found.map((found) => sentenceWords(found, words)).join("; ")} <span className="hint">{words.t("health.affected", { what: sentenceWords(row.affects, words) })}</span>
      </span>
      <Link to={PAGE}>{words.t("board.health")}</Link>
    </div>
  ));
}

/** Inputs that a warning on this page already names as missing. */
function useReportedSources(): ReadonlySet<string> {
  const cache = useQueryClient().getQueryCache();
  const reported = useSyncExternalStore(
    (heard) => cache.subscribe(heard),
    () =>
      cache
        .findAll({ type: "active" })
        .flatMap((query) => warningsIn(query.state.data))
        .toSorted()
        .join(" "),
  );
  return new Set(reported.split(" "));
}

const warningsIn = (data: unknown): readonly string[] => (data !== null && typeof data === "object" && "warnings" in data && Array.isArray(data.warnings) ? (data.warnings as readonly Warning[]).map(({ source }) => source) : []);
