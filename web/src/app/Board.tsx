// Address → board.
import { Suspense } from "react";
import { useWords } from "../i18n/locale";
import { Empty, Loading } from "../parts/States";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { placeOf } from "./boards";
import { Access, Audit, Devices, Groups, Health, Holders, Job, Jobs, Mine, Node, Nodes, Overview, Quota, QuotaTree, Serving, Submit, Users } from "./pages";

export function Board() {
  return (
    <Suspense fallback={<Coming />}>
      <Page />
    </Suspense>
  );
}

/** Its script is on the way. */
function Coming() {
  return (
    <main className="page">
      <Loading />
    </main>
  );
}

function Page() {
  const { path } = usePlace();
  const place = placeOf(path);
  switch (place.board) {
    case "overview":
      return <Overview />;
    case "mine":
      return <Mine />;
    case "nodes":
      return <Nodes />;
    case "node":
      return <Node key={place.name} name={place.name} />;
    case "holders":
      return <Holders />;
    case "devices":
      return <Devices />;
    case "jobs":
      return <Jobs />;
    case "job":
      return <Job key={place.id.join("/")} id={place.id} />;
    case "submit":
      return <Submit />;
    case "serving":
      return <Serving />;
    case "quota":
      return <Quota />;
    case "access":
      return <Access />;
    case "users":
      return <Users />;
    case "groups":
      return <Groups />;
    case "audit":
      return <Audit />;
    case "health":
      return <Health />;
    case "quota-tree":
      return <QuotaTree />;
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
