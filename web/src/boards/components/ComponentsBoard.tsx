// Components: the programs of the platform. Administrators deploy, upgrade and uninstall them here; those of other programs are only shown.
import { Button } from "antd";
import { useMemo, useState } from "react";
import { useComponents, useMe } from "../../api/queries";
import type { ComponentListRow } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { statusWord } from "../../parts/Status";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { useKept } from "../../table/useKept";
import { componentColumns, groupWord, tickColumn } from "./columns";
import { ComponentFacts } from "./ComponentFacts";
import { TogetherForm } from "./TogetherForm";
import "./components.css";

const FILTERS = ["group", "state", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;
const ALL = new URLSearchParams();

/** Whether this page can deploy it now. */
const canTick = (row: ComponentListRow): boolean => row.state === "NotInstalled" && row.operation === "" && row.source !== "" && row.source !== "command";

export function ComponentsBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useComponents(asking), asking);
  const facets = asked.data?.facets;
  const [ticked, setTicked] = useState<readonly string[]>([]);
  const [isAsked, setAsked] = useState(false);
  const me = useMe().data;
  const mayDeploy = me?.user.role === "admin" && me.way !== "none";
  const chosen = useComponents(ALL).data?.items.filter((row) => ticked.includes(row.id) && canTick(row)) ?? [];
  const columns = useMemo(() => {
    const toggle = (id: string) => setTicked((now) => (now.includes(id) ? now.filter((each) => each !== id) : [...now, id]));
    return [...(mayDeploy ? [tickColumn(words, ticked, canTick, toggle)] : []), ...componentColumns(words)];
  }, [words, ticked, mayDeploy]);
  const open = params.get("open");
  return (
    <main className="page" data-testid="page-components">
      <PageHead title={t("title.components")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Choice name="group" label={t("components.group")} choices={facets?.["group"] ?? []} params={params} set={set} width={150} nameOf={(word) => groupWord(word, words)} />
        <Choice name="state" label={t("components.state")} choices={facets?.["state"] ?? []} params={params} set={set} width={130} nameOf={(word) => statusWord(word, t)} />
        {mayDeploy && (
          <Button type="primary" disabled={chosen.length === 0} onClick={() => setAsked(true)} data-testid="action-deploy-ticked">
            {t("components.deployTicked", { n: chosen.length })}
          </Button>
        )}
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("components.search")} />
        </div>
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <ListTable<ComponentListRow>
        name="components"
        slug="components"
        title={t("title.components")}
        path="/components"
        command="components"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={(row) => row.id}
        selected={open}
        onOpen={(row) => set({ open: row.id }, open ? "replace" : "push")}
        noneMatch={t("components.noneMatch")}
        none={<Empty why={t("components.none")} />}
      />
      {isAsked && chosen.length > 0 && <TogetherForm rows={chosen} onClose={() => setAsked(false)} />}
      {open && <OpenRow id={open} onClose={() => set({ open: null })} />}
    </main>
  );
}

/** Filters leave rows off; the row whose panel is open is found without them. */
function OpenRow({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useWords();
  const asked = useComponents(ALL);
  return (
    <SidePanel name={id} of={{ kind: "component", id }} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={8} />}>
        {({ items }) => {
          const row = items.find((each) => each.id === id);
          return row ? <ComponentFacts row={row} /> : <Empty why={t("components.gone", { id })} />;
        }}
      </Answered>
    </SidePanel>
  );
}
