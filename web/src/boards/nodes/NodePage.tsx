// One node on its own page: the facts of the side panel, and the charts of its cards.
import { useMemo } from "react";
import { useNode } from "../../api/queries";
import { ChartPageProvider } from "../../charts/page";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Gone, isGone } from "../../parts/Gone";
import { FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { NodeActions } from "./NodeActions";
import { NodeCharts } from "./NodeCharts";
import { NodeFacts } from "./NodeFacts";
import { nodeSentence } from "./sentence";

export function NodePage({ name }: { name: string }) {
  const { t } = useWords();
  const asked = useNode(name);
  const gone = isGone(asked);
  const filters = useMemo(() => new URLSearchParams({ gpu_node: name }), [name]);
  const crumb = (
    <div className="crumb">
      <Link to="/nodes">{t("board.nodes")}</Link>
    </div>
  );
  return (
    <ChartPageProvider fallback="30m">
      <main className="page" data-testid="page-node" data-gone={gone}>
        <PageHead title={name} of={{ kind: "node", name, shares: Boolean(asked.data?.sharing) }} before={crumb} answer={gone ? undefined : asked.data} sentence={!gone && asked.data ? nodeSentence(asked.data.node, asked.data.sharing) : undefined} onRefresh={() => void asked.refetch()} />
        <Gone asked={asked} kind="node" />
        <Warnings of={[asked.data?.warnings]} />
        {!gone && <FailedRefresh asked={[asked]} />}
        {!gone && asked.data && <NodeActions name={name} schedulable={asked.data.node.schedulable} />}
        <NodeFacts name={name} wide />
        {asked.data && asked.data.gpus.length > 0 && <NodeCharts filters={filters} perNode={false} />}
      </main>
    </ChartPageProvider>
  );
}
