// Address → board.
import { useWords } from "../i18n/locale";
import { JobPage } from "../boards/jobs/JobPage";
import { JobsBoard } from "../boards/jobs/JobsBoard";
import { NodePage } from "../boards/nodes/NodePage";
import { NodesBoard } from "../boards/nodes/NodesBoard";
import { OverviewBoard } from "../boards/overview/OverviewBoard";
import { QuotaBoard } from "../boards/quota/QuotaBoard";
import { TreePage } from "../boards/quota/TreePage";
import { Empty } from "../parts/States";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { placeOf } from "./boards";

export function Board() {
  const { path } = usePlace();
  const place = placeOf(path);
  switch (place.board) {
    case "overview":
      return <OverviewBoard />;
    case "nodes":
      return <NodesBoard />;
    case "node":
      return <NodePage key={place.name} name={place.name} />;
    case "jobs":
      return <JobsBoard />;
    case "job":
      return <JobPage key={place.id.join("/")} id={place.id} />;
    case "quota":
      return <QuotaBoard />;
    case "quota-tree":
      return <TreePage />;
    default:
      return <Nowhere path={path} />;
  }
}

function Nowhere({ path }: { path: string }) {
  const { t } = useWords();
  return (
    <main className="page">
      <Empty why={t("nowhere.why", { path })}>
        <Link to="/overview">{t("board.overview")}</Link>
      </Empty>
    </main>
  );
}
