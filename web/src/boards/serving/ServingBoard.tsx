// Serving jobs: models that answer requests. Which are ready, what keeps the others, where they are reached, what they hold. Nothing is written here.
import { useMemo } from "react";
import { useServing } from "../../api/queries";
import type { ServingJob } from "../../api/types";
import { FIRST_SERVING } from "../../commands/commands";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { statusWord } from "../../parts/Status";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { useKept } from "../../table/useKept";
import { servingColumns, servingKey } from "./columns";
import { ServingFacts } from "./ServingFacts";

const FILTERS = ["namespace", "type", "name", "status", "user", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;

export function ServingBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useServing(asking), asking);
  const facets = asked.data?.facets;
  const columns = useMemo(() => servingColumns(words), [words]);
  const open = params.get("open");
  const choice = (name: string, label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <main className="page" data-testid="page-serving">
      <PageHead title={t("title.serving")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        {choice("namespace", t("col.namespace"), 140)}
        {choice("type", t("serving.type"), 116)}
        {choice("name", t("serving.name"), 116)}
        {choice("status", t("col.status"), 116, (word) => statusWord(word, t))}
        {choice("user", t("col.user"), 104)}
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("serving.search")} />
        </div>
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <ListTable<ServingJob>
        name="serving"
        slug="serving-jobs"
        title={t("title.serving")}
        path="/serving"
        command="serving"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={servingKey}
        selected={open}
        onOpen={(job) => set({ open: servingKey(job) }, open ? "replace" : "push")}
        noneMatch={t("serving.noneMatch")}
        none={
          <Empty why={t("serving.none")}>
            {t("serving.noneNext")} <Command text={FIRST_SERVING} />
          </Empty>
        }
      />
      {open && <OpenJob id={open} onClose={() => set({ open: null })} />}
    </main>
  );
}

/** Filters and pages leave rows off; the job whose panel is open is asked for by its name. */
function OpenJob({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useWords();
  const [namespace = "", type = "", name = "", version = ""] = id.split("/");
  const asked = useServing(useMemo(() => new URLSearchParams({ namespace, type, name, size: "500" }), [namespace, type, name]));
  return (
    <SidePanel name={name} of={{ kind: "serving", namespace, name, version }} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={8} />}>
        {({ items }) => {
          const job = items.find((each) => servingKey(each) === id);
          return job ? <ServingFacts job={job} /> : <Empty why={t("serving.gone", { job: `${namespace}/${name}` })} />;
        }}
      </Answered>
    </SidePanel>
  );
}
