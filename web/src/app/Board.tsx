// Address → board.
import { type ReactNode, Suspense } from "react";
import { useMe } from "../api/queries";
import { useWords } from "../i18n/locale";
import type { MessageKey } from "../i18n/translate";
import { PageHead } from "../parts/PageHead";
import { Empty, Loading } from "../parts/States";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { placeOf } from "./boards";
import { Access, Audit, Components, Datasets, Devices, Groups, Health, Holders, Idle, Job, Jobs, Mine, Node, Nodes, Operation, Operations, Overview, Quota, QuotaTree, Serving, Submit, Usage, Users } from "./pages";

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
    case "datasets":
      return <Datasets />;
    case "components":
      return (
        <OfAdmins title="title.components">
          <Components />
        </OfAdmins>
      );
    case "operations":
      return (
        <OfAdmins title="title.operations">
          <Operations />
        </OfAdmins>
      );
    case "operation":
      return (
        <OfAdmins title="title.operations">
          <Operation key={place.id} id={place.id} />
        </OfAdmins>
      );
    case "quota":
      return <Quota />;
    case "usage":
      return <Usage />;
    case "idle":
      return <Idle />;
    case "access":
      return <Access />;
    case "users":
      return (
        <OfAdmins title="title.users">
          <Users />
        </OfAdmins>
      );
    case "groups":
      return (
        <OfAdmins title="title.groups">
          <Groups />
        </OfAdmins>
      );
    case "audit":
      return (
        <OfAdmins title="title.audit">
          <Audit />
        </OfAdmins>
      );
    case "health":
      return <Health />;
    case "quota-tree":
      return <QuotaTree />;
    default:
      return <Nowhere path={path} />;
  }
}

/** A page of administrators: others get one sentence, and nothing is asked for them. */
function OfAdmins({ title, children }: { title: MessageKey; children: ReactNode }) {
  const { t } = useWords();
  const role = useMe().data?.user.role;
  if (role === undefined) return <Coming />;
  if (role === "admin") return children;
  return (
    <main className="page" data-testid="page-of-admins">
      <PageHead title={t(title)} answer={undefined} onRefresh={() => undefined} />
      <Empty why={t("nowhere.admins")}>
        <Link to="/me">{t("access.link")}</Link>
      </Empty>
    </main>
  );
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
